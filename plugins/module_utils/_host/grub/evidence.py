# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The `boot` part of the evidence about a host."""

from __future__ import annotations

from typing import Any, Optional

from . import defaults, loader
from .boots import rows
from .facts import NEXT_ENTRY, Host, leads_to, resolve_default
from .host import read_host
from .menu import GRUB_CFG
from .plan import once_obstacles


def read_boot(root: str = "/") -> dict[str, Any]:
    """The `boot` part of the evidence: loader, default, next, entries, once_supported, problems.

    :raises OSError: when a file exists but cannot be read.
    """
    return describe(read_host(root))


def describe(host: Host) -> dict[str, Any]:
    """The evidence about a host's boot; pure."""
    obstacles = once_obstacles(host)
    problems = [*host.bypassed]
    problems.extend(filter(None, (host.menu_problem, host.settings.problem, host.grubenv_problem)))
    if host.menu:
        problems.extend((*host.menu.problems, *host.menu.invalid))
        stale = _stale(host)
        if stale:
            problems.append(stale)
    problems.extend(f"a trial boot is not possible: {obstacle.seen}" for obstacle in obstacles)
    return {
        "loader": host.loader,
        "default": _default(host),
        "next": _next(host),
        "entries": rows(host.menu) if host.menu else [],
        "once_supported": not obstacles,
        "problems": list(dict.fromkeys(problems)),
    }


def _default(host: Host) -> dict[str, Any]:
    if host.menu is None:
        return {"spec": None, "source": host.settings.source, "path": None, "kernel_release": None, "problems": [host.menu_problem]}
    resolution = resolve_default(host.menu)
    release, problems = leads_to(resolution)
    source = host.settings.source if host.menu.default_origin == GRUB_CFG else host.menu.default_origin
    return {"spec": host.menu.default or "", "source": source, "path": resolution.path, "kernel_release": release, "problems": problems}


def _next(host: Host) -> dict[str, Any]:
    if host.loader != loader.GRUB or host.following is None:
        return {"kernel_release": None, "via": "unknown"}
    if host.kexec:
        return {"kernel_release": None, "via": "kexec"}
    release, _problems = leads_to(resolve_default(host.following))
    return {"kernel_release": release, "via": NEXT_ENTRY if host.pending else "default"}


def _stale(host: Host) -> Optional[str]:
    """Whether the settings say another default than grub.cfg."""
    if host.menu is None or host.settings.problem or host.menu.default_origin != GRUB_CFG:
        return None
    wanted = host.settings.spec
    if wanted == "saved":
        wanted = (host.grubenv or {}).get("saved_entry", "")
    if wanted == (host.menu.default or ""):
        return None
    source = host.settings.source or defaults.MAIN
    return f"{source} says GRUB_DEFAULT={host.settings.spec!r} and grub.cfg has {host.menu.default!r}: update-grub was not run since"
