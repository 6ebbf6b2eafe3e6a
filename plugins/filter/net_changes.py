# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run changed, all its steps taken together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import Change, merge
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.plain import plain


def net_changes(changes: Any) -> list[dict[str, Any]]:
    """One change per thing, from its first `before` to its last `after`; things that are as they were are left out.

    :raises AnsibleFilterError: for something that is no change.
    """
    try:
        merged = merge((), (Change(**change) for change in plain(changes)))
    except TypeError as error:
        raise AnsibleFilterError(f"A change has what, where, before, after and undo: {error}") from error
    return [change.as_dict() for change in merged if change.before != change.after]


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to function."""
        return {"net_changes": net_changes}
