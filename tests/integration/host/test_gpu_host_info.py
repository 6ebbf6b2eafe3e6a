# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""gpu_host_info and run_record through Ansible, on this machine and on a node's root filesystem."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpunode.hygiene.plugins.modules import gpu_host_info
from gpunode_lab.cache import cache_root
from gpunode_lab.progress import Progress
from gpunode_lab.rootfs import build_rootfs

from .rooted_host import Rooted, ansible

OLD, NEW = "6.8.0-117-generic", "7.0.0-15-generic"
EVERYTHING = {"gather_subset": ["all"]}


@pytest.fixture(name="base", scope="module")
def _base() -> Path:
    """The root filesystem of the lab's node, without kernels."""
    return build_rootfs(Progress(cache_root() / "durations.json"))


@pytest.fixture(name="rooted")
def _rooted(tmp_path: Path, base: Path) -> Rooted:
    host = Rooted(tmp_path / "rooted", base)
    host.folder.mkdir()
    host.prepare()
    for release in (OLD, NEW):
        host.put(f"boot/vmlinuz-{release}", "image")
        host.put(f"boot/initrd.img-{release}", "initrd")
        host.put(f"usr/lib/modules/{release}/kernel/fs/ext4/ext4.ko.zst", "module")
        host.put(f"usr/lib/modules/{release}/modules.dep", "kernel/fs/ext4/ext4.ko.zst:\n")
    host.put("etc/machine-id", "5f0d9c3f0e1b4a0c9a1f1f7d3c2b1a00\n")
    host.put(
        "var/lib/gpunode-hygiene/runs/20260101T120000Z-3f2a1c/kernel_pin.json",
        '{"version": 1, "run": "20260101T120000Z-3f2a1c", "module": "kernel_pin", "written": "2026-01-01T12:00:00Z", "changes": '
        '[{"what": "hold", "where": "linux-generic", "before": "install", "after": "hold", "undo": "apt-mark unhold linux-generic"}]}',
    )
    return host


