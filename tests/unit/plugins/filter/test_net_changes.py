# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A report tells what is different after the run, not every step there."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpunode.hygiene.plugins.filter.net_changes import net_changes


def change(where: str, before: Any, after: Any) -> dict[str, Any]:
    return {"what": "hold", "where": where, "before": before, "after": after, "undo": ""}


@pytest.mark.parametrize(
    ("steps", "net"),
    [
        ([], []),
        ([change("a", 1, 2)], [change("a", 1, 2)]),
        ([change("a", 1, 2), change("b", 1, 2), change("a", 2, 3)], [change("a", 1, 3), change("b", 1, 2)]),
        ([change("a", False, True), change("a", True, False)], []),
        ([change("a", None, None)], []),
    ],
)
def test_steps_are_taken_together(steps: list[dict[str, Any]], net: list[dict[str, Any]]) -> None:
    assert net_changes(steps) == net


def test_something_else_is_refused() -> None:
    with pytest.raises(AnsibleFilterError, match="what, where, before, after and undo"):
        net_changes([{"name": "a"}])
