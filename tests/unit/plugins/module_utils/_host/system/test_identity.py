# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ids of machine and boot, and the GPUs on the PCI bus."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.system import identity


def test_the_ids_are_those_that_a_kubelet_reports(leapt: Any) -> None:
    root = str(leapt)
    assert identity.read_machine_id(root) == "5f0d9c3f0e1b4a0c9a1f1f7d3c2b1a00"
    assert identity.read_system_uuid(root) == "4c4c4544-0043-3510-8052-b4c04f564433"
    assert identity.read_boot_id(root) == "0c2a1c2e-9a51-4b1d-8f0e-1c9d5a4f7b11"
    assert identity.read_cmdline(root) == "BOOT_IMAGE=/boot/vmlinuz-7.0.0-15-generic root=UUID=1b2c ro quiet"


def test_an_empty_machine_id_gives_way_to_dbus(host: Any) -> None:
    host.write("etc/machine-id", "\n")
    host.write("var/lib/dbus/machine-id", "aa0d9c3f0e1b4a0c9a1f1f7d3c2b1a00\n")
    assert identity.read_machine_id(str(host)) == "aa0d9c3f0e1b4a0c9a1f1f7d3c2b1a00"


@pytest.mark.parametrize("reader", [identity.read_machine_id, identity.read_system_uuid, identity.read_boot_id, identity.read_cmdline])
def test_a_missing_id_is_an_error(host: Any, reader: Any) -> None:
    with pytest.raises(FileNotFoundError, match=r"does not exist|missing or empty"):
        reader(str(host))


@pytest.mark.parametrize(
    ("vendor", "kind", "gpu"),
    [
        ("0x10de", "0x030000", True),
        ("0x10de", "0x030200", True),
        ("0x10de", "0x040300", False),
        ("0x10de", "0x068000", False),
        ("0x1002", "0x030000", False),
    ],
)
def test_gpus_are_nvidias_display_controllers(host: Any, vendor: str, kind: str, gpu: bool) -> None:
    host.write("sys/bus/pci/devices/0000:17:00.0/vendor", f"{vendor}\n")
    host.write("sys/bus/pci/devices/0000:17:00.0/class", f"{kind}\n")
    assert identity.read_pci_gpus(str(host)) == (["0000:17:00.0"] if gpu else [])


def test_a_host_without_pci_is_unknown_not_empty(host: Any) -> None:
    with pytest.raises(FileNotFoundError):
        identity.read_pci_gpus(str(host))
