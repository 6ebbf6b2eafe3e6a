# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The findings that a playbook may act on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.plain import plain
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.procedure import select


def of_procedure(findings: Any, procedure: str, confidence: str = "certain") -> list[dict[str, Any]]:
    """Those findings whose remedy is the playbook.

    :raises AnsibleFilterError: for another confidence than certain or possible.
    """
    try:
        return select(plain(findings), str(procedure), str(confidence))
    except HygieneError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to function."""
        return {"of_procedure": of_procedure}
