# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which boot loader decides about a host's kernel, and what passes it by."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Iterable, Optional

from ..files import read_text
from .menu import GRUB_CFG

GRUB = "grub"
# systemd's boot loader interface: the loader's name, UTF-16 behind 4 bytes of attributes.
_LOADER_INFO = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_KEXEC_FILES = ("etc/default/kexec", "etc/default/kexec.d")


@dataclass(frozen=True)
class Facts:
    """What tells boot loaders apart.

    :param machine: `uname -m`.
    :param efi: booted by UEFI firmware.
    :param loader_info: the name that the boot loader left in the LoaderInfo variable; empty when it left none.
    :param boot_image: the BOOT_IMAGE parameter of the running kernel; None when there is none.
    :param markers: what was found of containers, other boot loaders and image-based systems, by name.
    :param kexec_loaded: a kernel waits to be started by kexec at the next reboot.
    :param kexec_service: kexec-tools is set to load one at every reboot.
    """

    machine: str
    efi: bool
    loader_info: str
    boot_image: Optional[str]
    grub_cfg: bool
    mkconfig: bool
    markers: frozenset[str]
    kexec_loaded: bool
    kexec_service: bool


# What was found -> what boots such a host. The first that applies decides.
_OTHERS = (
    ("container", "none", "this is a container, whose kernel is its host's"),
    ("ubuntu-core", "snap", "Ubuntu Core boots the kernel of a snap"),
    ("ostree", "ostree", "an OSTree system boots whole images"),
    ("nullboot", "nullboot", "nullboot writes the kernel into the EFI system partition itself"),
    ("azure-fde", "nullboot", "an Azure full-disk-encryption kernel is booted from the EFI system partition"),
    ("raspberry-pi", "raspberry-pi", "the Raspberry Pi firmware boots from /boot/firmware"),
    ("flash-kernel", "flash-kernel", "flash-kernel always flashes the newest kernel"),
    ("extlinux", "extlinux", "extlinux or U-Boot reads /boot/extlinux/extlinux.conf"),
)
_MACHINES = {"s390x": "zipl", "ppc64le": "petitboot", "ppc64": "petitboot"}


def decide(facts: Facts) -> tuple[str, list[str]]:
    """The boot loader's name (grub, systemd-boot, nullboot, extlinux, zipl, none, ..., unknown) and what speaks against GRUB's settings being honoured."""
    name, problems = _loader(facts)
    if facts.kexec_loaded:
        problems.append("a kernel is loaded for kexec, so the next reboot passes GRUB by (`kexec -u` unloads it)")
    if facts.kexec_service:
        problems.append("kexec-tools loads a kernel for kexec at every reboot (LOAD_KEXEC=true in /etc/default/kexec), which passes GRUB by")
    return name, problems


def _loader(facts: Facts) -> tuple[str, list[str]]:
    for marker, name, why in _OTHERS:
        if marker in facts.markers:
            return name, [why]
    if facts.machine in _MACHINES:
        return _MACHINES[facts.machine], [f"{facts.machine} hosts are booted by {_MACHINES[facts.machine]}"]
    if facts.loader_info and not facts.loader_info.startswith("GRUB"):
        name = "systemd-boot" if facts.loader_info.startswith("systemd-boot") else facts.loader_info.split()[0].lower()
        return name, [f"the boot loader calls itself {facts.loader_info!r}"]
    if not facts.grub_cfg:
        name = "systemd-boot" if "systemd-boot" in facts.markers else "unknown"
        return name, [f"there is no {GRUB_CFG}"]
    if not facts.loader_info and facts.boot_image is None:
        return "unknown", ["the running kernel has no BOOT_IMAGE parameter, so GRUB did not start it (a network boot or a direct kernel boot does not)"]
    if not facts.loader_info and "systemd-boot" in facts.markers and facts.efi:
        return "unknown", ["GRUB and systemd-boot are both installed, and no LoaderInfo variable tells which one booted"]
    if not facts.mkconfig:
        return GRUB, ["update-grub or grub-mkconfig is missing"]
    return GRUB, []


def read_facts(root: str = "/", machine: Optional[str] = None) -> Facts:
    """The facts about a host.

    :param machine: `uname -m`; the calling machine's when not given.
    """
    return Facts(
        machine=machine or os.uname().machine,
        efi=_there(root, "sys/firmware/efi"),
        loader_info=_loader_info(root),
        boot_image=_boot_image(read_text(os.path.join(root, "proc/cmdline")) or ""),
        grub_cfg=_there(root, GRUB_CFG),
        mkconfig=_there(root, "usr/sbin/update-grub") and _there(root, "usr/sbin/grub-mkconfig"),
        markers=frozenset(_markers(root)),
        kexec_loaded=(read_text(os.path.join(root, "sys/kernel/kexec_loaded")) or "").strip() == "1",
        kexec_service=_kexec_service(root),
    )


def _markers(root: str) -> Iterable[str]:
    found = {
        "container": any(_there(root, path) for path in (".dockerenv", "run/.containerenv", "run/systemd/container")) or _container_init(root),
        "ostree": _there(root, "run/ostree-booted"),
        "ubuntu-core": "ID=ubuntu-core" in (read_text(os.path.join(root, "etc/os-release")) or "").splitlines(),
        "nullboot": _there(root, "var/lib/dpkg/info/nullboot.list"),
        "azure-fde": any(re.match(r"linux-image-.*azure-fde.*\.list$", name) for name in _names(root, "var/lib/dpkg/info")),
        "raspberry-pi": _there(root, "boot/firmware/config.txt"),
        # flash-kernel leaves UEFI hosts alone unless FK_IGNORE_EFI is set.
        "flash-kernel": _there(root, "usr/sbin/flash-kernel") and not _there(root, "sys/firmware/efi"),
        "extlinux": _there(root, "boot/extlinux/extlinux.conf"),
        "systemd-boot": any(_there(root, f"{folder}/loader/loader.conf") for folder in ("efi", "boot", "boot/efi")),
    }
    return [name for name, there in found.items() if there]


def _container_init(root: str) -> bool:
    try:
        environment = read_text(os.path.join(root, "proc/1/environ")) or ""
    except OSError:
        return False
    return any(variable.startswith("container=") for variable in environment.split("\0"))


def _loader_info(root: str) -> str:
    try:
        with open(os.path.join(root, _LOADER_INFO), "rb") as stream:
            return stream.read()[4:].decode("utf-16-le", "replace").rstrip("\0")
    except OSError:
        return ""


def _boot_image(cmdline: str) -> Optional[str]:
    found = re.search(r"(?:^|\s)BOOT_IMAGE=(\S+)", cmdline)
    return found.group(1) if found else None


def _kexec_service(root: str) -> bool:
    """Whether kexec-tools would load a kernel: its script is there and the last assignment says so (/etc/init.d/kexec-load)."""
    if not _there(root, "etc/init.d/kexec-load"):
        return False
    paths = [_KEXEC_FILES[0], *(f"{_KEXEC_FILES[1]}/{name}" for name in _names(root, _KEXEC_FILES[1]))]
    text = "\n".join(read_text(os.path.join(root, path)) or "" for path in paths)
    values = re.findall(r"^\s*LOAD_KEXEC=[\"']?(\w*)", text, re.MULTILINE)
    return bool(values) and values[-1] == "true"


def _names(root: str, folder: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(root, folder)))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _there(root: str, path: str) -> bool:
    return os.path.exists(os.path.join(root, path.lstrip("/")))
