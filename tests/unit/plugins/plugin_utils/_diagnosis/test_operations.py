# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The comparisons, and the conversion of what Ansible hands over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.operations import OPERATIONS, NotComparable
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.plain import plain


@pytest.mark.parametrize(
    ("op", "seen", "wanted", "expected"),
    [
        ("equals", 1, 1, True),
        ("equals", True, 1, False),
        ("equals", [1, {"a": 2}], [1, {"a": 2}], True),
        ("not_equals", False, 0, True),
        ("in", "b", ["a", "b"], True),
        ("in", True, [1], False),
        ("not_in", "c", ["a"], True),
        ("contains", "abc", "bc", True),
        ("contains", "abc", 1, False),
        ("contains", [1, 2], 2, True),
        ("contains", [1], True, False),
        ("contains", {"k": 0}, "k", True),
        ("not_contains", ["a"], "b", True),
        ("matches", "Could not resolve", "not res", True),
        ("matches", ["x", "y1"], r"\d$", True),
        ("matches", [], "x", False),
        ("not_matches", ["x"], "y", True),
        ("like", "6.8.0-117-generic", ["5.*", "6.8.0-*-generic"], True),
        ("like", "6.8.0-117-GENERIC", ["*-generic"], False),
        ("not_like", "7.0.0-15-generic", ["6.8.0-*"], True),
        ("lt", 1, 2, True),
        ("le", 2, 2, True),
        ("gt", 2.5, 2, True),
        ("ge", 1, 2, False),
        ("version_lt", "6.8.0-117-generic", "6.8.0-1059-azure", True),
        ("version_gt", "26.04", "24.04", True),
        ("version_ge", "580.126.20", "580.126.20", True),
        ("version_le", "6.10", "6.9", False),
        ("empty", [], None, True),
        ("empty", "x", None, False),
        ("not_empty", {"a": 1}, None, True),
    ],
)
def test_comparisons(op: str, seen: Any, wanted: Any, expected: bool) -> None:
    assert OPERATIONS[op](seen, wanted) is expected


@pytest.mark.parametrize(
    ("op", "seen", "wanted"),
    [
        ("in", 1, "not a list"), ("contains", 5, 5), ("matches", {"a": 1}, "a"), ("matches", ["a", 1], "a"), ("like", ["a"], ["a"]), ("like", "a", "a"),
        ("lt", "1", 2), ("ge", True, 0), ("version_lt", 6.8, "7"), ("version_lt", "1" * 5000, "2"), ("empty", 0, None), ("not_empty", True, None),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_not_judged(op: str, seen: Any, wanted: Any) -> None:
    with pytest.raises(NotComparable):
        OPERATIONS[op](seen, wanted)


class Tagged(str):
    """As Ansible marks a text."""

    def __str__(self) -> str:
        return "something else"


class Number(int):
    """As Ansible marks a number."""


class Lazy(Mapping[Any, Any]):
    """As Ansible makes a mapping of templates: its values come into being when asked for."""

    def __init__(self, **items: Any) -> None:
        self._items = items

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]()

    def __iter__(self) -> Any:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


def test_everything_becomes_exactly_a_plain_type() -> None:
    made = plain(Lazy(text=lambda: Tagged("text"), rows=lambda: (Number(3), True, None, 1.5, {Tagged("k"): Lazy()}), other=lambda: b"raw"))
    assert made == {"text": "text", "rows": [3, True, None, 1.5, {"k": {}}], "other": "b'raw'"}
    assert [type(item) for item in (made, made["text"], made["rows"], made["rows"][0], made["rows"][4], next(iter(made["rows"][4])))] == [
        dict, str, list, int, dict, str,
    ]  # fmt: skip


def test_what_a_fleet_shares_is_copied_once() -> None:
    shared = {"nodes": ["a", "b"]}
    one, other = plain([{"fleet": shared}, {"fleet": shared}])
    assert one["fleet"] is other["fleet"] is not shared
