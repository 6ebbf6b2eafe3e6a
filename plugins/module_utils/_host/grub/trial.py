# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The trial entry: a copy of the entry of a kernel that reboots when anything fails, in our own block of custom.cfg.

A plain entry that fails to load stops in GRUB's menu for ever, and GRUB's language has no `&&`: the commands are nested in `if`, and a reboot is behind them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional, Sequence

from ..._model import HygieneError
from .boots import INITRD, LINUX, commands
from .menu import Entry
from .script import Command, If, Statement

ENTRY_ID = "gpunode-trial"
_BEGIN = "### BEGIN gpunode.hygiene trial entry ###"
_END = "### END gpunode.hygiene trial entry ###"
_BLOCK = re.compile(rf"^{re.escape(_BEGIN)}\n.*?^{re.escape(_END)}\n?", re.MULTILINE | re.DOTALL)
# panic=: the kernel's, and initramfs-tools' instead of a shell. rd.*: dracut's. systemd.crash_reboot: when PID 1 dies.
# systemd.watchdog_sec: PID 1 arms the hardware watchdog and feeds it, so that a hang resets the machine; where there is none it goes on (systemd(1)).
_PANIC_SECONDS = 15
_WATCHDOG_SECONDS = 180
_REBOOT_ON_FAILURE = f"panic={_PANIC_SECONDS} rd.shell=0 rd.emergency=reboot systemd.crash_reboot=1 systemd.watchdog_sec={_WATCHDOG_SECONDS}"
_OURS = ("panic=", "rd.shell", "rd.emergency=", "systemd.crash_reboot", "systemd.watchdog_sec=", "gpunode.trial")
# savedefault, recordfail and initrdfail write the environment block: a trial leaves no trace in it. echo is noise; boot is ours.
_LEFT_OUT = ("savedefault", "recordfail", "initrdfail", "echo", "boot")


@dataclass(frozen=True)
class Trial:
    """A trial that stands in custom.cfg."""

    run: str
    kernel_release: str
    text: str


def block(entry: Entry, release: str, run: str) -> str:
    """The block of custom.cfg with the trial of a kernel.

    :param entry: the kernel's own normal entry.
    :raises HygieneError: when the entry has no line that loads the kernel together with an initrd.
    """
    linux, initrd = _pair(entry)
    kept = [line for statement in entry.body.statements for line in _kept(statement, entry.source)]
    lines = [
        _BEGIN,
        f"menuentry 'Trial of kernel {release} (gpunode.hygiene)' --unrestricted --id {ENTRY_ID} {{",
        *(f"\t{line}" for line in kept),
        f"\tif {_with_parameters(linux, entry.source, run)}; then",
        f"\t\tif {entry.source[initrd.start : initrd.end].strip()}; then",
        "\t\t\tboot",
        "\t\tfi",
        "\tfi",
        "\treboot",
        "}",
        _END,
    ]
    return "\n".join(lines) + "\n"


def without(custom: str) -> str:
    """custom.cfg without our block."""
    return _BLOCK.sub("", custom)


def with_block(custom: str, text: str) -> str:
    """custom.cfg with our block at its end, and nowhere else."""
    rest = without(custom)
    return rest + ("\n" if rest and not rest.endswith("\n") else "") + text


def find(custom: Optional[str]) -> Optional[Trial]:
    """The trial that stands in custom.cfg; None when there is none.

    :raises HygieneError: when there is more than one block, or one that is not whole.
    """
    blocks = _BLOCK.findall(custom or "")
    if len(blocks) > 1 or (custom or "").count(_BEGIN) != len(blocks) or (custom or "").count(_END) != len(blocks):
        raise HygieneError(
            f"/boot/grub/custom.cfg holds {len(blocks)} whole trial entries of ours and a torn or doubled marker",
            "Which lines are ours cannot be told",
            f"Remove the lines from {_BEGIN!r} to {_END!r} by hand",
        )
    if not blocks:
        return None
    run = re.search(r"\bgpunode\.trial=(\S+?);?\s", blocks[0])
    release = re.search(r"^menuentry 'Trial of kernel (\S+) ", blocks[0], re.MULTILINE)
    return Trial(run.group(1) if run else "", release.group(1) if release else "", blocks[0])


def _pair(entry: Entry) -> tuple[Command, Command]:
    """The linux line and its initrd line, from the branch that has both (GRUB_FORCE_PARTUUID also has one without)."""
    for linux, initrd in _pairs(entry.body.statements):
        return linux, initrd
    raise HygieneError(
        f"The menu entry {entry.title!r} has no linux line together with an initrd line",
        "A copy of it would not boot, or could not reboot by itself when the root file system is missing",
        "Run `update-initramfs -c -k RELEASE` and `update-grub`",
    )


def _pairs(statements: Sequence[Statement]) -> list[tuple[Command, Command]]:
    here = [statement for statement in statements if isinstance(statement, Command)]
    linux = [command for command in here if command.name in LINUX]
    initrd = [command for command in here if command.name in INITRD]
    found = [(linux[-1], initrd[-1])] if linux and initrd else []
    for statement in statements:
        if isinstance(statement, If):
            for _condition, body in statement.branches:
                found.extend(_pairs(body))
            found.extend(_pairs(statement.otherwise))
    return found


def _kept(statement: Statement, source: str) -> list[str]:
    """The lines of a statement that a trial needs too, as they stand."""
    if any(command.name in (*LINUX, *INITRD) for command in commands([statement])):
        return []
    if isinstance(statement, Command) and statement.name in _LEFT_OUT:
        return []
    return [line.strip() for line in source[statement.start : statement.end].splitlines() if line.strip()]


def _with_parameters(linux: Command, source: str, run: str) -> str:
    """The linux line with the parameters of a trial instead of its own of the same name."""
    words = [source[word.start : word.end] for word in linux.words if not word.shown.startswith(_OURS)]
    return " ".join([*words, _REBOOT_ON_FAILURE, f"gpunode.trial={run}"])
