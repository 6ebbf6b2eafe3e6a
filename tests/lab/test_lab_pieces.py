# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's own pieces that need no virtual machine."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
import yaml
from gpunode_lab import dockerarchive
from gpunode_lab.archive import Kernel, mirrors, newest_kernels, stanzas
from gpunode_lab.binaries import kubernetes_version
from gpunode_lab.cache import built, key
from gpunode_lab.cli import parser
from gpunode_lab.errors import LabError
from gpunode_lab.gotool import GO_SOURCES, go_version
from gpunode_lab.image import PARTITION_START, partition_table
from gpunode_lab.lab import Lab, folder_name, incident_module, inventory_text
from gpunode_lab.pki import Authority
from gpunode_lab.ports import free_ports
from gpunode_lab.process import Process, ProcessTable
from gpunode_lab.progress import Progress
from gpunode_lab.requirements import missing_packages, wanted_packages
from gpunode_lab.ssh import Connection

pytestmark = pytest.mark.quick

LAB = Path(__file__).parent / "lab"


def paragraph(name: str, version: str) -> str:
    return f"Package: {name}\nVersion: {version}\nDescription: a kernel\n folded line\n"


def kernel(abi: int, version: str, *, headers: bool = True) -> str:
    names = [f"linux-image-6.1.0-{abi}-amd64"]
    names += [f"linux-headers-6.1.0-{abi}-amd64", f"linux-headers-6.1.0-{abi}-common"] if headers else []
    return "\n".join(paragraph(name, version) for name in names)


# -- which kernels ------------------------------------------------------------------------------------------------------------------------


def test_the_newest_kernels_are_chosen_by_number_not_by_text_and_come_oldest_first() -> None:
    text = "\n".join([kernel(100, "6.1.200-1"), kernel(9, "6.1.9-1"), kernel(57, "6.1.192-3"), kernel(56, "6.1.192-2")])
    assert newest_kernels(text, 3) == [Kernel("6.1.0-56-amd64", "6.1.192-2"), Kernel("6.1.0-57-amd64", "6.1.192-3"), Kernel("6.1.0-100-amd64", "6.1.200-1")]


def test_of_one_kernel_in_several_versions_the_newest_is_taken() -> None:
    text = "\n".join([kernel(57, "6.1.192-10"), kernel(57, "6.1.192-9"), kernel(56, "6.1.190-1")])
    assert newest_kernels(text) == [Kernel("6.1.0-56-amd64", "6.1.190-1"), Kernel("6.1.0-57-amd64", "6.1.192-10")]


@pytest.mark.parametrize("other", [kernel(58, "6.1.193-1", headers=False), paragraph("linux-image-6.1.0-59-rt-amd64", "6.1.194-1"),
                                   paragraph("linux-image-6.12.95+deb12-amd64", "6.12.95-1~bpo12+1")])
def test_kernels_without_headers_and_of_other_flavours_and_series_are_passed_over(other: str) -> None:
    text = "\n".join([kernel(56, "6.1.192-2"), kernel(57, "6.1.192-3"), other])
    assert [found.release for found in newest_kernels(text)] == ["6.1.0-56-amd64", "6.1.0-57-amd64"]


def test_an_archive_with_too_few_kernels_is_refused_by_name_and_number() -> None:
    with pytest.raises(LabError, match=r"offers 1 kernel ABIs of 6\.1 with headers \(6\.1\.0-57-amd64\), 2 are needed"):
        newest_kernels(kernel(57, "6.1.192-3"))


def test_stanzas_join_folded_lines() -> None:
    assert stanzas("A: 1\n 2\nB: x\n\n\nA: 3\n") == [{"A": "1\n2", "B": "x"}, {"A": "3"}]


@pytest.mark.parametrize(("sources", "expected"), [
    ("deb http://m/debian bookworm main\ndeb [arch=amd64] http://s bookworm-security main\n", {"bookworm": "http://m/debian", "bookworm-security": "http://s"}),
    ("Types: deb\n# a comment\nURIs: http://m/debian\nSuites: bookworm bookworm-updates\nComponents: main\n",
     {"bookworm": "http://m/debian", "bookworm-updates": "http://m/debian"}),
    ("deb http://archive.ubuntu.com/ubuntu noble main\n# deb http://m bookworm main\n", {}),
    ("deb-src http://m/debian bookworm main\n", {}),
    ("Types: deb-src\nURIs: http://m/debian\nSuites: bookworm\n", {}),
])
def test_mirrors_are_those_that_apt_uses_for_the_nodes_release(sources: str, expected: dict[str, str]) -> None:
    assert mirrors(sources) == expected


