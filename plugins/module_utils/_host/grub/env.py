# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GRUB's environment block, read without the tool: `grub-editenv list` creates the file when it is missing."""

from __future__ import annotations

SIGNATURE = "# GRUB Environment Block\n"
SIZE = 1024


def parse(text: str) -> dict[str, str]:
    """The variables of an environment block, as grub-core/lib/envblk.c reads them.

    :raises ValueError: when it is no environment block of the size that GRUB writes.
    """
    if len(text.encode("utf-8", "surrogateescape")) != SIZE:
        raise ValueError(f"it has {len(text.encode('utf-8', 'surrogateescape'))} bytes and not {SIZE}")
    if not text.startswith(SIGNATURE):
        raise ValueError("its first line is not the signature of an environment block")
    variables: dict[str, str] = {}
    place = len(SIGNATURE)
    while place < len(text):
        if text[place] == "#":
            end = text.find("\n", place)
            place = len(text) if end < 0 else end + 1
            continue
        sign = text.find("=", place)
        if sign < 0:
            break
        value, place_after = _value(text, sign + 1)
        variables[text[place:sign]] = value
        place = place_after
    return variables


def _value(text: str, place: int) -> tuple[str, int]:
    """A value up to its newline, and the offset after that; a backslash takes the next character as it is."""
    value = ""
    while place < len(text) and text[place] != "\n":
        if text[place] == "\\":
            place += 1
        value += text[place : place + 1]
        place += 1
    return value, place + 1
