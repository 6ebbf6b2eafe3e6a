# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which machine and which boot this is; the same ids as the kubelet puts into the Node object."""

from __future__ import annotations

import os
from typing import Optional

from ..files import read_text

GPU_VENDOR = "0x10de"
# PCI base class 03: display controller; 0300 VGA, 0302 3D (data-centre GPUs). Audio functions and NVSwitches have other classes.
_GPU_CLASSES = ("0x0300", "0x0302")


def read_machine_id(root: str = "/") -> str:
    """/etc/machine-id, else the D-Bus one.

    :raises OSError: when neither is there or readable.
    """
    for path in ("etc/machine-id", "var/lib/dbus/machine-id"):
        text = read_text(os.path.join(root, path))
        if text and text.strip():
            return text.strip()
    raise FileNotFoundError("/etc/machine-id is missing or empty")


def read_system_uuid(root: str = "/") -> str:
    """The firmware's UUID of the machine, lower case. Root only.

    :raises OSError: when the firmware gives none (containers, some ARM boards) or it cannot be read.
    """
    return _demand(root, "sys/class/dmi/id/product_uuid").lower()


def read_boot_id(root: str = "/") -> str:
    """The id that the kernel drew at this boot.

    :raises OSError: when it cannot be read.
    """
    return _demand(root, "proc/sys/kernel/random/boot_id")


def read_cmdline(root: str = "/") -> str:
    """The running kernel's command line.

    :raises OSError: when it cannot be read.
    """
    return _demand(root, "proc/cmdline")


def read_pci_gpus(root: str = "/") -> list[str]:
    """The PCI addresses of NVIDIA GPUs (`0000:17:00.0`), whether or not a driver is bound.

    :raises OSError: when the kernel shows no PCI bus.
    """
    folder = os.path.join(root, "sys/bus/pci/devices")
    return [address for address in sorted(os.listdir(folder)) if _is_gpu(os.path.join(folder, address))]


def _is_gpu(device: str) -> bool:
    vendor, kind = (read_text(os.path.join(device, name)) or "" for name in ("vendor", "class"))
    return vendor.strip() == GPU_VENDOR and kind.startswith(_GPU_CLASSES)


def _demand(root: str, path: str) -> str:
    text: Optional[str] = read_text(os.path.join(root, path))
    if text is None:
        raise FileNotFoundError(f"/{path} does not exist")
    return text.strip()
