# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is held for a kernel release, by the package names of Ubuntu's and Debian's flavours."""

from __future__ import annotations

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.closure import (
    closure,
    demand_kernel,
    image_release,
    installed_releases,
    is_kernel_name,
    is_versioned,
)
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.status import Package
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from hypothesis import given
from hypothesis import strategies as st


def package(name: str, *depends: str, status: str = "installed", error: str = "ok", architecture: str = "amd64", want: str = "install") -> Package:
    """A package as dpkg-query would give it on an amd64 host."""
    full = name if architecture in ("amd64", "all") else f"{name}:{architecture}"
    return Package(full, name, architecture, want, error, status, "1", depends)


def host(text: str) -> list[Package]:
    """One package a line: its name, a colon, its dependencies."""
    rows = (line.partition(":") for line in text.strip().splitlines())
    return [package(name.strip(), *depends.split()) for name, _colon, depends in rows]


# The incident: an upgrade to 26.04 left metapackages that point at 7.0.0-15, and 6.8.0-117 is what shall be kept.
INCIDENT = """
linux-image-6.8.0-117-generic: kmod linux-base linux-modules-6.8.0-117-generic
linux-modules-6.8.0-117-generic: linux-image-6.8.0-117-generic linux-image-unsigned-6.8.0-117-generic
linux-modules-extra-6.8.0-117-generic: linux-modules-6.8.0-117-generic wireless-regdb
linux-headers-6.8.0-117-generic: linux-headers-6.8.0-117 libc6
linux-headers-6.8.0-117:
linux-tools-6.8.0-117-generic: linux-tools-6.8.0-117
linux-tools-6.8.0-117: linux-tools-common
linux-tools-common:
linux-image-7.0.0-15-generic: linux-base linux-modules-7.0.0-15-generic linux-main-modules-zfs-7.0.0-15-generic
linux-modules-7.0.0-15-generic: linux-image-7.0.0-15-generic
linux-main-modules-zfs-7.0.0-15-generic: linux-image-7.0.0-15-generic
linux-headers-7.0.0-15-generic: linux-headers-7.0.0-15
linux-headers-7.0.0-15:
linux-image-generic: linux-image-7.0.0-15-generic linux-firmware
linux-headers-generic: linux-headers-7.0.0-15-generic
linux-generic: linux-image-generic linux-headers-generic
linux-tools-generic: linux-tools-7.0.0-15-generic
linux-base:
linux-firmware:
linux-libc-dev:
linux-perf: linux-base
"""
UBUNTU_HWE = """
linux-image-6.11.0-29-generic: linux-modules-6.11.0-29-generic
linux-modules-6.11.0-29-generic: linux-image-6.11.0-29-generic
linux-headers-6.11.0-29-generic: linux-hwe-6.11-headers-6.11.0-29
linux-hwe-6.11-headers-6.11.0-29:
linux-modules-nvidia-570-server-open-6.11.0-29-generic: linux-image-6.11.0-29-generic nvidia-kernel-common-570-server
linux-modules-nvidia-570-server-open-generic-hwe-24.04: linux-modules-nvidia-570-server-open-6.11.0-29-generic nvidia-kernel-common-570-server
linux-objects-nvidia-570-server-open-6.11.0-29-generic: linux-image-6.11.0-29-generic
linux-signatures-nvidia-6.11.0-29-generic:
nvidia-driver-570-server-open: linux-modules-nvidia-570-server-open-generic-hwe-24.04 nvidia-dkms-570-server-open
linux-image-generic-hwe-24.04: linux-image-6.11.0-29-generic
linux-headers-generic-hwe-24.04: linux-headers-6.11.0-29-generic
linux-generic-hwe-24.04: linux-image-generic-hwe-24.04 linux-headers-generic-hwe-24.04
"""
UBUNTU_CLOUD = """
linux-image-unsigned-6.8.0-1059-azure: linux-modules-6.8.0-1059-azure
linux-modules-6.8.0-1059-azure: linux-image-6.8.0-1059-azure linux-image-unsigned-6.8.0-1059-azure
linux-headers-6.8.0-1059-azure: linux-azure-6.8-headers-6.8.0-1059
linux-azure-6.8-headers-6.8.0-1059:
linux-image-azure-6.8: linux-image-unsigned-6.8.0-1059-azure
linux-azure-6.8: linux-image-azure-6.8
linux-image-6.8.0-1017-aws: linux-modules-6.8.0-1017-aws
linux-modules-6.8.0-1017-aws:
linux-image-aws: linux-image-6.8.0-1017-aws
linux-headers-aws: linux-headers-6.8.0-1017-aws
linux-aws: linux-image-aws linux-headers-aws
"""
BOOKWORM = """
linux-image-6.1.0-56-amd64: kmod linux-base initramfs-tools
linux-image-6.1.0-57-amd64: kmod linux-base initramfs-tools
linux-headers-6.1.0-56-amd64: linux-headers-6.1.0-56-common linux-kbuild-6.1 linux-compiler-gcc-12-x86
linux-headers-6.1.0-56-common:
linux-headers-6.1.0-57-amd64: linux-headers-6.1.0-57-common linux-kbuild-6.1 linux-compiler-gcc-12-x86
linux-headers-6.1.0-57-common:
linux-kbuild-6.1:
linux-compiler-gcc-12-x86: gcc-12
linux-image-amd64: linux-image-6.1.0-57-amd64
linux-headers-amd64: linux-headers-6.1.0-57-amd64
"""
TRIXIE = """
linux-image-6.12.117+deb13-amd64: kmod linux-base
linux-headers-6.12.117+deb13-amd64: linux-headers-6.12.117+deb13-common linux-image-6.12.117+deb13-amd64 linux-kbuild-6.12.117+deb13 gcc-14
linux-headers-6.12.117+deb13-common:
linux-kbuild-6.12.117+deb13:
linux-image-6.12.117+deb13-cloud-amd64: kmod
linux-image-amd64: linux-image-6.12.117+deb13-amd64
linux-headers-amd64: linux-headers-6.12.117+deb13-amd64
linux-image-cloud-amd64: linux-image-6.12.117+deb13-cloud-amd64
"""