def test_this_machine_is_described_as_its_own_tools_describe_it() -> None:
    answer = ansible("gpu_host_info", EVERYTHING)
    host = answer["gpu_host"]
    assert (answer["changed"], host["not_checked"]) == (False, [])
    assert host["kernel"]["running"] == os.uname().release
    assert host["boot_id"] == host["kernel"]["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert host["machine_id"] == host["kernel"]["machine_id"] == Path("/etc/machine-id").read_text().strip()
    assert host["os"]["id"] == subprocess.run(["sh", "-c", ". /etc/os-release; echo $ID"], capture_output=True, text=True, check=True).stdout.strip()
    detected = subprocess.run(["systemd-detect-virt"], capture_output=True, text=True, check=False).stdout.strip()
    assert host["virtualization"] == detected
    room = os.statvfs("/boot")
    assert host["boot_space"]["total_bytes"] == room.f_blocks * room.f_frsize
    assert os.uname().release in [row["kernel_release"] for row in host["kernel"]["installed"]]
    for part in ("boot", "packages", "units", "runs", "pci_gpus", "system_uuid", "out_of_tree", "os", "boot_space"):
        assert (host[part] is None) == (part in host["unknown"]), part


def test_a_nodes_filesystem_with_two_kernels_is_read_and_not_written(rooted: Rooted) -> None:
    answer = rooted.run("gpu_host_info", EVERYTHING)
    host = answer["gpu_host"]
    rows = {row["kernel_release"]: row for row in host["kernel"]["installed"]}
    assert [(rows[release]["complete"], rows[release]["packages"]) for release in (NEW, OLD)] == [(True, {}), (True, {})]
    assert list(rows).index(NEW) < list(rows).index(OLD)
    assert (rows[os.uname().release]["complete"], rows[os.uname().release]["image"]) == (False, None)
    assert host["machine_id"] == "5f0d9c3f0e1b4a0c9a1f1f7d3c2b1a00"
    assert (host["os"]["id"], host["os"]["version_id"], host["os"]["codename"]) == ("debian", "12", "bookworm")
    assert [(run["run"], run["state"], run["modules"]) for run in host["runs"]] == [("20260101T120000Z-3f2a1c", None, ["kernel_pin"])]
    assert host["runs"][0]["changes"][0]["where"] == "linux-generic"
    assert host["boot"]["problems"]
    assert host["units"] is None
    assert "systemctl is-system-running" in host["unknown"]["units"]
    assert rooted.run("gpu_host_info", EVERYTHING, "--check")["gpu_host"]["kernel"] == host["kernel"]
    assert rooted.written() == []


def test_a_run_is_not_opened_where_systemd_does_not_answer(rooted: Rooted) -> None:
    for options in ((), ("--check",)):
        answer = rooted.run("run_record", {"run": "20260102T000000Z-aaaaaa", "procedure": "recover_kernel_mismatch", "apt_timers": "stopped"}, *options)
        assert "record" not in answer
        assert "systemctl is-system-running" in answer["seen"]
        assert answer["remedy"].startswith("Run `systemctl status`")
    assert rooted.written() == []


def test_a_run_that_nothing_describes_is_closed_without_a_trace(rooted: Rooted) -> None:
    answer = rooted.run("run_record", {"run": "20260101T120000Z-3f2a1c", "state": "finished", "apt_timers": "restored"})
    assert (answer["changed"], answer["record"], answer["plan"], answer["left"]) == (False, None, [], [])
    assert rooted.written() == []


def test_only_root_is_answered(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3 "$@"\n')
    python.chmod(0o755)
    answer = ansible("gpu_host_info", EVERYTHING, python=str(python))
    assert (answer["seen"], answer["remedy"]) == ("The module runs as user id 65534", "Run the task with `become: true`")


def test_an_unknown_subset_is_refused() -> None:
    answer = ansible("gpu_host_info", {"gather_subset": ["kernels"]})
    assert (answer["seen"], "gpu_host" in answer) == ("gather_subset contains kernels", False)


def test_a_systemctl_that_never_ends_leaves_its_part_unknown(tmp_path: Path) -> None:
    for name in ("systemctl", "systemd-detect-virt"):
        (tmp_path / name).write_text("#!/bin/sh\nexec sleep 600\n")
        (tmp_path / name).chmod(0o755)
    begun = time.monotonic()
    host = ansible("gpu_host_info", {"gather_subset": ["units", "os"]}, PATH=f"{tmp_path}:{os.environ['PATH']}")["gpu_host"]
    assert time.monotonic() - begun < 120
    assert (host["units"], host["virtualization"]) == (None, None)
    assert host["os"]["id"] is not None
    for part in ("units", "virtualization"):
        assert "did not end in time" in host["unknown"][part]


def returned(documented: dict[str, Any], value: Any, where: str) -> Iterator[tuple[str, set[str], set[str]]]:
    """For each documented dict with content: where, the documented keys, and the real ones."""
    for row in value if isinstance(value, list) else [value]:
        if row is None or "contains" not in documented:
            return
        yield where, set(documented["contains"]), set(row)
        for name, inner in documented["contains"].items():
            yield from returned(inner, row.get(name), f"{where}.{name}")


def test_what_is_returned_is_what_is_documented(rooted: Rooted) -> None:
    documented = yaml.safe_load(gpu_host_info.RETURN)
    answer = rooted.run("gpu_host_info", EVERYTHING)
    assert set(documented) == set(answer) - {"changed"}
    compared = list(returned(documented["gpu_host"], answer["gpu_host"], "gpu_host"))
    assert [(where, real) for where, keys, real in compared if keys != real] == []
    assert {"gpu_host.kernel.installed", "gpu_host.runs.changes", "gpu_host.boot.default", "gpu_host.packages"} <= {where for where, _keys, _real in compared}
