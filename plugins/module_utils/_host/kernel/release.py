# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of kernel releases (`uname -r`), as `linux-version sort` of linux-base has it."""

from __future__ import annotations

import functools
import re
from typing import Iterable, Optional

_COMPONENT = re.compile(r"[0-9]+|-?[^-0-9]*")
_PRE_RELEASE = ("-rc", "-trunk")


def compare(left: str, right: str) -> int:
    """Below, equal to or above 0 as `left` is older than, as new as or newer than `right`.

    Numbers are compared as numbers, the rest as text, component by component; -rc and -trunk come before anything, even before the end
    (DebianLinux.pm, version_cmp).
    """
    lefts: list[str] = _COMPONENT.findall(left)
    rights: list[str] = _COMPONENT.findall(right)
    for place in range(max(len(lefts), len(rights))):
        order = _compare_components(_at(lefts, place), _at(rights, place))
        if order:
            return order
    return 0


def newest_first(releases: Iterable[str]) -> list[str]:
    """The releases, newest first; of two that compare equal, the one that is greater as text."""
    return sorted(sorted(releases, reverse=True), key=functools.cmp_to_key(compare), reverse=True)


def _at(components: list[str], place: int) -> Optional[str]:
    return components[place] if place < len(components) else None


def _compare_components(left: Optional[str], right: Optional[str]) -> int:
    left_pre, right_pre = left in _PRE_RELEASE, right in _PRE_RELEASE
    if left_pre != right_pre:
        return -1 if left_pre else 1
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if left.isdigit() and right.isdigit():
        return (int(left) > int(right)) - (int(left) < int(right))
    return (left > right) - (left < right)
