# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Version order as dpkg and linux-version have it (Debian Policy 5.6.12)."""

from __future__ import annotations

import re
from itertools import zip_longest

_PART = re.compile(r"(\D*)(\d*)", re.ASCII)


def _weight(character: str) -> int:
    """`~` before the end of the text, that before letters, letters before everything else."""
    if character == "~":
        return -1
    if character == "":
        return 0
    return ord(character) if character.isascii() and character.isalpha() else ord(character) + 256


def _compare_text(left: str, right: str) -> int:
    for one, other in zip_longest(left, right, fillvalue=""):
        difference = _weight(one) - _weight(other)
        if difference:
            return difference
    return 0


def _compare_digits(left: str, right: str) -> int:
    """As numbers, however long: more digits, then the later text."""
    one, other = left.lstrip("0"), right.lstrip("0")
    return len(one) - len(other) or (one > other) - (one < other)


def _compare_part(left: str, right: str) -> int:
    for one, other in zip_longest(_PART.findall(left), _PART.findall(right), fillvalue=("", "")):
        difference = _compare_text(one[0], other[0]) or _compare_digits(one[1], other[1])
        if difference:
            return difference
    return 0


def _split(version: str) -> tuple[str, str, str]:
    """Epoch, upstream version and Debian revision; what is not given is empty."""
    epoch, colon, rest = version.partition(":")
    if not (colon and epoch.isascii() and epoch.isdigit()):
        epoch, rest = "", version
    upstream, dash, revision = rest.rpartition("-")
    return (epoch, upstream, revision) if dash else (epoch, rest, "")


def compare_versions(left: str, right: str) -> int:
    """Negative, zero or positive when `left` is older than, equal to or newer than `right`."""
    one, other = _split(left), _split(right)
    return _compare_digits(one[0], other[0]) or _compare_part(one[1], other[1]) or _compare_part(one[2], other[2])
