# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's GRUB as it is: files, menu, settings; read without writing anything."""

from __future__ import annotations

import os
from typing import Optional

from ..files import read_text
from ..run import run
from . import deadman, defaults, env, loader
from .facts import ONCE_VARIABLES, Host, Probe
from .menu import CUSTOM_CFG, GRUB_CFG, GRUBENV, PREFIX
from .menu import run as run_menu
from .script import ScriptError

MODULE = "grub_default"
CUSTOM_SCRIPT = "/etc/grub.d/41_custom"
_PROBE_TIMEOUT = 60.0


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
