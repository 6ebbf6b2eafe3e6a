# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The closed list of comparisons that a sign may use."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from typing import Any

from ...module_utils._host.kernel.release import compare


class NotComparable(Exception):
    """The observed value is of a type that this comparison cannot judge; the sign is then unknown, not false."""


def _texts(seen: Any) -> list[str]:
    if isinstance(seen, str):
        return [seen]
    if isinstance(seen, list) and all(isinstance(item, str) for item in seen):
        return seen
    raise NotComparable("is neither text nor a list of texts")


def _sized(seen: Any) -> Any:
    if isinstance(seen, (str, list, dict)):
        return seen
    raise NotComparable("has no length")


def _text(seen: Any) -> str:
    if isinstance(seen, str):
        return seen
    raise NotComparable("is not text")


def _number(seen: Any) -> float:
    if isinstance(seen, bool):
        raise NotComparable("is not a number")
    if isinstance(seen, (int, float)):
        return seen
    raise NotComparable("is not a number")


def _same(seen: Any, wanted: Any) -> bool:
    """Equality without Python's `True == 1`."""
    return isinstance(seen, bool) == isinstance(wanted, bool) and bool(seen == wanted)


def _within(seen: Any, wanted: Any) -> bool:
    if not isinstance(wanted, list):
        raise NotComparable("is compared with something that is not a list")
    return any(_same(seen, item) for item in wanted)


def _contains(seen: Any, wanted: Any) -> bool:
    if isinstance(seen, str):
        return isinstance(wanted, str) and wanted in seen
    if isinstance(seen, list):
        return any(_same(item, wanted) for item in seen)
    if isinstance(seen, dict):
        return wanted in seen if isinstance(wanted, str) else False
    raise NotComparable("cannot contain anything")


def _matches(seen: Any, pattern: Any) -> bool:
    return any(re.search(pattern, text) for text in _texts(seen))


def _like(seen: Any, patterns: Any) -> bool:
    if not isinstance(patterns, list):
        raise NotComparable("is compared with something that is not a list of patterns")
    text = _text(seen)
    return any(isinstance(pattern, str) and fnmatch.fnmatchcase(text, pattern) for pattern in patterns)


def _compare(seen: Any, wanted: Any) -> int:
    """Component by component, numbers as numbers; it suits kernel releases, operating systems and drivers alike."""
    try:
        return compare(_text(seen), _text(wanted))
    except ValueError as error:
        raise NotComparable("is no version") from error


OPERATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "equals": _same,
    "not_equals": lambda seen, wanted: not _same(seen, wanted),
    "in": _within,
    "not_in": lambda seen, wanted: not _within(seen, wanted),
    "contains": _contains,
    "not_contains": lambda seen, wanted: not _contains(seen, wanted),
    "matches": _matches,
    "not_matches": lambda seen, pattern: not _matches(seen, pattern),
    "like": _like,
    "not_like": lambda seen, patterns: not _like(seen, patterns),
    "lt": lambda seen, wanted: _number(seen) < _number(wanted),
    "le": lambda seen, wanted: _number(seen) <= _number(wanted),
    "gt": lambda seen, wanted: _number(seen) > _number(wanted),
    "ge": lambda seen, wanted: _number(seen) >= _number(wanted),
    "version_lt": lambda seen, wanted: _compare(seen, wanted) < 0,
    "version_le": lambda seen, wanted: _compare(seen, wanted) <= 0,
    "version_gt": lambda seen, wanted: _compare(seen, wanted) > 0,
    "version_ge": lambda seen, wanted: _compare(seen, wanted) >= 0,
    "empty": lambda seen, _wanted: len(_sized(seen)) == 0,
    "not_empty": lambda seen, _wanted: len(_sized(seen)) > 0,
}

WITHOUT_VALUE = frozenset({"empty", "not_empty"})
"""These judge the observed value alone."""

PATTERN = frozenset({"matches", "not_matches"})
"""These take a regular expression (Python's `re`, searched anywhere in the text, or in any text of a list)."""
