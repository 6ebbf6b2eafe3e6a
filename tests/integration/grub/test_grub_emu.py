# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real GRUB as the oracle: grub-emu runs a grub.cfg, and tells which linux line it came to.

grub-emu has no `linux`, so a function of that name, which GRUB looks for after its commands, prints its argument and ends the emulator.
"""

from __future__ import annotations

import os
import pty
import random
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.boots import boots, leaves
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.facts import resolve_default
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.menu import CUSTOM_CFG, GRUBENV, run
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.trial import ENTRY_ID, block
from grub_menus import FIXTURES

pytestmark = pytest.mark.quick

SEED = 20260101
UUID = "6f2b0b4e-8d0c-4c7b-9a51-2f8f1f0a7d11"
MENUS = sorted(str(path.relative_to(FIXTURES))[: -len(".cfg")] for path in FIXTURES.rglob("*.cfg"))
_ANSWER = re.compile(r"@@([^@]*(?:@[^@]+)*)@@")
_ANSWERED = re.compile(rf"{_ANSWER.pattern}|GNU GRUB  version")
# No entry of the fixtures holds `halt`; a function's last argument is quoted, so that the path comes out whole.
_ORACLE = "function linux {\n  echo \"@@$1@@\"\n  halt\n}\n"


def emulated(folder: Path, patience: float = 60) -> str:
    """What grub-emu prints on its terminal until it has answered or shown its menu; to end without either is a failure of the oracle.

    It gets a terminal of its own and leads its session: in the background of one, or without any, it would be stopped for ever.
    """
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe("grub-emu", ["grub-emu", "-d", str(folder), "-r", "host"], {**os.environ, "TERM": "xterm"})  # noqa: S606  # no shell is wanted
    said, deadline = "", time.monotonic() + patience
    try:
        while not _ANSWERED.search(said):
            assert select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0], f"grub-emu gave no answer in {patience} s: {said!r}"
            try:
                said += os.read(terminal, 65536).decode(errors="replace").replace("\r", "").replace("\n", "")
            except OSError:  # EIO: it has ended
                break
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    assert _ANSWERED.search(said), f"grub-emu ended without an answer: {said!r}"
    return said


def grub(folder: Path, text: str, grubenv: Mapping[str, str] | None = None, custom: str | None = None) -> str | None:
    """The path of the linux line that real GRUB comes to; None when it comes to none and shows its menu instead."""
    folder.mkdir(parents=True, exist_ok=True)
    # A graphical terminal cannot be read from here.
    text = re.sub(r"^terminal_output .*$", "", text, flags=re.MULTILINE)
    (folder / "grub.cfg").write_text(_ORACLE + text + "\nset timeout=0\nset timeout_style=menu\n")
    (folder / "custom.cfg").unlink(missing_ok=True)
    if custom is not None:
        (folder / "custom.cfg").write_text(custom)
    subprocess.run(["grub-editenv", folder / "grubenv", "create"], check=True)
    for name, value in (grubenv or {}).items():
        subprocess.run(["grub-editenv", folder / "grubenv", "set", f"{name}={value}"], check=True)
    found = _ANSWER.search(emulated(folder))
    return found.group(1) if found else None


def ours(text: str, grubenv: Mapping[str, str] | None = None, custom: str | None = None) -> str | None:
    """The same by our own rules."""
    menu = run(text, {CUSTOM_CFG: custom, GRUBENV: "#"}, grubenv or {}, "emu")
    leaf = resolve_default(menu).leaf
    return next(iter(boots(leaf).images), None) if leaf else None


@pytest.fixture(autouse=True)
def _need_grub_emu() -> None:
    assert shutil.which("grub-emu"), "grub-emu is missing: apt-get install grub-emu"


def specs(names: list[str], chance: random.Random) -> str:
    """A spec made of names, numbers and their likes."""
    pieces = [*names, *names, "0", "1", "2", "7", "0x1", "01", "08", " 1", "-1", "gone", "", "1x"]
    chosen = [chance.choice(pieces) for _ in range(chance.randint(1, 3))]
    return chance.choice([">", ">", ">", " > ", ">>"]).join(piece.replace(">", ">>") if chance.random() < 0.8 else piece for piece in chosen)


@pytest.mark.parametrize("name", MENUS)
def test_written_menus_are_followed_as_grub_follows_them(tmp_path: Path, name: str) -> None:
    text = (FIXTURES / f"{name}.cfg").read_text()
    known = re.findall(r"'((?:gnulinux|Ubuntu|Debian|Advanced)[^']*)'", text)
    chance = random.Random(f"{SEED} {name}")
    for number in range(6):
        spec = specs(known, chance)
        grubenv = {"next_entry": spec} if number % 2 else {"saved_entry": spec}
        assert ours(text, grubenv) == grub(tmp_path / str(number), text, grubenv), f"{grubenv} in {name}"


def random_menu(chance: random.Random, depth: int = 0) -> tuple[str, list[str]]:
    """A menu's text, and the titles and ids in it."""
    lines, names = [], []
    for number in range(chance.randint(1, 4)):
        title = chance.choice(["a", "b", "a>b", "1st", "x y", "A", "0", ">"])
        identity = chance.choice(["", f"id{number}", "a", "id>0", "2"])
        names += [title, identity] if identity else [title]
        option = f" --id '{identity}'" if identity else ""
        if depth < 2 and chance.random() < 0.4:
            inner, more = random_menu(chance, depth + 1)
            names += more
            lines.append(f"submenu '{title}'{option} {{\n{inner}\n}}")
        else:
            lines.append(f"menuentry '{title}'{option} {{\nlinux /vmlinuz-{chance.randint(1, 10**9)}\n}}")
    return "\n".join(lines), names


