# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which findings a playbook may act on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...module_utils._model import HygieneError

NAMESPACE = "gpunode.hygiene."
_ACCEPTED = {"certain": frozenset({"certain"}), "possible": frozenset({"certain", "possible"})}


def select(findings: Iterable[Mapping[str, Any]], procedure: str, confidence: str = "certain") -> list[dict[str, Any]]:
    """The findings whose remedy is the playbook, in the order in which they came.

    :param procedure: the playbook's name, with or without the collection's.
    :param confidence: the least that is accepted: certain leaves the possible ones out.
    :raises HygieneError: for another confidence.
    """
    if confidence not in _ACCEPTED:
        raise HygieneError(f"The confidence asked for is {confidence!r}", "Findings are certain or possible", "Use one of these two")
    name = procedure if procedure.startswith(NAMESPACE) else f"{NAMESPACE}{procedure}"
    return [
        dict(finding)
        for finding in findings
        if finding["remedy"]["kind"] == "playbook" and finding["remedy"]["name"] == name and finding["confidence"] in _ACCEPTED[confidence]
    ]
