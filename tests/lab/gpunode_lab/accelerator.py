# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which accelerator a guest really boots with, and what a saved running state depends on besides the guest."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path

from . import aptrepo
from .archive import Archive
from .cache import cache_root, key
from .progress import Progress

PROGRAM = "qemu-system-x86_64"
MEMORY_MB = 2048
CPUS = 2


@functools.cache
def accelerator() -> str:
    """`kvm` where the node's own kernel boots with it, else `tcg`.

    /dev/kvm alone proves nothing: on some hosts a guest aborts on its first MSR, or runs a boot sector but not a kernel.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    answer = cache_root() / "accelerator" / key(version(), " ".join(os.uname()), Path(__file__).read_bytes())
    if not answer.exists():
        answer.parent.mkdir(parents=True, exist_ok=True)
        progress = Progress(cache_root() / "durations.json")
        repository = aptrepo.build(progress)
        kernel = aptrepo.kernels(Archive()).older
        with progress.step("does a kernel boot with KVM?"), tempfile.TemporaryDirectory() as scratch:
            [package] = repository.glob(f"pool/linux-image-{kernel.release}_*.deb")
            subprocess.run(["dpkg-deb", "--extract", str(package), scratch], check=True)
            boots = kernel_boots(Path(scratch) / "boot" / f"vmlinuz-{kernel.release}", "kvm")
        answer.write_text("kvm" if boots else "tcg", "ascii")
    return answer.read_text("ascii")


def kernel_boots(kernel: Path, name: str, patience: float = 30.0) -> bool:
    """Whether a kernel without a root filesystem gets as far as missing it."""
    command = [
        PROGRAM, "-accel", name, "-cpu", "max", "-smp", str(CPUS), "-m", "512", "-display", "none", "-vga", "none", "-monitor", "none", "-nic", "none",
        "-serial", "stdio", "-no-reboot", "-kernel", str(kernel), "-append", "console=ttyS0 panic=-1",
    ]
    try:
        answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=patience)
    except subprocess.TimeoutExpired:
        return False
    return b"VFS: Unable to mount root fs" in answer.stdout


@functools.cache
def version() -> str:
    """QEMU's version line."""
    return subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def identity() -> str:
    """What a saved running state depends on besides the guest: QEMU's version, the accelerator, the machine's shape."""
    return f"{version()} {accelerator()} {MEMORY_MB} {CPUS}"
