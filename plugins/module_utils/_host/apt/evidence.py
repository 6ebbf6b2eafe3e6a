# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The packages part of a host's evidence."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Optional

from ..record import RUNS, load, runs_with
from .closure import Closure, closure, image_release, is_kernel_name
from .plan import vanished
from .status import Package, read_status

MODULE = "kernel_pin"


def read_packages(root: str = "/", kernel_release: Optional[str] = None) -> dict[str, Any]:
    """How the kernels are pinned: `{closure, held, metas, protected, problems}`.

    :param kernel_release: the release that shall be protected; without it the held ones, and when none is held the running one.
    :raises HygieneError: when dpkg cannot be asked.
    """
    runs = os.path.join(root, RUNS.lstrip("/"))
    records = [load(run, MODULE, runs) for run in runs_with(MODULE, runs)]
    lost = vanished(records, selections(packages := read_status(root)))
    return packages_evidence(packages, kernel_release or os.uname().release, bool(kernel_release), lost)


def packages_evidence(packages: Sequence[Package], kernel_release: str, only: bool, lost: Sequence[str] = ()) -> dict[str, Any]:
    """The same from a package list.

    :param kernel_release: the release to look at when no image package is held, or when `only` it counts.
    :param lost: packages whose recorded hold vanished.
    """
    pinned = sorted({release for package in packages if package.held and (release := image_release(package.name))})
    wanted = closure(packages, [kernel_release] if only or not pinned else pinned)
    held = sorted(package.id for package in packages if package.held)
    problems = _problems(packages, wanted, held, lost)
    return {
        "closure": list(wanted.names),
        "held": held,
        "metas": list(wanted.metas),
        "protected": any(image_release(name.partition(":")[0]) for name in wanted.versioned) and set(wanted.names) <= set(held),
        "problems": problems,
    }


def selections(packages: Sequence[Package]) -> dict[str, str]:
    """Package name as dpkg takes it -> selection, for the packages that are there."""
    return {package.id: package.want for package in packages if package.present}


def _problems(packages: Sequence[Package], wanted: Closure, held: Sequence[str], lost: Sequence[str]) -> list[str]:
    found = [f"no image package of kernel {release} is installed" for release in wanted.releases if not _has_image(packages, release)]
    found += [f"the recorded hold of {name} is gone" for name in lost]
    loose = [name for name in wanted.names if name not in held]
    if loose and len(loose) < len(wanted.names):
        found.append(f"held only in part; not held: {', '.join(loose)}")
    # With a hold on a package that is not there, dist-upgrade may remove the metapackage that wants it (apt's internal solver).
    ghosts = [package.id for package in packages if package.want == "hold" and not package.present and is_kernel_name(package.name)]
    found += [f"{name} is held but not installed, which protects nothing" for name in ghosts]
    return found + [f"{package.id} is {package.status}" for package in packages if package.present and not package.sound and is_kernel_name(package.name)]


def _has_image(packages: Sequence[Package], release: str) -> bool:
    return any(package.present and image_release(package.name) == release for package in packages)
