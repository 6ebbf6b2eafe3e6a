# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which out-of-tree modules a node would lose with another kernel."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.kernel.out_of_tree import (
    module_name,
    parse_module_paths,
    parse_out_of_tree,
    read_out_of_tree,
)
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.run import Completed
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError

OLD, NEW = "6.8.0-117-generic", "7.0.0-15-generic"
RELEASES = [NEW, OLD]
MODINFO = "ansible_collections.gpunode.hygiene.plugins.module_utils._host.kernel.out_of_tree.run"


def tainted(name: str, taints: str = "(OE)") -> str:
    return f"{name} 2154496 1 - Live 0x0000000000000000 {taints}\n"


@pytest.fixture(name="modinfo")
def _modinfo(monkeypatch: Any) -> list[str]:
    """Answers in place of modinfo's: in tree, unless the path has zfs in it. Gives the paths that were asked for."""
    asked: list[str] = []

    def answer(argv: list[str], timeout: float) -> Completed:
        asked.append(argv[-1])
        assert timeout <= 5
        return Completed(tuple(argv), 0, "" if "zfs" in argv[-1] else "Y\n", "")

    monkeypatch.setattr(MODINFO, answer)
    return asked


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (tainted("mlx5_core"), ["mlx5_core"]),
        (tainted("zfs", "(PO)"), ["zfs"]),
        (tainted("ext4", ""), []),
        (tainted("local", "(E)"), []),
        ("nvidia 34041856 32 nvidia_modeset,nvidia_uvm, Live 0xffffffffc099b000 (POE)\n", []),
        (tainted("nvidia_peermem") + tainted("gdrdrv") + tainted("nvidia_fs"), []),
        (tainted("nvme_custom"), ["nvme_custom"]),
        ("", []),
    ],
)
def test_loaded_modules_from_outside_the_kernel_and_the_nvidia_stack(line: str, names: list[str]) -> None:
    assert parse_out_of_tree(line) == names


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("updates/dkms/nvidia-fs.ko.zst", "nvidia_fs"),
        ("kernel/fs/ext4/ext4.ko", "ext4"),
        ("extra/knem.ko.xz", "knem"),
        ("kernel/lib/crc-t10dif.ko.gz", "crc_t10dif"),
    ],
)
def test_module_names_are_as_the_kernel_spells_them(path: str, name: str) -> None:
    assert module_name(path) == name


def test_the_index_gives_each_modules_path() -> None:
    assert parse_module_paths("kernel/a-b.ko.zst: kernel/c.ko.zst\nupdates/c.ko.zst:\n\n") == {"a_b": "kernel/a-b.ko.zst", "c": "updates/c.ko.zst"}


def test_the_kernels_own_module_of_the_same_name_is_no_replacement(leapt: Any, modinfo: list[str]) -> None:
    leapt.write("proc/modules", tainted("mlx5_core"))
    assert read_out_of_tree(RELEASES, OLD, str(leapt)) == (
        [{"name": "mlx5_core", "source": "module", "loaded": True, "version": None, "available_for": [OLD]}],
        [],
    )
    assert [path[len(str(leapt)) :] for path in modinfo] == [f"/lib/modules/{NEW}/kernel/drivers/net/mlx5_core.ko.zst"]


def test_out_of_tree_modules_that_ubuntu_ships_inside_kernel_count(leapt: Any, modinfo: list[str]) -> None:
    leapt.modules(OLD, ["kernel/zfs/zfs.ko.zst"])
    leapt.modules(NEW, ["kernel/zfs/zfs.ko.zst"])
    leapt.write("proc/modules", tainted("zfs", "(PO)"))
    rows, elsewhere = read_out_of_tree(RELEASES, NEW, str(leapt))
    assert (rows[0]["available_for"], elsewhere) == (RELEASES, [])
    assert len(modinfo) == 2


def test_an_index_that_names_a_removed_file_is_not_believed(leapt: Any) -> None:
    (leapt.root / f"lib/modules/{OLD}/updates/dkms/mlx5_core.ko.zst").unlink()
    leapt.modules(NEW, ["updates/mlx5_core.ko.zst"])
    leapt.write("proc/modules", tainted("mlx5_core"))
    assert read_out_of_tree(RELEASES, NEW, str(leapt))[0][0]["available_for"] == [NEW]


def test_a_module_that_a_container_loaded_is_not_the_hosts_to_provide(leapt: Any, modinfo: list[str]) -> None:
    leapt.write("proc/modules", tainted("knem") + tainted("ext4"))
    assert read_out_of_tree(RELEASES, NEW, str(leapt)) == ([], ["ext4", "knem"])
    assert len(modinfo) == 2


def test_dkms_entries_are_listed_loaded_or_not_but_not_the_driver(leapt: Any) -> None:
    leapt.dkms("mlnx-ofed-kernel", "24.10", [OLD])
    leapt.dkms("nvidia", "580.95.05", [OLD, NEW])
    leapt.dkms("nvidia-fs", "2.26", [OLD])
    assert read_out_of_tree(RELEASES, NEW, str(leapt)) == (
        [{"name": "mlnx-ofed-kernel", "source": "dkms", "loaded": None, "version": "24.10", "available_for": [OLD]}],
        [],
    )


def test_a_kernel_without_module_support_has_none_loaded(leapt: Any) -> None:
    (leapt.root / "proc/modules").unlink()
    assert read_out_of_tree(RELEASES, NEW, str(leapt)) == ([], [])


def test_a_modinfo_that_does_not_answer_is_an_error_not_a_no(leapt: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(MODINFO, lambda argv, timeout: Completed(tuple(argv), None, "", ""))
    leapt.write("proc/modules", tainted("mlx5_core"))
    with pytest.raises(HygieneError, match=r"did not end in time.*Install kmod"):
        read_out_of_tree(RELEASES, NEW, str(leapt))