@pytest.mark.parametrize(
    ("text", "release", "versioned", "metas"),
    [
        pytest.param(
            INCIDENT, "6.8.0-117-generic",
            "linux-headers-6.8.0-117 linux-headers-6.8.0-117-generic linux-image-6.8.0-117-generic linux-modules-6.8.0-117-generic "
            "linux-modules-extra-6.8.0-117-generic linux-tools-6.8.0-117 linux-tools-6.8.0-117-generic",
            "linux-generic linux-headers-generic linux-image-generic linux-tools-generic",
            id="incident: metas point at another release",
        ),
        pytest.param(
            INCIDENT, "7.0.0-15-generic",
            "linux-headers-7.0.0-15 linux-headers-7.0.0-15-generic linux-image-7.0.0-15-generic linux-main-modules-zfs-7.0.0-15-generic "
            "linux-modules-7.0.0-15-generic",
            "linux-generic linux-headers-generic linux-image-generic linux-tools-generic",
            id="26.04 without modules-extra",
        ),
        pytest.param(
            UBUNTU_HWE, "6.11.0-29-generic",
            "linux-headers-6.11.0-29-generic linux-hwe-6.11-headers-6.11.0-29 linux-image-6.11.0-29-generic linux-modules-6.11.0-29-generic "
            "linux-modules-nvidia-570-server-open-6.11.0-29-generic linux-objects-nvidia-570-server-open-6.11.0-29-generic "
            "linux-signatures-nvidia-6.11.0-29-generic",
            "linux-generic-hwe-24.04 linux-headers-generic-hwe-24.04 linux-image-generic-hwe-24.04 linux-modules-nvidia-570-server-open-generic-hwe-24.04",
            id="HWE with prebuilt NVIDIA modules",
        ),
        pytest.param(
            UBUNTU_CLOUD, "6.8.0-1059-azure",
            "linux-azure-6.8-headers-6.8.0-1059 linux-headers-6.8.0-1059-azure linux-image-unsigned-6.8.0-1059-azure linux-modules-6.8.0-1059-azure",
            "linux-aws linux-azure-6.8 linux-headers-aws linux-image-aws linux-image-azure-6.8",
            id="unsigned azure; the metas of the other flavour too (B25, B26)",
        ),
        pytest.param(
            BOOKWORM, "6.1.0-56-amd64",
            "linux-compiler-gcc-12-x86 linux-headers-6.1.0-56-amd64 linux-headers-6.1.0-56-common linux-image-6.1.0-56-amd64 linux-kbuild-6.1",
            "linux-headers-amd64 linux-image-amd64",
            id="Debian 12, kbuild shared by releases",
        ),
        pytest.param(
            TRIXIE, "6.12.117+deb13-amd64",
            "linux-headers-6.12.117+deb13-amd64 linux-headers-6.12.117+deb13-common linux-image-6.12.117+deb13-amd64 linux-kbuild-6.12.117+deb13",
            "linux-headers-amd64 linux-image-amd64 linux-image-cloud-amd64",
            id="Debian 13, a plus in the release, cloud flavour not taken for it",
        ),
    ],
)
def test_the_hold_set_follows_from_what_is_installed(text: str, release: str, versioned: str, metas: str) -> None:
    found = closure(host(text), [release])
    assert " ".join(found.versioned) == versioned
    assert " ".join(found.metas) == metas
    assert found.names == tuple(sorted((*versioned.split(), *metas.split())))


