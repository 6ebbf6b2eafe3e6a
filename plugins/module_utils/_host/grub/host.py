# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's GRUB as it is: files, menu, settings; read without writing anything."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Mapping, Optional

from ..files import read_text
from ..run import run
from . import deadman, defaults, env, loader
from .boots import boots
from .menu import CUSTOM_CFG, GRUB_CFG, GRUBENV, PREFIX, Menu
from .menu import run as run_menu
from .resolve import Resolution, resolve
from .script import ScriptError

MODULE = "grub_default"
CUSTOM_SCRIPT = "/etc/grub.d/41_custom"
NEXT_ENTRY = "next_entry"
# What makes GRUB boot something else than the default, once (00_header; prev_entry and initrdfail: Ubuntu's initrd-less boot).
ONCE_VARIABLES = (NEXT_ENTRY, "prev_entry", "initrdfail")
# Where GRUB can read but not write (check_writable in 00_header; f2fs has no write support either, and btrfs has one only in newer releases).
_READ_ONLY_ABSTRACTIONS = ("diskfilter", "lvm", "cryptodisk")
_READ_ONLY_FILE_SYSTEMS = ("btrfs", "cpiofs", "f2fs", "newc", "odc", "romfs", "squash4", "tarfs", "zfs")
_PROBE_TIMEOUT = 60.0


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
    settings: defaults.Settings
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


def read_host(root: str = "/", probe: Optional[Probe] = None) -> Host:
    """Read it all.

    :param probe: how GRUB sees /boot; asked of grub-probe when not given.
    :raises OSError: when a file exists but cannot be read.
    """
    facts = loader.read_facts(root)
    name, bypassed = loader.decide(facts)
    grub_cfg, custom = read_text(_inside(root, GRUB_CFG)), read_text(_inside(root, CUSTOM_CFG))
    grubenv_text = read_text(_inside(root, GRUBENV))
    variables, grubenv_problem = _grubenv(root, grubenv_text)
    platform = "efi" if facts.efi else "pc"
    files = {CUSTOM_CFG: custom, GRUBENV: grubenv_text, GRUB_CFG: grub_cfg}
    menu, following, menu_problem = None, None, None
    if grub_cfg is None:
        menu_problem = f"there is no {GRUB_CFG}"
    else:
        lasting = {key: value for key, value in (variables or {}).items() if key not in ONCE_VARIABLES}
        try:
            menu = run_menu(grub_cfg, files, lasting, platform)
            following = run_menu(grub_cfg, files, variables or {}, platform)
        except ScriptError as error:
            menu_problem = f"{GRUB_CFG} is no valid GRUB script ({error})"
    return Host(
        loader=name,
        bypassed=tuple(bypassed),
        kexec=facts.kexec_loaded or facts.kexec_service,
        platform=platform,
        settings=defaults.read(root),
        grub_cfg=grub_cfg,
        custom=custom,
        grubenv=variables,
        grubenv_text=grubenv_text,
        grubenv_problem=grubenv_problem,
        menu=menu,
        following=following,
        menu_problem=menu_problem,
        custom_script=_custom_script(root),
        probe=probe or (read_probe(root) if name == loader.GRUB else Probe(None, None, None, None, ())),
        drop_in=read_text(_inside(root, defaults.DROP_IN)),
        unit=read_text(_inside(root, deadman.UNIT_PATH)),
        links=tuple(path for path in deadman.LINKS if os.path.islink(_inside(root, path))),
    )


def read_probe(root: str = "/") -> Probe:
    """Ask GRUB's own tools how it sees /boot."""
    boot, grub, block = _inside(root, "/boot"), _inside(root, PREFIX), _inside(root, GRUBENV)
    problems: list[str] = []
    abstraction = _ask(["grub-probe", "--target=abstraction", block if os.path.exists(block) else grub], problems)
    return Probe(
        folder=_ask(["grub-mkrelpath", boot], problems),
        uuid=_ask(["grub-probe", "--target=fs_uuid", boot], problems),
        abstractions=None if abstraction is None else tuple(abstraction.split()),
        file_system=_ask(["grub-probe", "--target=fs", grub], problems),
        problems=tuple(problems),
    )


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


def _ask(argv: list[str], problems: list[str]) -> Optional[str]:
    completed = run(argv, _PROBE_TIMEOUT)
    if not completed.ok:
        problems.append(completed.summary)
        return None
    return completed.out.strip()


def _grubenv(root: str, text: Optional[str]) -> tuple[Optional[dict[str, str]], Optional[str]]:
    if text is None:
        return None, f"there is no {GRUBENV}"
    try:
        variables = env.parse(text)
    except ValueError as error:
        return None, f"{GRUBENV} is no environment block: {error}"
    stat = os.stat(_inside(root, GRUBENV))
    if stat.st_blocks * 512 < stat.st_size:
        return variables, f"{GRUBENV} is a sparse file, which GRUB does not write"
    return variables, None


def _custom_script(root: str) -> Optional[str]:
    path = _inside(root, CUSTOM_SCRIPT)
    if not os.path.exists(path):
        return f"there is no {CUSTOM_SCRIPT}"
    return None if os.access(path, os.X_OK) else f"{CUSTOM_SCRIPT} is not executable"


def _inside(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
