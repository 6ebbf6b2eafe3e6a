# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a menu entry boots, read from its commands without running them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Iterator, Optional, Sequence

from .menu import Entry, Menu
from .resolve import path_of
from .script import Block, Command, If, Loop, Statement

LINUX = ("linux", "linux16", "linuxefi")
INITRD = ("initrd", "initrd16", "initrdefi")
OS_PROBER = "osprober-"
# What 10_linux strips to get the release from a file's name.
_STEM = re.compile(r"^[^0-9]*-")
# single, recovery: 10_linux of Debian and Ubuntu; the rest: systemd's debug parameters.
_RECOVERY_WORDS = {"single", "s", "S", "1", "recovery", "rescue", "emergency", "systemd.unit=rescue.target", "systemd.unit=emergency.target"}


@dataclass(frozen=True)
class Boots:
    """What an entry boots.

    :param images: the distinct paths of its linux lines.
    :param kernel_release: the release in the images' name; None when there is no linux line or the lines name different images.
    :param recovery: whether it is a recovery entry; `variant` whether it boots another init.
    :param uuids: the file systems that it searches for its root.
    """

    images: tuple[str, ...]
    initrds: tuple[str, ...]
    kernel_release: Optional[str]
    recovery: bool
    variant: bool
    uuids: tuple[str, ...]


def boots(entry: Entry) -> Boots:
    """What an entry boots; every linux line counts, whichever branch it is in (GRUB_FORCE_PARTUUID doubles them)."""
    linux: list[str] = []
    initrd: list[str] = []
    uuids: list[str] = []
    arguments: set[str] = set()
    for command in commands(entry.body.statements):
        words = [word.shown for word in command.words]
        if words[0] in LINUX and len(words) > 1:
            linux.append(_without_device(words[1]))
            arguments.update(words[2:])
        elif words[0] in INITRD:
            initrd.extend(_without_device(word) for word in words[1:] if not word.startswith("-"))
        elif words[0] == "search" and any(word in ("--fs-uuid", "-u") for word in words):
            uuids.append(words[-1])
    images = tuple(dict.fromkeys(linux))
    return Boots(
        images=images,
        initrds=tuple(dict.fromkeys(initrd)),
        kernel_release=release_of(images[0]) if len(images) == 1 else None,
        recovery="-recovery-" in entry.id or bool(arguments & _RECOVERY_WORDS),
        variant=any(argument.startswith("init=") for argument in arguments),
        uuids=tuple(dict.fromkeys(uuids)),
    )


def release_of(image: str) -> Optional[str]:
    """The kernel release in an image's file name; None when there is none."""
    name = os.path.basename(image)
    if name.endswith(".efi.signed"):
        name = name[: -len(".efi.signed")]
    release = _STEM.sub("", name, count=1)
    return release if release != name and release else None


def commands(statements: Sequence[Statement]) -> Iterator[Command]:
    """Every command, those in branches, loops and blocks included."""
    for statement in statements:
        if isinstance(statement, If):
            for condition, body in statement.branches:
                yield from commands(condition)
                yield from commands(body)
            yield from commands(statement.otherwise)
        elif isinstance(statement, Loop):
            yield from commands(statement.body)
        elif isinstance(statement, Command):
            yield statement
            if isinstance(statement.block, Block):
                yield from commands(statement.block.statements)


def leaves(entries: Sequence[Entry], above: tuple[Entry, ...] = ()) -> Iterator[tuple[Entry, ...]]:
    """The chain of every entry that is not a submenu, in menu order."""
    for entry in entries:
        chain = (*above, entry)
        if entry.submenu:
            yield from leaves(entry.children, chain)
        else:
            yield chain


def candidates(menu: Menu, release: str, boot_folder: Optional[str], boot_uuid: Optional[str], exclude: Sequence[str] = ()) -> list[tuple[Entry, ...]]:
    """The chains of the normal entries of this installation for a kernel release, those first whose id names the release.

    :param boot_folder: /boot as GRUB sees it (`grub-mkrelpath /boot`); None when unknown.
    :param boot_uuid: the UUID of the file system of /boot; None when unknown.
    :param exclude: ids that do not count.
    """
    found = []
    for chain in leaves(menu.entries):
        leaf = chain[-1]
        boot = boots(leaf)
        if boot.kernel_release != release or boot.recovery or boot.variant or leaf.id in exclude:
            continue
        if any(entry.id.startswith(OS_PROBER) or not entry.certain for entry in chain):
            continue
        if boot_folder is not None and os.path.dirname(boot.images[0]) != boot_folder:
            continue
        if boot_uuid and boot.uuids and boot_uuid not in boot.uuids:
            continue
        found.append(chain)
    return sorted(found, key=lambda chain: release not in chain[-1].id)


def rows(menu: Menu) -> list[dict[str, Any]]:
    """The menu's entries as evidence."""
    listed: list[dict[str, Any]] = []
    for chain in leaves(menu.entries):
        boot = boots(chain[-1])
        listed.append({"path": path_of(chain), "title": chain[-1].title, "kernel_release": boot.kernel_release, "recovery": boot.recovery})
    return listed


def _without_device(path: str) -> str:
    """A path without GRUB's device, as in `($root)/boot/vmlinuz`."""
    return path[path.index(")") + 1 :] if path.startswith("(") and ")" in path else path