def test_a_kept_release_is_held_too_and_others_are_not() -> None:
    names = set(closure(host(BOOKWORM), ["6.1.0-56-amd64", "6.1.0-57-amd64"]).names)
    assert {"linux-image-6.1.0-56-amd64", "linux-image-6.1.0-57-amd64", "linux-headers-6.1.0-57-common"} <= names
    assert "linux-image-6.1.0-57-amd64" not in closure(host(BOOKWORM), ["6.1.0-56-amd64"]).names


def test_other_packages_that_need_a_held_one_are_reported_only() -> None:
    found = closure(host(UBUNTU_HWE), ["6.11.0-29-generic"])
    assert found.dependants == ("nvidia-driver-570-server-open",)
    assert "nvidia-driver-570-server-open" not in found.names


@pytest.mark.parametrize("status", ["not-installed", "config-files"])
def test_what_is_not_on_disk_is_never_in_the_hold_set(status: str) -> None:
    ghosts = [
        package("linux-image-6.1.0-99-amd64", status=status, want="hold"),
        package("linux-image-rt-amd64", "linux-image-6.1.0-99-rt-amd64", status=status),
    ]
    packages = [*host(BOOKWORM), *ghosts]
    assert closure(packages, ["6.1.0-99-amd64"]).versioned == ()
    assert "linux-image-rt-amd64" not in closure(packages, ["6.1.0-56-amd64"]).names


def test_a_release_that_ends_like_another_is_not_that_other() -> None:
    packages = host("linux-image-6.8.0-117-generic:\nlinux-image-16.8.0-117-generic:\nlinux-image-6.8.0-1-117-generic:")
    assert closure(packages, ["6.8.0-117-generic"]).versioned == ("linux-image-6.8.0-117-generic",)


