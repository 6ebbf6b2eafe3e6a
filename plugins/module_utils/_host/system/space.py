# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Room in /boot: what is free, and what one more kernel or a rewritten menu takes."""

from __future__ import annotations

import os
from typing import Any, Iterable, Mapping

_MIB = 1024 * 1024


def needed_for_a_kernel(kernels: Iterable[Mapping[str, Any]]) -> int:
    """Bytes for one more kernel: the largest image and the largest initrd there are, and 1 MiB.

    That is how the release upgrader estimates it (DistUpgradeCache, estimate_kernel_initrd_size_in_boot). update-initramfs writes a whole new
    initrd before it drops the old one, which this covers too.
    """
    rows = list(kernels)
    return sum(max((row[size] or 0 for row in rows), default=0) for size in ("image_bytes", "initrd_bytes")) + _MIB


def read_boot_space(kernels: Iterable[Mapping[str, Any]], root: str = "/") -> dict[str, int]:
    """The `boot_space` part, all in bytes: free_bytes, total_bytes, needed_bytes (one more kernel), menu_bytes (a new menu beside the old one).

    :raises OSError: when /boot cannot be read.
    """
    boot = os.path.join(root, "boot")
    state = os.statvfs(boot)
    return {
        "free_bytes": state.f_bavail * state.f_frsize,
        "total_bytes": state.f_blocks * state.f_frsize,
        "needed_bytes": needed_for_a_kernel(kernels),
        "menu_bytes": 2 * _size(os.path.join(boot, "grub/grub.cfg")) + _MIB,
    }


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
