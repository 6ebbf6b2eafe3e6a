# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's apt repository: its pure parts, and what the real apt makes of its stages."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from gpunode_lab import aptrepo
from gpunode_lab.archive import Archive, Kernel
from gpunode_lab.cache import cache_root
from gpunode_lab.progress import Progress

pytestmark = pytest.mark.quick

OLD, NEW = Kernel("6.1.0-57-amd64", "6.1.192-3"), Kernel("6.1.0-58-amd64", "6.1.192-3+lab1")

Apt = Callable[..., str]


def test_the_made_up_kernel_has_the_next_abi_and_a_version_that_sorts_after() -> None:
    assert aptrepo.next_abi(OLD) == NEW
    assert subprocess.run(["dpkg", "--compare-versions", NEW.version, "gt", OLD.version], check=False).returncode == 0
    assert subprocess.run(["dpkg", "--compare-versions", NEW.version, "lt", "6.1.192-4"], check=False).returncode == 0


@pytest.mark.parametrize(("text", "expected"), [
    ("linux-image-6.1.0-57-amd64", "linux-image-6.1.0-58-amd64"),
    ("linux-headers-6.1.0-57-common (= 6.1.192-3), linux-kbuild-6.1 (>= 6.1.192-3)",
     "linux-headers-6.1.0-58-common (= 6.1.192-3+lab1), linux-kbuild-6.1 (>= 6.1.192-3+lab1)"),
    ("version=6.1.0-57-amd64\nimage_path=/boot/vmlinuz-$version", "version=6.1.0-58-amd64\nimage_path=/boot/vmlinuz-$version"),
    ("6.1.0-570-amd64 of 6.1.192-30", "6.1.0-570-amd64 of 6.1.192-30"),
])
def test_a_package_is_renamed_whole_words_only(text: str, expected: str) -> None:
    assert aptrepo.renamed(text, OLD, NEW) == expected


def test_a_metapackage_is_moved_to_another_kernel() -> None:
    control = "Package: linux-headers-amd64\nVersion: 6.1.192-3\nDepends: linux-headers-6.1.0-57-amd64 (= 6.1.192-3)\nSection: kernel\n"
    assert aptrepo.moved_meta(control, "6.1.192-2", Kernel("6.1.0-56-amd64", "6.1.192-2")) == (
        "Package: linux-headers-amd64\nVersion: 6.1.192-2\nDepends: linux-headers-6.1.0-56-amd64 (= 6.1.192-2)\nSection: kernel\n")


@pytest.fixture(scope="module")
def kernels() -> aptrepo.Kernels:
    return aptrepo.kernels(Archive())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A lab's own copy."""
    pristine = aptrepo.build(Progress(cache_root() / "durations.json"))
    return Path(shutil.copytree(pristine, tmp_path / "repository", copy_function=os.link))


@pytest.fixture
def apt(repository: Path, tmp_path: Path) -> Apt:
    """The machine's apt on a private root that knows this repository alone, with kernel A and its metapackages installed."""
    root = tmp_path / "apt"
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        (root / name).mkdir(parents=True)
    (root / "sources.list").write_text(f"deb [signed-by={repository / 'key.gpg'}] file:{repository} ./\n", "utf-8")
    (root / "status").touch()
    settings = {"Dir::Etc::SourceList": root / "sources.list", "Dir::Etc::SourceParts": root / "parts", "Dir::State": root,
                "Dir::State::lists": root / "lists", "Dir::State::status": root / "status", "Dir::Cache": root / "cache",
                "Dir::Etc::Preferences": "/dev/null", "Dir::Etc::PreferencesParts": "/dev/null",
                "APT::Sandbox::User": "root", "APT::Architecture": "amd64", "Acquire::Languages": "none"}

    def run(program: str, *arguments: str) -> str:
        command = [program, *(f"-o{name}={value}" for name, value in settings.items()), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    return run


def installed(apt: Apt, kernels: aptrepo.Kernels, status: Path) -> None:
    """Write a dpkg status in which kernel A, its headers and its metapackages are installed, and what they depend on outside the repository."""
    outside = ["kmod", "linux-base", "initramfs-tools", "gcc-12", "libc6", "libelf1", "libssl3"]
    text = "".join(f"Package: {name}\nStatus: install ok installed\nVersion: 99\nArchitecture: amd64\n\n" for name in outside)
    names = [*kernels.older.packages, *(f"{meta}={kernels.older.version}" for meta in aptrepo.METAS), *aptrepo.BUILD_TOOLS]
    for paragraph in apt("apt-cache", "show", *names).strip().split("\n\n"):
        text += paragraph.replace("\n", "\nStatus: install ok installed\n", 1) + "\n\n"
    status.write_text(text, "utf-8")


def wanted(apt: Apt) -> set[str]:
    """The kernel packages that a dist-upgrade would install."""
    return {line.split()[1] for line in apt("apt-get", "-s", "dist-upgrade").splitlines() if line.startswith("Inst linux-")}


def test_each_stage_brings_its_kernel_and_nothing_before_it_does(repository: Path, apt: Apt, kernels: aptrepo.Kernels, tmp_path: Path) -> None:
    apt("apt-get", "update")
    installed(apt, kernels, tmp_path / "apt" / "status")
    assert wanted(apt) == set()
    for stage, kernel, more in (("B", kernels.newer, set()), ("C", kernels.made_up, {aptrepo.KBUILD})):
        aptrepo.publish(repository, stage)
        apt("apt-get", "update")
        assert wanted(apt) == {*(package.split("=")[0] for package in kernel.packages), *aptrepo.METAS, *more}


def test_the_made_up_kernel_is_a_package_with_its_own_paths_and_scripts(repository: Path, kernels: aptrepo.Kernels) -> None:
    [deb] = repository.glob(f"pool/linux-image-{kernels.made_up.release}_*.deb")
    listing = subprocess.run(["dpkg-deb", "--contents", str(deb)], capture_output=True, text=True, check=True).stdout
    assert f"./boot/vmlinuz-{kernels.made_up.release}\n" in listing
    assert f"./lib/modules/{kernels.made_up.release}/kernel/fs/ext4/ext4.ko\n" in listing
    assert kernels.newer.release not in listing
    postinst = subprocess.run(["dpkg-deb", "--info", str(deb), "postinst"], capture_output=True, text=True, check=True).stdout
    assert f"\nversion={kernels.made_up.release}\n" in postinst
