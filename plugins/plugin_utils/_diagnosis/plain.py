# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ansible's lazy and tagged values as plain JSON types; JMESPath's functions check exact types and reject the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def plain(value: Any) -> Any:
    """A copy in which every dict, list, str, int, float and bool is exactly that type; anything else becomes its text.

    What occurs several times, such as the part of the evidence that a whole fleet shares, is copied once. A value that contains itself ends
    in RecursionError; evidence comes from JSON, which has none.
    """
    return _plain(value, {})


def _plain(value: Any, copies: dict[int, tuple[Any, Any]]) -> Any:
    """`copies` holds the originals too: an id is only unique while its object lives."""
    kind = type(value)
    if value is None or kind is bool or kind is int or kind is float:
        return value
    if isinstance(value, str):
        return value if kind is str else str.__str__(value)
    if isinstance(value, Mapping):
        known = copies.get(id(value))
        if known is None:
            copy = {_plain(key, copies) if isinstance(key, str) else str(key): _plain(item, copies) for key, item in value.items()}
            known = copies[id(value)] = (value, copy)
        return known[1]
    if isinstance(value, (Sequence, set, frozenset)) and not isinstance(value, (bytes, bytearray)):
        return [_plain(item, copies) for item in value]
    for base in (bool, int, float):
        if isinstance(value, base):
            return base(value)
    return str(value)
