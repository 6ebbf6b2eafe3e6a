# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The loadable modules nvidia, nvidia-uvm, nvidia-modeset, nvidia-drm, nvidia-peermem and gdrdrv, built for the lab's kernels."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from . import aptrepo, chroot
from .archive import Archive, Kernel
from .cache import built, cache_root, key
from .progress import Progress
from .rootfs import build_rootfs

SOURCES = Path(__file__).resolve().parents[1] / "modules"
NAMES = ("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm", "nvidia-peermem", "gdrdrv")


def build_modules(progress: Progress) -> Path:
    """The folder with `<kernel release>/<name>.ko` for the two kernels that are booted."""
    found = aptrepo.kernels(Archive())
    wanted = (found.older, found.newer)

    def build(folder: Path) -> None:
        _build(folder, wanted, progress)

    entry = cache_root() / "modules" / key(SOURCES, Path(__file__).read_bytes(), *(f"{kernel.release} {kernel.version}" for kernel in wanted))
    return built(entry, build, "kernel modules", progress)


def _build(folder: Path, wanted: tuple[Kernel, ...], progress: Progress) -> None:
    # A compiler of the kernels' own release, whatever the machine runs.
    root, log = folder / "root", folder / "build.log"
    subprocess.run(["cp", "--archive", "--reflink=auto", str(build_rootfs(progress)), str(root)], check=True)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    headers = [package for kernel in wanted for package in kernel.packages if package.startswith("linux-headers-")]
    chroot.run(root, ["apt-get", "update"], log=log)
    chroot.run(root, ["apt-get", "-y", "install", "make", *headers], log=log)
    for kernel in wanted:
        shutil.copytree(SOURCES, root / "build")
        chroot.run(root, ["make", "-C", f"/usr/src/linux-headers-{kernel.release}", "M=/build", "modules"], log=log)
        target = folder / kernel.release
        target.mkdir()
        for name in NAMES:
            shutil.copy(root / "build" / f"{name}.ko", target)
        shutil.rmtree(root / "build")
    shutil.rmtree(root)
