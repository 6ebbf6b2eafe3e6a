# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.plain import plain
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._report import steps


def report_steps(marks: Any, finished: float, failure: str = "") -> list[dict[str, Any]]:
    """One step per mark.

    :raises AnsibleFilterError: for a mark without name or time.
    """
    try:
        return steps.steps(plain(marks), float(finished), str(failure))
    except HygieneError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to function."""
        return {"report_steps": report_steps}
