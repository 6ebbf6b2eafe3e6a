# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts made of files: what /boot, /lib/modules and /proc of a machine look like, below a temporary folder."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Iterable

import pytest


class HostTree:
    """A root folder that is filled step by step."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("boot", "lib/modules", "etc", "proc/sys/kernel/random"):
            (root / folder).mkdir(parents=True)

    def __str__(self) -> str:
        return str(self.root)

    def write(self, path: str, text: str = "") -> None:
        """One file with its folders."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def kernel(self, release: str, modules: Iterable[str] = ("kernel/fs/ext4/ext4.ko.zst",), headers: bool = True, build: str = "") -> None:
        """A complete kernel: image (whose header tells `build`), initrd, modules with their index, headers."""
        (self.root / f"boot/vmlinuz-{release}").write_bytes(image(release, build) if build else b"MZ" * 512)
        self.write(f"boot/initrd.img-{release}", "x" * 2048)
        self.modules(release, modules)
        if headers:
            self.write(f"usr/src/linux-headers-{release}/Makefile")
            self.write(f"usr/src/linux-headers-{release}/include/generated/utsrelease.h")

    def modules(self, release: str, paths: Iterable[str]) -> None:
        """The module folder, as depmod leaves it."""
        for path in paths:
            self.write(f"lib/modules/{release}/{path}")
        self.write(f"lib/modules/{release}/modules.dep", "".join(f"{path}: kernel/lib/crc.ko\n" for path in paths))

    def dkms(self, name: str, version: str, releases: Iterable[str], architecture: str = "x86_64") -> None:
        """A registered DKMS module, installed for the releases."""
        folder = self.root / "var/lib/dkms" / name
        (folder / version).mkdir(parents=True, exist_ok=True)
        self.write(f"usr/src/{name}-{version}/dkms.conf")
        (folder / version / "source").symlink_to(f"/usr/src/{name}-{version}")
        for release in releases:
            (folder / version / release / architecture / "module").mkdir(parents=True)
            (folder / f"kernel-{release}-{architecture}").symlink_to(f"{version}/{release}/{architecture}")


def image(release: str, build: str) -> bytes:
    """The head of an x86 kernel image: magic, and the pointer to the version text (Documentation/arch/x86/boot.rst)."""
    head = bytearray(0x4000)
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x20E, 0x3000 - 0x200)
    text = f"{release} (buildd@example) {build}".encode() + b"\0"
    head[0x3000 : 0x3000 + len(text)] = text
    return bytes(head)


@pytest.fixture
def host(tmp_path: Path) -> HostTree:
    """An empty host."""
    return HostTree(tmp_path / "host")


@pytest.fixture
def leapt(host: HostTree) -> HostTree:
    """The incident: upgraded from Ubuntu 24.04 to 26.04 by accident, both kernels complete, booted into the new one."""
    host.kernel("6.8.0-117-generic", ["kernel/fs/ext4/ext4.ko.zst", "updates/dkms/mlx5_core.ko.zst"])
    host.kernel("7.0.0-15-generic", ["kernel/fs/ext4/ext4.ko.zst", "kernel/drivers/net/mlx5_core.ko.zst"], build="#15-Ubuntu SMP PREEMPT_DYNAMIC")
    host.write("etc/os-release", 'NAME="Ubuntu"\nVERSION_ID="26.04"\nID=ubuntu\nVERSION_CODENAME=resolute\nPRETTY_NAME="Ubuntu 26.04 LTS"\n')
    host.write("etc/machine-id", "5f0d9c3f0e1b4a0c9a1f1f7d3c2b1a00\n")
    host.write("sys/class/dmi/id/product_uuid", "4C4C4544-0043-3510-8052-B4C04F564433\n")
    host.write("proc/sys/kernel/random/boot_id", "0c2a1c2e-9a51-4b1d-8f0e-1c9d5a4f7b11\n")
    host.write("proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz-7.0.0-15-generic root=UUID=1b2c ro quiet\n")
    host.write("proc/modules", "ext4 1 1 - Live 0x0000000000000000\n")
    return host