def test_a_foreign_architecture_keeps_its_name() -> None:
    packages = [package("linux-image-6.1.0-56-arm64", architecture="arm64"), package("linux-image-arm64", "linux-image-6.1.0-56-arm64", architecture="arm64")]
    assert closure(packages, ["6.1.0-56-arm64"]).names == ("linux-image-6.1.0-56-arm64:arm64", "linux-image-arm64:arm64")


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("linux-image-6.8.0-117-generic", "6.8.0-117-generic"),
        ("linux-image-unsigned-6.8.0-1059-azure", "6.8.0-1059-azure"),
        ("linux-image-6.12.117+deb13-amd64-unsigned", "6.12.117+deb13-amd64"),
        ("linux-image-6.1.0-0.deb11.5-amd64", "6.1.0-0.deb11.5-amd64"),
        ("linux-image-6.12-rc6-amd64", "6.12-rc6-amd64"),
        ("linux-image-6.17.0-1008-nvidia-64k", "6.17.0-1008-nvidia-64k"),
        ("linux-image-6.1.0-56-amd64-dbg", ""),
        ("linux-image-generic-hwe-24.04", ""),
        ("linux-image-azure-6.8", ""),
        ("linux-image-amd64", ""),
        ("linux-headers-6.8.0-117-generic", ""),
    ],
)
def test_an_image_package_names_its_release(name: str, release: str) -> None:
    assert image_release(name) == release


@pytest.mark.parametrize(
    ("name", "kernel", "versioned"),
    [
        ("linux-modules-nvidia-550-server-6.8.0-117-generic", True, True),
        ("linux-modules-nvidia-550-server-generic-hwe-24.04", True, False),
        ("linux-azure-6.8-headers-6.8.0-1059", True, True),
        ("linux-kbuild-6.12.117+deb13", True, True),
        ("linux-kbuild-6.1", True, False),
        ("linux-oem-24.04b", True, False),
        ("linux-firmware", False, False),
        ("linux-libc-dev", False, False),
        ("linux-base", False, False),
        ("linux-tools-common", False, False),
        ("linux-perf", False, False),
        ("nvidia-driver-550", False, False),
    ],
)
def test_names_of_kernel_packages(name: str, kernel: bool, versioned: bool) -> None:
    assert (is_kernel_name(name), is_versioned(name)) == (kernel, versioned)


def test_a_kernel_that_is_not_installed_is_refused_and_others_are_named() -> None:
    packages = [*host(INCIDENT), package("linux-image-6.8.0-110-generic", status="config-files", want="hold")]
    with pytest.raises(HygieneError) as refusal:
        demand_kernel(packages, "6.8.0-110-generic")
    assert refusal.value.seen == "No package linux-image-6.8.0-110-generic is installed"
    assert "6.8.0-117-generic, 7.0.0-15-generic" in refusal.value.remedy
    assert installed_releases(packages) == ["6.8.0-117-generic", "7.0.0-15-generic"]


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [("unpacked", "ok", "is unpacked"), ("half-configured", "ok", "is half-configured"), ("installed", "reinstreq", "is installed (reinstreq)")],
)
def test_a_half_installed_kernel_is_refused(status: str, error: str, said: str) -> None:
    packages = [*host("linux-image-6.8.0-117-generic:"), package("linux-modules-6.8.0-117-generic", status=status, error=error)]
    with pytest.raises(HygieneError) as refusal:
        demand_kernel(packages, "6.8.0-117-generic")
    assert refusal.value.seen == f"Kernel 6.8.0-117-generic is not completely installed: linux-modules-6.8.0-117-generic {said}"


def test_a_kernel_whose_triggers_are_pending_is_complete() -> None:
    demand_kernel([package("linux-image-6.8.0-117-generic", status="triggers-pending")], "6.8.0-117-generic")


NAMES = [item.name for text in (INCIDENT, UBUNTU_HWE, BOOKWORM, TRIXIE) for item in host(text)]


@given(st.lists(st.builds(package, st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=30), st.sampled_from(NAMES))
def test_the_hold_set_is_stable_and_of_installed_kernel_packages_only(packages: list[Package], name: str) -> None:
    release = image_release(name) or "6.8.0-117-generic"
    found = closure(packages, [release])
    there = {item.id for item in packages}
    assert set(found.names) <= there
    assert all(is_kernel_name(item) for item in found.names)
    assert closure(list(reversed(packages)), [release]) == found
    assert {item.id for item in packages if item.name.endswith(f"-{release}")} <= set(found.versioned)
    assert set(found.metas) <= set(closure(packages, []).metas)
