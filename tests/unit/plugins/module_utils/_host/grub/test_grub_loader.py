# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.loader import Facts, decide, read_facts

GRUB_HOST: dict[str, Any] = {
    "machine": "x86_64",
    "efi": False,
    "loader_info": "",
    "boot_image": "/boot/vmlinuz-1",
    "grub_cfg": True,
    "mkconfig": True,
    "markers": frozenset(),
    "kexec_loaded": False,
    "kexec_service": False,
}


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({}, "grub"),
        ({"efi": True, "loader_info": "GRUB 2.12"}, "grub"),
        # The variable tells what booted, even where systemd-boot is installed beside it.
        ({"efi": True, "loader_info": "GRUB 2.12", "markers": frozenset({"systemd-boot"})}, "grub"),
        ({"efi": True, "loader_info": "systemd-boot 255.4"}, "systemd-boot"),
        ({"efi": True, "markers": frozenset({"systemd-boot"})}, "unknown"),
        ({"grub_cfg": False, "markers": frozenset({"systemd-boot"})}, "systemd-boot"),
        ({"grub_cfg": False}, "unknown"),
        ({"boot_image": None}, "unknown"),
        ({"markers": frozenset({"container"})}, "none"),
        ({"markers": frozenset({"nullboot"})}, "nullboot"),
        ({"markers": frozenset({"azure-fde"})}, "nullboot"),
        ({"markers": frozenset({"extlinux"})}, "extlinux"),
        ({"markers": frozenset({"flash-kernel"})}, "flash-kernel"),
        ({"markers": frozenset({"raspberry-pi", "flash-kernel"})}, "raspberry-pi"),
        ({"markers": frozenset({"ubuntu-core"})}, "snap"),
        ({"markers": frozenset({"ostree"})}, "ostree"),
        ({"machine": "s390x"}, "zipl"),
        ({"machine": "ppc64le"}, "petitboot"),
    ],
)
def test_what_boots_a_host(facts: dict[str, Any], name: str) -> None:
    found, problems = decide(Facts(**{**GRUB_HOST, **facts}))
    assert found == name
    assert bool(problems) == (name != "grub")


@pytest.mark.parametrize("how", ["kexec_loaded", "kexec_service"])
def test_kexec_passes_grub_by(how: str) -> None:
    name, problems = decide(Facts(**{**GRUB_HOST, how: True}))
    assert name == "grub"
    assert len(problems) == 1
    assert "kexec" in problems[0]


def test_missing_tools_are_told() -> None:
    assert decide(Facts(**{**GRUB_HOST, "mkconfig": False})) == ("grub", ["update-grub or grub-mkconfig is missing"])


def test_facts_are_read_from_files(tmp_path: Any) -> None:
    def write(path: str, text: str = "") -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    write("proc/cmdline", "BOOT_IMAGE=/vmlinuz-6.8.0-117-generic root=/dev/vda ro\n")
    for path in ("boot/grub/grub.cfg", "usr/sbin/update-grub", "usr/sbin/grub-mkconfig", "etc/init.d/kexec-load"):
        write(path)
    write("etc/default/kexec", "LOAD_KEXEC=true\n")
    write("etc/default/kexec.d/off", "LOAD_KEXEC=false\n")
    write("sys/kernel/kexec_loaded", "0\n")
    facts = read_facts(str(tmp_path), "x86_64")
    assert facts == Facts("x86_64", False, "", "/vmlinuz-6.8.0-117-generic", True, True, frozenset(), False, False)
    write("etc/default/kexec.d/on", 'LOAD_KEXEC="true"\n')
    write("sys/kernel/kexec_loaded", "1\n")
    write("var/lib/dpkg/info/linux-image-6.8.0-1020-azure-fde.list")
    write("boot/efi/loader/loader.conf")
    write(".dockerenv")
    facts = read_facts(str(tmp_path), "x86_64")
    assert (facts.kexec_loaded, facts.kexec_service) == (True, True)
    assert facts.markers == {"azure-fde", "systemd-boot", "container"}


def test_the_loaders_name_is_utf16_behind_its_attributes(tmp_path: Any) -> None:
    folder = tmp_path / "sys/firmware/efi/efivars"
    folder.mkdir(parents=True)
    (folder / "LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f").write_bytes(b"\x06\0\0\0" + "GRUB 2.12\0".encode("utf-16-le"))
    facts = read_facts(str(tmp_path), "x86_64")
    assert (facts.efi, facts.loader_info) == (True, "GRUB 2.12")
