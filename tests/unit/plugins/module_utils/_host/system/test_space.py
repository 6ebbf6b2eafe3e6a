# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much room /boot needs."""

from __future__ import annotations

import os
from typing import Any

from ansible_collections.gpunode.hygiene.plugins.module_utils._host.system.space import needed_for_a_kernel, read_boot_space

MIB = 1024 * 1024


def test_one_more_kernel_takes_the_largest_image_and_initrd_and_a_mebibyte() -> None:
    kernels: list[dict[str, Any]] = [
        {"image_bytes": 14 * MIB, "initrd_bytes": 150 * MIB},
        {"image_bytes": 16 * MIB, "initrd_bytes": 90 * MIB},
        {"image_bytes": None, "initrd_bytes": None},
    ]
    assert needed_for_a_kernel(kernels) == (16 + 150 + 1) * MIB
    assert needed_for_a_kernel([]) == MIB


def test_free_and_total_are_those_of_the_file_system(host: Any, monkeypatch: Any) -> None:
    host.write("boot/grub/grub.cfg", "x" * 8000)
    state = os.statvfs_result((4096, 1024, 250, 200, 100, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: state)
    assert read_boot_space([], str(host)) == {"free_bytes": 100 * 1024, "total_bytes": 250 * 1024, "needed_bytes": MIB, "menu_bytes": 16000 + MIB}
