# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which entry GRUB boots for a value of `default`: grub-core/normal/menu.c, rule by rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Sequence

from .menu import Entry

_BLANKS = " \n\r\t\v\f"  # grub_isspace


@dataclass(frozen=True)
class Resolution:
    """Where a spec leads.

    :param chain: the entries from the top level down to the leaf; empty when the menu is.
    :param problems: every point at which GRUB silently does something else than the spec says, or at which the answer is not certain.
    """

    chain: tuple[Entry, ...]
    problems: tuple[str, ...]

    @property
    def leaf(self) -> Optional[Entry]:
        """The entry that boots; None when there is none."""
        return self.chain[-1] if self.chain and not self.chain[-1].submenu else None

    @property
    def path(self) -> str:
        """The path of ids, as `default` takes it; empty when nothing boots."""
        return path_of(self.chain)


def resolve(entries: Sequence[Entry], spec: Optional[str]) -> Resolution:
    """Follow a spec through the menu as GRUB does when nobody presses a key.

    :param spec: the value of `default`; None when unset.
    """
    chain: list[Entry] = []
    problems: list[str] = []
    level: Sequence[Entry] = entries
    rest = spec
    while level:
        # An unset or empty default at the top means the first entry; further down it means that the path is too short.
        place, problem = (0, "") if not chain and not rest else _place(level, rest)
        if problem:
            where = f" of submenu {chain[-1].title!r}" if chain else ""
            problems.append(f"{problem}: GRUB boots the first entry{where}")
            place = 0
        if any(not entry.certain for entry in level[: place + 1]):
            problems.append(f"whether {level[place].title!r} is what {rest!r} means depends on what GRUB finds at boot")
        chain.append(level[place])
        level = level[place].children
        rest = after_first(rest)
    if chain and chain[-1].submenu:
        problems.append(f"submenu {chain[-1].title!r} is empty: GRUB shows its menu again")
    if not chain:
        problems.append("the menu is empty: GRUB shows its prompt")
    return Resolution(tuple(chain), tuple(problems))


def _place(level: Sequence[Entry], spec: Optional[str]) -> tuple[int, str]:
    """get_entry_number and the check of its range in run_menu: the index, and why it is not one of the menu."""
    if spec is None:
        return 0, "the default ends at a submenu"
    number = leading_number(spec)
    if number is not None:
        return (number, "") if number < len(level) else (0, f"{spec!r} is read as entry {number}, and there are {len(level)}")
    for place, entry in enumerate(level):
        if matches(entry.title, spec) or matches(entry.id, spec):
            return place, ""
    return 0, f"no entry has the title or id {first_component(spec)!r}"


def leading_number(text: str) -> Optional[int]:
    """What grub_strtoul with base 0 reads at the start of a text; None when no digit is there (grub-core/kern/misc.c)."""
    text = text.lstrip(_BLANKS)
    base = 10
    if text.startswith("0x"):
        base, text = 16, text[2:]
    elif text[:1] == "0" and text[1:2] in tuple("01234567"):
        base = 8
    digits = ""
    for sign in text:
        if not sign.isascii() or not sign.isalnum() or int(sign, 36) >= base:
            break
        digits += sign
    return int(digits, base) if digits else None


def matches(name: str, spec: str) -> bool:
    """menuentry_eq: the name equals the spec up to its first single `>`; `>>` in the spec stands for `>` in the name."""
    return name == first_component(spec)


def first_component(spec: str) -> str:
    """A spec up to its first single `>`, with `>>` read as `>`."""
    return spec[: _end_of_first(spec)].replace(">>", ">")


def after_first(spec: Optional[str]) -> Optional[str]:
    """What a submenu gets as its `default`: the text after the first single `>`; None when there is none (grub_menu_execute_entry)."""
    if spec is None:
        return None
    return spec[_end_of_first(spec) + 1 :] or None


def _end_of_first(spec: str) -> int:
    place = 0
    while place < len(spec):
        if spec.startswith(">>", place):
            place += 2
        elif spec[place] == ">":
            return place
        else:
            place += 1
    return place


def path_of(chain: Sequence[Entry]) -> str:
    """The ids of a chain as one spec."""
    return ">".join(entry.id.replace(">", ">>") for entry in chain)
