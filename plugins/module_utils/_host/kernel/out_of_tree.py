# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel modules from outside the kernel's own tree (MOFED/DOCA, EFA, Lustre, ZFS, ...): which run, and for which kernels the host has them.

A node that moves to another kernel comes back without those that the other kernel lacks. The NVIDIA stack is left out: its driver is what the
move is for, and is looked at by itself.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Optional

from ..._model import HygieneError
from ..files import read_text
from ..run import run
from .dkms import DkmsModule, read_dkms

_NVIDIA = re.compile(r"^(nvidia([-_].*)?|gdrdrv)$")
_TIMEOUT = 5.0


@dataclass(frozen=True)
class ModuleFile:
    """A module's file for one kernel: the path below /lib/modules/<release>, and whether it belongs to the kernel's own tree."""

    path: str
    in_tree: bool


def parse_out_of_tree(proc_modules: str) -> list[str]:
    """The loaded modules that taint the kernel as out-of-tree (`O` in the last column of /proc/modules), outside the NVIDIA stack.

    Unsigned modules (`E`) that are not `O` are the kernel's own, built on the spot.
    """
    found = []
    for line in proc_modules.splitlines():
        words = line.split()
        if words and "O" in _taints(words[-1]) and not _NVIDIA.match(words[0]):
            found.append(words[0])
    return sorted(found)


def parse_module_paths(modules_dep: str) -> dict[str, str]:
    """Module name (with underscores, as the kernel spells it) to its path, from modules.dep."""
    paths = (line.partition(":")[0].strip() for line in modules_dep.splitlines())
    return {module_name(path): path for path in paths if path}


def module_name(path: str) -> str:
    """`updates/dkms/nvidia-fs.ko.zst` is `nvidia_fs`."""
    return re.sub(r"\.ko(\.(zst|xz|gz))?$", "", os.path.basename(path)).replace("-", "_")


def join(
    loaded: Iterable[str], dkms: Iterable[DkmsModule], releases: Iterable[str], running: str, file_of: Callable[[str, str], Optional[ModuleFile]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of `out_of_tree`, and the names of the modules that no kernel on disk has, so that something else than the host loaded them.

    A module that is out of tree where it runs is there for another kernel only as an out-of-tree file again: the kernel's own module of the same name
    is another driver (mlx5_core of MOFED and of Linux).

    :param file_of: gives the file of a module for a kernel release.
    """
    known = list(releases)
    rows, elsewhere = [], []
    for name in loaded:
        files = ((release, file_of(release, name)) for release in known)
        available = [release for release, file in files if file is not None and not file.in_tree]
        if available:
            rows.append({"name": name, "source": "module", "loaded": True, "version": None, "available_for": available})
        else:
            elsewhere.append(name)
    rows += [_dkms_row(module, known, running) for module in dkms if not _NVIDIA.match(module.name)]
    return rows, elsewhere


def _dkms_row(module: DkmsModule, releases: list[str], running: str) -> dict[str, Any]:
    return {
        "name": module.name,
        "source": "dkms",
        "loaded": None,
        "version": module.installed.get(running) or module.versions[-1],
        "available_for": [release for release in releases if release in module.installed],
    }


def read_out_of_tree(releases: Iterable[str], running: str, root: str = "/") -> tuple[list[dict[str, Any]], list[str]]:
    """What `join` says of this host.

    :raises OSError: when /proc/modules, a modules.dep or DKMS's tree exists but cannot be read.
    :raises HygieneError: when modinfo has to be asked and does not answer.
    """
    known = list(releases)
    paths = {release: _paths(release, root) for release in known}
    loaded = parse_out_of_tree(read_text(os.path.join(root, "proc/modules")) or "")

    def file_of(release: str, name: str) -> Optional[ModuleFile]:
        path = paths[release].get(name)
        full = os.path.join(root, "lib/modules", release, path or "")
        if path is None or not os.path.isfile(full):
            return None
        # Outside kernel/ lies nothing of the kernel's own. Inside, Ubuntu ships out-of-tree modules too (kernel/zfs), so the file is asked.
        return ModuleFile(path, path.startswith("kernel/") and _says_in_tree(full))

    return join(loaded, read_dkms(root), known, running, file_of)


def _paths(release: str, root: str) -> Mapping[str, str]:
    return parse_module_paths(read_text(os.path.join(root, "lib/modules", release, "modules.dep")) or "")


def _taints(word: str) -> str:
    return word[1:-1] if word.startswith("(") and word.endswith(")") else ""


def _says_in_tree(path: str) -> bool:
    ended = run(["modinfo", "-F", "intree", path], timeout=_TIMEOUT)
    if not ended.ok:
        raise HygieneError(
            ended.summary,
            "Whether the module file belongs to the kernel's own tree is not known, so neither is for which kernels the loaded module exists",
            "Install kmod, and reinstall the kernel's modules when the file is damaged",
        )
    return ended.out.strip() == "Y"
