# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's GRUB as facts, and what follows from them: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional

from .boots import boots
from .defaults import Settings
from .menu import CUSTOM_CFG, GRUB_CFG, GRUBENV, PREFIX, Menu
from .menu import run as run_menu
from .resolve import Resolution, resolve

NEXT_ENTRY = "next_entry"
# What makes GRUB boot something else than the default, once (00_header; prev_entry and initrdfail: Ubuntu's initrd-less boot).
ONCE_VARIABLES = (NEXT_ENTRY, "prev_entry", "initrdfail")
# Where GRUB can read but not write (check_writable in 00_header; f2fs has no write support either, and btrfs has one only in newer releases).
_READ_ONLY_ABSTRACTIONS = ("diskfilter", "lvm", "cryptodisk")
_READ_ONLY_FILE_SYSTEMS = ("btrfs", "cpiofs", "f2fs", "newc", "odc", "romfs", "squash4", "tarfs", "zfs")


@dataclass(frozen=True)
class Probe:
    """How GRUB sees /boot; a value is None when the tool could not tell, `problems` says why.

    :param folder: /boot as a path in its file system (`grub-mkrelpath`).
    :param uuid: of the file system of /boot.
    :param abstractions: lvm, diskfilter, ... under /boot/grub, empty on a plain partition.
    :param file_system: of /boot/grub.
    """

    folder: Optional[str]
    uuid: Optional[str]
    abstractions: Optional[tuple[str, ...]]
    file_system: Optional[str]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Host:
    """All that the decisions need.

    :param loader: name as loader.decide gives it; `bypassed` is what speaks against GRUB's settings being honoured.
    :param grubenv: the environment block's variables; None when there is none that is valid, and then `grubenv_problem` says why.
    :param menu: the menu that boots by default; `following` the one of the next boot, with what is pending in grubenv. None when grub.cfg cannot be read.
    :param custom_script: what is wrong with 41_custom; None when nothing is.
    :param links: the links that enable the dead-man unit.
    """

    loader: str
    bypassed: tuple[str, ...]
    kexec: bool
    platform: str
    settings: Settings
    grub_cfg: Optional[str]
    custom: Optional[str]
    grubenv: Optional[Mapping[str, str]]
    grubenv_text: Optional[str]
    grubenv_problem: Optional[str]
    menu: Optional[Menu]
    following: Optional[Menu]
    menu_problem: Optional[str]
    custom_script: Optional[str]
    probe: Probe
    drop_in: Optional[str]
    unit: Optional[str]
    links: tuple[str, ...]

    @property
    def pending(self) -> Optional[str]:
        """The one-shot entry of the next boot; None when none is set."""
        variables = self.grubenv or {}
        return variables.get(NEXT_ENTRY) or (variables.get("prev_entry") if variables.get("initrdfail") == "1" else None) or None

    def menu_with(self, custom: Optional[str], grubenv: Mapping[str, str]) -> Menu:
        """The menu that grub.cfg would yield with another custom.cfg and environment block.

        :raises ScriptError: when grub.cfg has a syntax error.
        """
        files = {CUSTOM_CFG: custom, GRUBENV: self.grubenv_text, GRUB_CFG: self.grub_cfg}
        return run_menu(self.grub_cfg or "", files, grubenv, self.platform)


def resolve_default(menu: Menu) -> Resolution:
    """Where a menu's default leads."""
    resolution = resolve(menu.entries, menu.default)
    if menu.default_known:
        return resolution
    return Resolution(resolution.chain, (*resolution.problems, "what `default` is depends on what GRUB finds at boot"))


def leads_to(resolution: Resolution) -> tuple[Optional[str], list[str]]:
    """The kernel release that a resolution boots, and what is wrong with it."""
    problems = list(resolution.problems)
    if resolution.leaf is None:
        return None, problems
    boot = boots(resolution.leaf)
    if not boot.images:
        problems.append(f"entry {resolution.leaf.title!r} loads no Linux kernel")
    elif boot.kernel_release is None:
        problems.append(f"entry {resolution.leaf.title!r} names {', '.join(boot.images)}, from which the release cannot be told")
    if boot.recovery:
        problems.append(f"entry {resolution.leaf.title!r} is a recovery entry")
    return boot.kernel_release, problems


def why_unwritable(probe: Probe) -> Optional[str]:
    """Why GRUB cannot write the environment block; None when it can."""
    if probe.abstractions is None or probe.file_system is None:
        return f"how GRUB sees {PREFIX} cannot be told ({'; '.join(probe.problems)})"
    for name in probe.abstractions:
        if name in _READ_ONLY_ABSTRACTIONS:
            return f"{PREFIX} lies on {name}"
    if probe.file_system in _READ_ONLY_FILE_SYSTEMS:
        return f"{PREFIX} lies on {probe.file_system}"
    return None
