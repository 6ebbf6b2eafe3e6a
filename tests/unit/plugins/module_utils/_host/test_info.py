# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Evidence: the parts asked for, each with its values or with the reason why it is not known."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host import info
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt import status
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.system import os_release, units
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from hypothesis import given, settings
from hypothesis import strategies as st

OLD, NEW = "6.8.0-117-generic", "7.0.0-15-generic"
EVERYTHING = ["min", *info.SUBSETS]


@pytest.fixture(name="programs")
def _programs(monkeypatch: Any, tmp_path: Path) -> Any:
    """Puts programs of one's own in front of the host's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def put(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    put("systemctl", 'case "$1" in is-system-running) echo running;; esac')
    put("systemd-detect-virt", "echo none; exit 1")
    put("dpkg-query", f"printf 'linux-image-{OLD}\\tlinux-image-{OLD}\\tamd64\\tinstall\\tok\\tinstalled\\t6.8.0-117.117\\t\\t\\n'")
    return put


@pytest.mark.parametrize(
    ("asked", "subsets"),
    [
        (["all"], EVERYTHING),
        ([], EVERYTHING),
        (["min"], ["min"]),
        (["!all"], ["min"]),
        (["kernel"], ["min", "kernel"]),
        (["units", "min"], ["min", "units"]),
        (["!packages"], [name for name in EVERYTHING if name != "packages"]),
        (["all", "!min"], list(info.SUBSETS)),
        (["!all", "!min", "kernel"], ["kernel"]),
        (["!all", "os"], ["min", "os"]),
        (["kernel", "!kernel"], ["min", "kernel"]),
        (["!all", "!min"], []),
    ],
)
def test_subsets_mean_what_they_mean_in_setup(asked: list[str], subsets: list[str]) -> None:
    assert info.choose(asked) == subsets


@pytest.mark.parametrize("name", ["kernels", "!kernels", "!!kernel", "", "!"])
def test_an_unknown_subset_is_refused_with_the_names_there_are(name: str) -> None:
    with pytest.raises(HygieneError, match=r"Use all, min, kernel"):
        info.choose([name])


@given(st.lists(st.sampled_from([*EVERYTHING, "all", *(f"!{name}" for name in EVERYTHING), "!all"])))
@settings(derandomize=True, deadline=None)
def test_what_is_named_is_always_read(asked: list[str]) -> None:
    chosen = info.choose(asked)
    assert {name for name in asked if name in EVERYTHING} <= set(chosen) <= set(EVERYTHING)


@pytest.mark.usefixtures("programs")
def test_the_incident_as_evidence(leapt: Any) -> None:
    leapt.write("sys/bus/pci/devices/0000:17:00.0/vendor", "0x10de\n")
    leapt.write("sys/bus/pci/devices/0000:17:00.0/class", "0x030200\n")
    leapt.dkms("mlnx-ofed-kernel", "24.10", [OLD])
    found = info.gather(["min", "kernel", "os", "space", "units", "runs", "gpus"], str(leapt), NEW, "#16-Ubuntu SMP")
    assert found["unknown"] == {}
    assert found["not_checked"] == ["boot", "packages"]
    assert (found["boot_id"], found["machine_id"]) == ("0c2a1c2e-9a51-4b1d-8f0e-1c9d5a4f7b11", "5f0d9c3f0e1b4a0c9a1f1f7d3c2b1a00")
    assert found["system_uuid"] == "4c4c4544-0043-3510-8052-b4c04f564433"
    kernel = found["kernel"]
    assert (kernel["running"], kernel["boot_id"], kernel["machine_id"]) == (NEW, found["boot_id"], found["machine_id"])
    assert (kernel["running_build"], kernel["image_build"], kernel["respun"]) == ("#16-Ubuntu SMP", "#15-Ubuntu SMP PREEMPT_DYNAMIC", True)
    assert [(row["kernel_release"], row["complete"]) for row in kernel["installed"]] == [(NEW, True), (OLD, True)]
    assert [row["packages"] for row in kernel["installed"]] == [{}, {f"linux-image-{OLD}": "installed"}]
    assert found["out_of_tree"] == [{"name": "mlnx-ofed-kernel", "source": "dkms", "loaded": None, "version": "24.10", "available_for": [OLD]}]
    assert found["loaded_from_elsewhere"] == []
    assert (found["os"]["id"], found["os"]["version_id"], found["virtualization"]) == ("ubuntu", "26.04", "none")
    assert found["boot_space"]["needed_bytes"] == 0x4000 + 2048 + 1024 * 1024
    assert found["units"] == {"state": "running", "failed": []}
    assert (found["runs"], found["pci_gpus"]) == ([], ["0000:17:00.0"])


def test_min_is_the_ids_and_the_running_kernel(leapt: Any) -> None:
    found = info.gather(["min"], str(leapt), NEW)
    assert sorted(found) == ["boot_id", "kernel", "machine_id", "not_checked", "system_uuid", "unknown"]
    assert sorted(found["kernel"]) == ["boot_id", "cmdline", "machine_id", "running"]


def test_space_alone_asks_no_package_manager(leapt: Any, programs: Any) -> None:
    programs("dpkg-query", "exit 1")
    found = info.gather(["space"], str(leapt), NEW)
    assert (found["unknown"], found["boot_space"]["needed_bytes"]) == ({}, 0x4000 + 2048 + 1024 * 1024)


@pytest.mark.usefixtures("programs")
def test_an_empty_host_is_unknown_part_by_part(host: Any) -> None:
    (host.root / "boot").rmdir()
    found = info.gather(["min", "kernel", "os", "space", "gpus"], str(host), NEW, "#1")
    assert found["unknown"] == {
        "boot_id": "/proc/sys/kernel/random/boot_id does not exist",
        "machine_id": "/etc/machine-id is missing or empty",
        "system_uuid": "/sys/class/dmi/id/product_uuid does not exist",
        "kernel.cmdline": "/proc/cmdline does not exist",
        "boot_space": f"No such file or directory: {host.root}/boot",
        "os": "neither /etc/os-release nor /usr/lib/os-release exists",
        "pci_gpus": f"No such file or directory: {host.root}/sys/bus/pci/devices",
    }
    assert (found["os"], found["boot_space"], found["pci_gpus"], found["machine_id"]) == (None, None, None, None)
    assert found["kernel"]["respun"] is None


def test_programs_that_never_end_make_their_parts_unknown_in_bounded_time(leapt: Any, programs: Any, monkeypatch: Any) -> None:
    for module in (units, os_release, status):
        monkeypatch.setattr(module, "_TIMEOUT", 0.3)
    for name in ("systemctl", "systemd-detect-virt", "dpkg-query"):
        programs(name, "exec sleep 600")
    begun = time.monotonic()
    found = info.gather(["min", "kernel", "packages", "os", "units"], str(leapt), NEW, "#1")
    assert time.monotonic() - begun < 60
    assert sorted(found["unknown"]) == ["kernel.installed[].packages", "packages", "units", "virtualization"]
    assert all("did not end in time" in reason for reason in found["unknown"].values())
    assert (found["units"], found["virtualization"], found["packages"]) == (None, None, None)
    assert [(row["complete"], row["packages"]) for row in found["kernel"]["installed"]] == [(True, None), (True, None)]


@pytest.mark.usefixtures("programs")
def test_what_depends_on_an_unread_inventory_is_unknown_too(leapt: Any, monkeypatch: Any) -> None:
    def refuse(*_arguments: Any) -> None:
        raise PermissionError(13, "Permission denied", "/boot")

    monkeypatch.setattr(info, "read_installed", refuse)
    found = info.gather(["kernel", "space"], str(leapt), NEW, "#1")
    assert found["unknown"] == {
        "kernel.installed": "Permission denied: /boot",
        "out_of_tree": "which kernels are installed is not known",
        "boot_space": "which kernels are installed is not known",
    }
    assert (found["kernel"]["installed"], found["out_of_tree"], found["loaded_from_elsewhere"], found["boot_space"]) == (None, None, None, None)


def digest(root: Path) -> dict[str, tuple[int, int, str]]:
    """Mode, modification time and content of everything below a folder."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            state = path.lstat()
            content = os.readlink(path) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(state.st_mode) else ""
            found[str(path)] = (state.st_mode, state.st_mtime_ns, content)
    return found


@pytest.mark.usefixtures("programs")
def test_gathering_writes_nothing(leapt: Any) -> None:
    leapt.dkms("zfs", "2.3.1", [OLD])
    before = digest(leapt.root)
    info.gather(EVERYTHING, str(leapt), NEW, "#1")
    assert digest(leapt.root) == before
