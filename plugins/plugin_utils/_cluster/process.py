# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which process on which controller this is, and whether another one still runs. Reads /proc of the controller."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

# The kernel counts a process's start in ticks since boot; clocks stepped since then shift the result a little.
CLOCK_SLACK = timedelta(seconds=60)


@dataclass(frozen=True)
class Owner:
    """A process on a controller. Two with the same `controller` see the same process ids."""

    controller: str
    pid: int


def this_owner() -> Owner:
    """The ansible-playbook process: an action runs in a worker forked from it.

    A host name alone does not tell two containers or two boots apart, so the kernel's boot id and the pid namespace go with it.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")[:8]
    namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    return Owner(f"{socket.gethostname()}/{boot}-{namespace}", os.getppid())


def is_alive(owner: Owner, me: Owner, seen: datetime) -> bool | None:
    """Whether the process that wrote something at `seen` still runs; None when it cannot be known from here.

    A process that started after `seen` only has the number of the one that died.
    """
    if owner.controller != me.controller:
        return None
    try:
        fields = Path(f"/proc/{owner.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    if fields[0] in "ZX":
        return False
    uptime = float(Path("/proc/uptime").read_text("ascii").split()[0])
    age = timedelta(seconds=uptime - int(fields[19]) / os.sysconf("SC_CLK_TCK"))
    return datetime.now(UTC) - age <= seen + CLOCK_SLACK
