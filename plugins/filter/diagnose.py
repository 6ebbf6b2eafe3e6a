# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Evidence to findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis import engine
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.load import load_rules


def diagnose(evidence: Any, rules_dirs: list[str] | None = None) -> list[dict[str, Any]]:
    """The findings about one node, or about each node of a list.

    :raises AnsibleFilterError: for evidence without a node name, and for rules that cannot be used.
    """
    try:
        return [finding.as_dict() for finding in engine.diagnose(evidence, load_rules(rules_dirs or ()))]
    except HygieneError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to function."""
        return {"diagnose": diagnose}