# -- disk and images ----------------------------------------------------------------------------------------------------------------------


def test_the_partition_table_has_one_bootable_linux_partition_to_the_end() -> None:
    table = partition_table(PARTITION_START, 10 << 30)
    assert len(table) == 512
    assert table[510:] == b"\x55\xaa"
    active, kind, first, count = table[446], table[450], *struct.unpack("<II", table[454:462])
    assert (active, kind, first, count) == (0x80, 0x83, 2048, (10 << 30) // 512 - 2048)
    assert table[462:510] == bytes(48)


def test_a_container_image_is_one_reproducible_layer_with_its_files(tmp_path: Path) -> None:
    files: dict[str, dockerarchive.Content] = {"bin/run": b"#!/bin/sh\n", "etc/answer": b"42", "bin/sh": dockerarchive.Link("busybox")}
    first, second = (dockerarchive.write(tmp_path / name, ["example.invalid/a:1"], files, entrypoint=["/bin/run"], executable=["bin/run"]) for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as tar:
        [manifest] = json.loads(read(tar, "manifest.json"))
        config = json.loads(read(tar, manifest["Config"]))
        with tarfile.open(fileobj=io.BytesIO(read(tar, manifest["Layers"][0]))) as inner:
            modes = {member.name: member.mode for member in inner.getmembers() if member.isfile()}
            link = inner.getmember("bin/sh").linkname
    assert manifest["RepoTags"] == ["example.invalid/a:1"]
    assert config["config"]["Entrypoint"] == ["/bin/run"]
    assert modes == {"bin/run": 0o755, "etc/answer": 0o644}
    assert link == "busybox"


def read(tar: tarfile.TarFile, name: str) -> bytes:
    member = tar.extractfile(name)
    assert member is not None
    return member.read()


# -- cache --------------------------------------------------------------------------------------------------------------------------------


def test_a_key_depends_on_names_and_contents_and_their_order(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    before = key(tmp_path)
    assert key(tmp_path) == before
    (tmp_path / "a").rename(tmp_path / "b")
    renamed = key(tmp_path)
    (tmp_path / "b").write_text("2")
    assert len({before, renamed, key(tmp_path)}) == 3
    assert key("ab", "c") != key("a", "bc")


def test_a_build_that_fails_leaves_no_entry_and_the_next_one_starts_clean(tmp_path: Path) -> None:
    progress, entry = Progress(tmp_path / "durations.json"), tmp_path / "entry"

    def fails(folder: Path) -> None:
        (folder / "half").touch()
        raise LabError("half done", "try again")

    def works(folder: Path) -> None:
        (folder / "whole").touch()

    with pytest.raises(LabError, match="half done"):
        built(entry, fails, "a thing", progress)
    assert not entry.exists()
    assert [path.name for path in built(entry, works, "a thing", progress).iterdir()] == ["whole"]
    built(entry, fails, "a thing", progress)  # is there: not built again


# -- processes and ports ------------------------------------------------------------------------------------------------------------------


def test_a_process_is_found_again_and_stopped_by_another_object(tmp_path: Path) -> None:
    started = ProcessTable(tmp_path).start("sleeper", ["sleep", "60"])
    found = ProcessTable(tmp_path).get("sleeper")
    assert found == started
    ProcessTable(tmp_path).stop("sleeper")
    assert not started.alive()
    assert ProcessTable(tmp_path).names() == []
    ProcessTable(tmp_path).stop("sleeper")


def test_a_reused_process_number_is_not_mistaken_for_ours(tmp_path: Path) -> None:
    mine = ProcessTable(tmp_path).start("sleeper", ["sleep", "60"])
    impostor = Process("other", mine.pid, mine.started - 1)
    assert not impostor.alive()
    impostor.stop()
    assert mine.alive()
    mine.stop()


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    program = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    stubborn = ProcessTable(tmp_path).start("stubborn", [sys.executable, "-c", program])
    deadline = time.monotonic() + 20
    while ProcessTable(tmp_path).tail("stubborn") != "1":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    stubborn.stop(grace=0.2)
    assert not stubborn.alive()


def test_ports_are_distinct_and_free() -> None:
    assert len(set(free_ports(20))) == 20


# -- keys, inventory, requirements, command line ------------------------------------------------------------------------------------------


def test_certificates_are_verified_by_openssl_with_their_names_and_kept(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("server", "system:node:a", groups=["system:nodes"], hosts=["127.0.0.1", "gpu-node-1"])
    verify = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", "gpu-node-1", "-CAfile", str(authority.pair.certificate)]
    assert subprocess.run([*verify, str(pair.certificate)], capture_output=True, text=True, check=False).stdout == f"{pair.certificate}: OK\n"
    show = ["openssl", "x509", "-noout", "-subject", "-nameopt", "RFC2253", "-in", str(pair.certificate)]
    assert subprocess.run(show, capture_output=True, text=True, check=True).stdout.strip() == "subject=CN=system:node:a,O=system:nodes"
    assert pair.key.stat().st_mode & 0o777 == 0o600
    before = pair.certificate.read_bytes()
    assert Authority(tmp_path).issue("server", "system:node:a").certificate.read_bytes() == before


def test_the_inventory_reaches_the_node_and_accepts_no_unknown_host_key(tmp_path: Path) -> None:
    connection = Connection(2222, tmp_path / "client", tmp_path / "with space" / "known_hosts")
    connection.trust("ssh-ed25519 AAAA root@node")
    assert connection.known_hosts.read_text() == "[127.0.0.1]:2222 ssh-ed25519 AAAA\n"
    host = yaml.safe_load(inventory_text(connection))["all"]["children"]["gpu_nodes"]["hosts"]["gpu-node-1"]
    assert (host["ansible_host"], host["ansible_port"], host["ansible_user"]) == ("127.0.0.1", 2222, "root")
    assert "StrictHostKeyChecking=yes" in host["ansible_ssh_common_args"]
    assert f"'UserKnownHostsFile={connection.known_hosts}'" in host["ansible_ssh_common_args"]


def test_missing_packages_are_those_that_dpkg_does_not_show_as_installed() -> None:
    wanted = wanted_packages("# head\nqemu-utils   # disk\n\netcd-server\ngpg\n")
    assert wanted == ["qemu-utils", "etcd-server", "gpg"]
    assert missing_packages(wanted, "qemu-utils installed\netcd-server config-files\n") == ["etcd-server", "gpg"]


@pytest.mark.parametrize(("text", "expected"), [("go version go1.26.1 linux/amd64", (1, 26)), ("go version go1.9", (1, 9)), ("command not found", None)])
def test_the_version_of_go_is_read(text: str, expected: tuple[int, int] | None) -> None:
    assert go_version(text) == expected


def test_the_servers_carry_the_version_that_the_module_asks_for() -> None:
    assert kubernetes_version("require k8s.io/kubernetes v1.35.4\n") == "v1.35.4"
    assert kubernetes_version("require (\n\tk8s.io/kubectl v0.35.4\n\tk8s.io/kubernetes v1.35.4 // x\n)\n") == "v1.35.4"
    assert kubernetes_version((GO_SOURCES / "go.mod").read_text()).startswith("v1.")


def test_an_unknown_incident_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LabError, match=r"no incident nothing\. Choose one of .*kernel_mismatch"):
        incident_module("nothing")


def test_a_lab_that_is_not_up_says_so_and_going_down_twice_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUNODE_CACHE", str(tmp_path))
    lab = Lab("never-started")
    with pytest.raises(LabError, match=r"never-started is not up\. Run `lab up` first"):
        lab.ssh("true")
    lab.down()
    lab.down()
    assert lab.status() == {"lab": "down"}


def test_labs_of_tests_with_long_names_stay_apart() -> None:
    long = "test_a_trial_boot_that_fails_ends_on_the_previous_kernel_still_cordoned"
    names = {folder_name(f"{long}[{fault}]") for fault in ("panics", "corrupt_vmlinuz")}
    assert len(names) == 2
    assert all(len(name) <= 60 and folder_name(name) == name for name in names)
    assert folder_name("demo") == "demo"


def test_the_command_line_passes_options_of_a_remote_command_on() -> None:
    assert parser().parse_args(["--name", "x", "ssh", "ls", "-l"]).words == ["ls", "-l"]
    assert parser().parse_args(["up", "--from", "incident"]).snapshot == "incident"


def test_the_command_line_tells_what_is_wrong_with_exit_code_1(tmp_path: Path) -> None:
    answer = subprocess.run([sys.executable, str(LAB), "--name", "none", "env"], env={**os.environ, "GPUNODE_CACHE": str(tmp_path)}, capture_output=True,
                            text=True, check=False)
    assert (answer.returncode, answer.stderr) == (1, "lab: The lab none is not up. Run `lab up` first.\n")
