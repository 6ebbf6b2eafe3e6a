# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory says of every kernel on disk whether it can boot, and why not."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.kernel.installed import image_packages, read_installed

OLD, NEW = "6.8.0-117-generic", "7.0.0-15-generic"


def rows(host: Any, running: str = OLD, packages: Any = None) -> dict[str, dict[str, Any]]:
    return {row["kernel_release"]: row for row in read_installed(running, packages, str(host))}


def test_both_kernels_of_an_accidental_release_upgrade_are_complete(leapt: Any) -> None:
    found = read_installed(NEW, {f"linux-image-{OLD}": "installed", f"linux-image-{NEW}": "installed"}, str(leapt))
    assert [row["kernel_release"] for row in found] == [NEW, OLD]
    assert found[1] == {
        "kernel_release": OLD,
        "image": f"/boot/vmlinuz-{OLD}",
        "image_bytes": 1024,
        "initrd": f"/boot/initrd.img-{OLD}",
        "initrd_bytes": 2048,
        "modules": f"/lib/modules/{OLD}",
        "headers": f"/usr/src/linux-headers-{OLD}",
        "packages": {f"linux-image-{OLD}": "installed"},
        "complete": True,
        "problems": [],
    }


def test_debian_releases_with_a_plus_sign_are_kernels_too(host: Any) -> None:
    host.kernel("6.12.117+deb13-amd64", ["kernel/fs/ext4/ext4.ko.xz"], headers=False)
    row = rows(host, "6.12.117+deb13-amd64")["6.12.117+deb13-amd64"]
    assert (row["complete"], row["headers"]) == (True, None)


def test_debian_headers_are_found_by_the_build_link(host: Any) -> None:
    host.kernel("6.1.0-49-amd64", ["kernel/fs/ext4/ext4.ko"], headers=False)
    host.write("lib/modules/6.1.0-49-amd64/build/Makefile")
    host.write("lib/modules/6.1.0-49-amd64/build/include/linux/version.h")
    assert rows(host)["6.1.0-49-amd64"]["headers"] == "/lib/modules/6.1.0-49-amd64/build"


def test_headers_without_include_are_none(host: Any) -> None:
    host.kernel(OLD, headers=False)
    host.write(f"usr/src/linux-headers-{OLD}/Makefile")
    assert rows(host)[OLD]["headers"] is None


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (f"boot/vmlinuz-{OLD}", f"there is no kernel image /boot/vmlinuz-{OLD}"),
        (f"boot/initrd.img-{OLD}", f"there is no initrd /boot/initrd.img-{OLD}"),
        (f"lib/modules/{OLD}/modules.dep", f"/lib/modules/{OLD}/modules.dep is missing or empty (`depmod {OLD}` writes it)"),
    ],
)
def test_a_missing_file_makes_a_kernel_incomplete(host: Any, spoil: str, problem: str) -> None:
    host.kernel(OLD)
    (host.root / spoil).unlink()
    row = rows(host)[OLD]
    assert (row["complete"], row["problems"]) == (False, [problem])


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (f"boot/vmlinuz-{OLD}", f"the kernel image /boot/vmlinuz-{OLD} is empty"),
        (f"boot/initrd.img-{OLD}", f"the initrd /boot/initrd.img-{OLD} is empty"),
        (f"lib/modules/{OLD}/modules.dep", f"/lib/modules/{OLD}/modules.dep is missing or empty (`depmod {OLD}` writes it)"),
    ],
)
def test_an_empty_file_makes_a_kernel_incomplete(host: Any, spoil: str, problem: str) -> None:
    host.kernel(OLD)
    host.write(spoil, "")
    row = rows(host)[OLD]
    assert (row["complete"], row["problems"]) == (False, [problem])


def test_a_folder_that_dkms_left_behind_is_no_kernel(host: Any) -> None:
    host.write(f"lib/modules/{OLD}/updates/dkms/mlx5_core.ko.zst")
    host.write(f"lib/modules/{OLD}/modules.dep", "updates/dkms/mlx5_core.ko.zst:\n")
    assert rows(host, NEW)[OLD]["problems"] == [
        f"there is no kernel image /boot/vmlinuz-{OLD}",
        f"there is no initrd /boot/initrd.img-{OLD}",
        f"/lib/modules/{OLD} holds no kernel/ folder with modules: it is a leftover",
    ]


def test_the_running_kernel_has_a_row_after_its_packages_were_removed(host: Any) -> None:
    row = rows(host, NEW)[NEW]
    assert (row["image"], row["modules"], row["complete"]) == (None, None, False)


@pytest.mark.parametrize("name", ["initrd-{}.img", "initrd-{}.gz", "initrd-{}", "initramfs-{}.img"])
def test_every_initrd_name_that_grub_takes_counts(host: Any, name: str) -> None:
    host.kernel(OLD)
    (host.root / f"boot/initrd.img-{OLD}").rename(host.root / "boot" / name.format(OLD))
    assert rows(host)[OLD]["initrd"] == f"/boot/{name.format(OLD)}"


def test_an_old_kernel_takes_the_initrd_of_its_release(host: Any) -> None:
    host.kernel(OLD)
    host.write(f"boot/vmlinuz-{OLD}.old", "x")
    row = rows(host)[f"{OLD}.old"]
    assert (row["image"], row["initrd"], row["modules"]) == (f"/boot/vmlinuz-{OLD}.old", f"/boot/initrd.img-{OLD}", None)


@pytest.mark.parametrize("name", [f"vmlinuz-{OLD}.dpkg-new", f"vmlinuz-{OLD}.sig", f"vmlinuz-{OLD}.rpmsave", f"config-{OLD}", f"System.map-{OLD}", "vmlinuz"])
def test_other_files_in_boot_are_no_kernels(host: Any, name: str) -> None:
    host.write(f"boot/{name}", "x")
    assert list(rows(host, NEW)) == [NEW]


@pytest.mark.parametrize("name", ["vmlinux", "kernel"])
def test_images_under_other_names_are_kernels(host: Any, name: str) -> None:
    host.write(f"boot/{name}-{OLD}", "x")
    assert rows(host)[OLD]["image"] == f"/boot/{name}-{OLD}"


@pytest.mark.parametrize("state", ["unpacked", "half-installed", "half-configured", "triggers-awaited", "triggers-pending"])
def test_a_package_that_dpkg_has_not_finished_makes_a_kernel_incomplete(host: Any, state: str) -> None:
    host.kernel(OLD)
    row = rows(host, packages={f"linux-image-unsigned-{OLD}": state})[OLD]
    assert row["problems"] == [f"the package linux-image-unsigned-{OLD} is {state} (`dpkg --configure -a` finishes it)"]


def test_package_states_that_are_not_known_stay_unknown(host: Any) -> None:
    host.kernel(OLD)
    assert rows(host, packages=None)[OLD]["packages"] is None
    assert rows(host, packages={})[OLD]["packages"] == {}
    assert rows(host, packages=None)[OLD]["complete"] is True


def test_ubuntu_and_debian_spell_unsigned_differently() -> None:
    assert image_packages(OLD) == [f"linux-image-{OLD}", f"linux-image-unsigned-{OLD}", f"linux-image-{OLD}-unsigned"]
