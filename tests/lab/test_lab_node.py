# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's node is what a real one is, and can be saved, restored, reset and taken down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gpunode_lab import aptrepo
from gpunode_lab.accelerator import kernel_boots
from gpunode_lab.lab import NODE, Lab
from gpunode_lab.process import Process

pytestmark = pytest.mark.xdist_group("test_lab_node")  # they share one lab


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.started("node", snapshot="base") as started:
        yield started


def node_info(lab: Lab) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.kubectl("get", "node", NODE, "-o", "json").stdout)["status"]["nodeInfo"]
    return found


def boot_id(lab: Lab) -> str:
    return lab.ssh("cat /proc/sys/kernel/random/boot_id").stdout.strip()


def processes(lab: Lab) -> list[Process]:
    tables = (lab.processes, lab.control_plane.processes)
    return [process for table in tables for name in table.names() if (process := table.get(name))]


def test_the_node_object_tells_the_machines_own_identity_and_kernel(lab: Lab) -> None:
    told = node_info(lab)
    asked = lab.ssh("cat /etc/machine-id /sys/class/dmi/id/product_uuid /proc/sys/kernel/random/boot_id; uname -r").stdout.split()
    assert [told["machineID"], told["systemUUID"].lower(), told["bootID"], told["kernelVersion"]] == asked
    assert told["kernelVersion"] == lab.older_kernel


def test_the_clock_is_right_and_no_unit_has_failed(lab: Lab) -> None:
    assert abs(float(lab.ssh("date +%s").stdout) - time.time()) < 10
    assert lab.ssh("systemctl --failed --no-legend --plain").stdout == ""


def test_the_api_server_reaches_the_kubelet_for_logs_and_commands(lab: Lab) -> None:
    pod = json.loads(lab.kubectl("get", "pods", "-n", "gpu-operator", "-l", "app=nvidia-driver-daemonset", "-o", "json").stdout)["items"][0]["metadata"]["name"]
    logs = lab.kubectl("logs", "-n", "gpu-operator", pod, "--all-containers").stdout
    assert "580.126.20" in logs
    assert lab.kubectl("exec", "-n", "gpu-operator", pod, "--", "uname", "-r").stdout.strip() == lab.older_kernel


def test_apt_works_without_the_internet_and_offers_no_upgrade_before_one_is_published(lab: Lab) -> None:
    lab.ssh("apt-get update")
    assert "0 upgraded, 0 newly installed" in lab.ssh("apt-get --simulate dist-upgrade").stdout
    aptrepo.publish(lab.repository, "B")
    lab.ssh("apt-get update")
    assert f"Inst linux-image-{lab.newer_kernel}" in lab.ssh("apt-get --simulate dist-upgrade").stdout


def test_ansible_reaches_the_node_by_the_inventory(lab: Lab) -> None:
    command = [str(Path(sys.executable).with_name("ansible")), "-i", str(lab.inventory), NODE, "-m", "ansible.builtin.command", "-a", "uname -n"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "ANSIBLE_HOST_KEY_CHECKING": "True"})
    assert answer.stdout.splitlines()[-1:] == [NODE], answer


def test_what_was_saved_comes_back_on_disk_in_memory_and_in_the_cluster(lab: Lab) -> None:
    lab.ssh("echo before > /root/on-disk; echo before > /run/in-memory; sync")
    lab.kubectl("create", "configmap", "marker", "--from-literal=when=before")
    booted = boot_id(lab)
    lab.save("here")
    lab.ssh("echo after > /root/on-disk; echo after > /run/in-memory")
    lab.kubectl("delete", "configmap", "marker")
    lab.restore("here")
    assert lab.ssh("cat /root/on-disk /run/in-memory").stdout.split() == ["before", "before"]
    assert lab.kubectl("get", "configmap", "marker", "-o", "jsonpath={.data.when}").stdout == "before"
    assert boot_id(lab) == booted


def test_the_reset_button_reboots_the_machine_through_its_own_boot_loader(lab: Lab) -> None:
    before, printed = boot_id(lab), lab.serial.stat().st_size
    assert subprocess.run(lab.power_cycle_command, shell=True, check=False).returncode == 0  # noqa: S602  # as a user's hook is run
    lab.wait_until_it_goes_down()
    lab.wait_ssh()
    assert boot_id(lab) != before
    assert b"GNU GRUB" in lab.serial.read_bytes()[printed:]


def test_a_lab_whose_machine_died_is_seen_as_such_and_started_afresh(lab: Lab) -> None:
    lab.machine.stop()
    assert lab.status()["lab"] == "incomplete: run `lab down`"
    lab.up("base")
    assert lab.status()["lab"] == "up from base"


def test_down_leaves_no_process_and_no_folder(lab: Lab) -> None:
    before = processes(lab)
    assert len(before) == 6  # QEMU, the apt repository, etcd and the three servers
    lab.down()
    assert [process for process in before if process.alive()] == []
    assert not lab.folder.exists()


def test_the_probe_for_an_accelerator_tells_a_kernel_that_boots_from_one_that_does_not(tmp_path: Path, lab: Lab) -> None:
    [package] = (aptrepo.build(lab.progress)).glob(f"pool/linux-image-{lab.older_kernel}_*.deb")
    subprocess.run(["dpkg-deb", "--extract", str(package), str(tmp_path)], check=True)
    kernel = tmp_path / "boot" / f"vmlinuz-{lab.older_kernel}"
    assert kernel_boots(kernel, "tcg", patience=120)
    kernel.write_bytes(kernel.read_bytes()[:4096])
    assert not kernel_boots(kernel, "tcg", patience=10)