@pytest.mark.parametrize("number", range(60))
def test_random_menus_are_followed_as_grub_follows_them(tmp_path: Path, number: int) -> None:
    chance = random.Random(f"{SEED} {number}")
    menu, names = random_menu(chance)
    spec = specs(names, chance)
    text = f"set default='{spec}'\n{menu}\n"
    assert ours(text) == grub(tmp_path, text), f"{spec!r} in\n{menu}"


@pytest.mark.parametrize("name", ["debian12/submenu", "debian13/submenu", "debian12/flat", "ubuntu/partuuid", "ubuntu/zfs"])
def test_the_trial_entry_is_what_a_one_shot_entry_boots(tmp_path: Path, name: str) -> None:
    text = (FIXTURES / f"{name}.cfg").read_text()
    menu = run(text, {}, {})
    entry = next(chain[-1] for chain in leaves(menu.entries) if len(boots(chain[-1]).initrds) == 1)
    custom = block(entry, "1.0", "r1").replace("/vmlinuz-", "/trial-")
    grubenv = {"next_entry": ENTRY_ID}
    expected = boots(entry).images[0].replace("/vmlinuz-", "/trial-")
    assert ours(text, grubenv, custom) == expected
    assert grub(tmp_path, text, grubenv, custom) == expected


@pytest.mark.parametrize(("linux", "initrd", "said"), [("false", "true", "reboot"), ("true", "false", "reboot"), ("true", "true", "boot")])
def test_the_trial_reboots_when_a_part_of_it_fails_to_load(tmp_path: Path, linux: str, initrd: str, said: str) -> None:
    text = (FIXTURES / "debian12/submenu.cfg").read_text()
    entry = run(text, {}, {}).entries[1].children[4]
    functions = f"function linux {{\n  {linux}\n}}\nfunction initrd {{\n  {initrd}\n}}\nfunction say_reboot {{\n  echo @@reboot@@\n  halt\n}}\n"
    # boot and reboot are commands, which win over functions: other names stand for them here.
    custom = block(entry, "6.8.0-124-generic", "r1").replace("\treboot\n", "\tsay_reboot\n").replace("\tboot\n", "\techo @@boot@@\n\thalt\n")
    assert grub(tmp_path, text, {"next_entry": ENTRY_ID}, functions + custom) == said
