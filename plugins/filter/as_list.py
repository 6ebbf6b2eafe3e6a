# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists that a survey or a command line gave as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from ansible.errors import AnsibleFilterError


def as_list(value: Any) -> list[Any]:
    """A list as it is; text split at commas, blanks and new lines.

    :raises AnsibleFilterError: when it is neither.
    """
    if isinstance(value, str):
        return [word for word in re.split(r"[,\s]+", value) if word]
    if isinstance(value, Iterable) and not isinstance(value, dict):
        return list(value)
    raise AnsibleFilterError(f"A list, or words with commas between them, is wanted here; this is a {type(value).__name__}: {value!r}")


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to function."""
        return {"as_list": as_list}
