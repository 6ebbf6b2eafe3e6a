# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""DKMS's tree tells which modules are installed for which kernel."""

from __future__ import annotations

from typing import Any

from ansible_collections.gpunode.hygiene.plugins.module_utils._host.kernel.dkms import DkmsModule, read_dkms

OLD, NEW = "6.8.0-117-generic", "7.0.0-15-generic"


def test_a_host_without_dkms_has_no_modules(host: Any) -> None:
    assert read_dkms(str(host)) == []


def test_installed_and_merely_added_modules_are_told_apart(host: Any) -> None:
    host.dkms("mlnx-ofed-kernel", "24.10", [OLD])
    host.dkms("zfs", "2.3.1", [])
    assert read_dkms(str(host)) == [DkmsModule("mlnx-ofed-kernel", ("24.10",), {OLD: "24.10"}), DkmsModule("zfs", ("2.3.1",), {})]


def test_the_installed_version_of_several_is_the_linked_one(host: Any) -> None:
    host.dkms("zfs", "2.2.0", [OLD])
    host.dkms("zfs", "2.3.1", [NEW])
    assert read_dkms(str(host)) == [DkmsModule("zfs", ("2.2.0", "2.3.1"), {OLD: "2.2.0", NEW: "2.3.1"})]


def test_a_module_that_was_only_built_is_not_installed(host: Any) -> None:
    host.dkms("zfs", "2.3.1", [OLD])
    (host.root / f"var/lib/dkms/zfs/kernel-{OLD}-x86_64").unlink()
    assert read_dkms(str(host)) == [DkmsModule("zfs", ("2.3.1",), {})]


def test_a_link_whose_build_is_gone_counts_for_nothing(host: Any) -> None:
    host.dkms("zfs", "2.3.1", [OLD])
    (host.root / f"var/lib/dkms/zfs/kernel-{NEW}-x86_64").symlink_to(f"2.3.1/{NEW}/x86_64")
    assert read_dkms(str(host)) == [DkmsModule("zfs", ("2.3.1",), {OLD: "2.3.1"})]


def test_leftovers_without_sources_are_no_modules(host: Any) -> None:
    host.write("var/lib/dkms/mok.pub")
    host.write("var/lib/dkms/zfs/original_module/6.8.0/x86_64/zfs.ko")
    assert read_dkms(str(host)) == []
