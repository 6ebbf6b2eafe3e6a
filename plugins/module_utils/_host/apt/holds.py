# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""dpkg's selections, the database in which holds lie: written with exact names, read back afterwards."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..._model import HygieneError
from ..run import run
from .status import admin_dir, read_status

_TIMEOUT = 120.0
_AUDIT_LINES = 6


def write_selections(wanted: Mapping[str, str], root: str = "/") -> None:
    """Give packages their selections; the caller has the frontend lock (`lock.package_lock`).

    Not `apt-mark hold`: it takes names that it does not know as patterns, and holds what they match. `dpkg --set-selections` takes exact
    names, but ignores an unknown one with status 0, so the result is read back.

    :param wanted: package name as dpkg takes it -> install, hold, deinstall or purge.
    :raises HygieneError: when a selection is not as wanted afterwards; what was set stays, is recorded, and is found by the next run.
    """
    lines = "".join(f"{name}\t{selection}\n" for name, selection in sorted(wanted.items()))
    done = run(["dpkg", *admin_dir(root), "--set-selections"], _TIMEOUT, stdin=lines, env={"DPKG_FRONTEND_LOCKED": "1"})
    found = {package.id: package.want for package in read_status(root)}
    wrong = {name: found.get(name, "unknown") for name, selection in wanted.items() if found.get(name) != selection}
    if not done.ok or wrong:
        raise HygieneError(
            f"{done.summary}; selections that are not as wanted: {', '.join(f'{name} ({state})' for name, state in sorted(wrong.items())) or 'none'}",
            "The kernel is pinned only with every one of them",
            "Make `dpkg --set-selections` work on this host, then start this again",
            {"unset": sorted(wrong)},
        )


def demand_finished(root: str = "/") -> None:
    """Make sure that no dpkg run was cut short.

    :raises HygieneError: when its journal is still there (numbered files in updates/, as dpkg and apt look for them).
    """
    folder = os.path.join(root, "var/lib/dpkg/updates")
    left = sorted(name for name in os.listdir(folder) if name.isdigit()) if os.path.isdir(folder) else []
    if left:
        raise HygieneError(
            f"dpkg was interrupted: {folder} has {', '.join(left)}", "The package database is not settled, and apt refuses to work", "Run `dpkg --configure -a`"
        )


def demand_sound(root: str = "/") -> None:
    """Make sure that no package is half installed.

    :raises HygieneError: with what `dpkg --audit` says.
    """
    done = run(["dpkg", *admin_dir(root), "--audit"], _TIMEOUT)
    if not done.ok or done.out.strip():
        said = [line.strip() for line in done.out.splitlines() if line.strip()][:_AUDIT_LINES]
        raise HygieneError(
            f"`dpkg --audit` reports: {' / '.join(said)}" if said else done.summary,
            "What apt would do to the kernel cannot be told while packages are half installed",
            "Run `dpkg --configure -a`, then `apt-get --fix-broken install`",
        )
