# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-ins' images, manifests and modules without a node: archives unpacked, scripts run in them, programs of Go tested."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpunode_lab import aptrepo, gotool, modules, standins
from gpunode_lab.archive import Archive
from gpunode_lab.cache import cache_root
from gpunode_lab.progress import Progress
from gpunode_lab.standins.deploy import manifest
from gpunode_lab.standins.images import DRIVER_VERSION, HERE, image_names

pytestmark = pytest.mark.quick

Enter = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def progress() -> Progress:
    return Progress(cache_root() / "durations.json")


@pytest.fixture(scope="session")
def images(progress: Progress) -> Path:
    return standins.build(progress)


def unpack(archive: Path, folder: Path) -> dict[str, Any]:
    """Unpack the image's one layer into `folder` and return its configuration."""
    with tarfile.open(archive) as tar:
        [entry] = json.load(tar.extractfile("manifest.json"))  # type: ignore[arg-type]
        config: dict[str, Any] = json.load(tar.extractfile(entry["Config"]))  # type: ignore[arg-type]
        with tarfile.open(fileobj=tar.extractfile(entry["Layers"][0])) as layer:
            layer.extractall(folder, filter="tar")
    return config


def modinfo(module: bytes) -> dict[str, str]:
    """The `key=value` strings of a module's .modinfo section that the tests look at."""
    return {found[1].decode(): found[2].decode() for found in re.finditer(rb"(?<=\0)(name|version|depends|vermagic)=([^\0]*)", module)}


@pytest.fixture
def enter(tmp_path: Path, images: Path) -> Enter:
    """Run a command in an image's files, with a proc, a sys of the machine (read-only), a /run of its own, and no device."""

    def run(archive: str, *command: str, environment: dict[str, str] | None = None,
            prepare: Callable[[Path], None] | None = None) -> subprocess.CompletedProcess[str]:
        root = tmp_path / archive
        config = unpack(images / archive, root)
        for name in ("proc", "sys", "dev", "run"):
            (root / name).mkdir(exist_ok=True)
        if prepare:
            prepare(root)
        variables = dict(item.split("=", 1) for item in config["config"]["Env"])
        script = 'mount --bind "$0" "$0"; mount -t proc proc "$0/proc"; mount -t sysfs -o ro sysfs "$0/sys"; exec chroot "$0" "$@"'
        return subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "sh", "-ec", script, str(root), *command],
            capture_output=True, text=True, check=False, timeout=60, env={**variables, **(environment or {})},
        )

    return run


def test_the_driver_ends_with_the_real_message_on_a_kernel_that_its_archive_does_not_have(enter: Enter) -> None:
    answer = enter("driver.tar", "/usr/local/bin/nvidia-driver", "init")
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[-1] == "Could not resolve Linux kernel version"
    lines = answer.stdout.splitlines()
    assert lines[1] == f"Starting installation of NVIDIA driver version {DRIVER_VERSION} for Linux kernel version {os.uname().release}"
    assert lines.index("Resolving Linux kernel version...") > lines.index("Updating the package cache...")
    assert "Installing Linux kernel headers..." not in lines


def test_a_second_driver_on_the_same_node_stops_at_the_lock(enter: Enter) -> None:
    script = "mkdir -p /run/nvidia; exec 4>/run/nvidia/nvidia-driver.pid; flock -n 4 && exec nvidia-driver init"
    answer = enter("driver.tar", "/bin/sh", "-c", script)
    assert answer.returncode == 1
    assert answer.stderr.splitlines() == ["An instance of the NVIDIA driver is already running, aborting"]


def test_the_startup_probe_fails_with_the_real_message_while_the_module_is_not_loaded(enter: Enter) -> None:
    answer = enter("driver.tar", "/bin/sh", "/usr/local/bin/startup-probe.sh")
    assert (answer.returncode, answer.stderr.strip()) == (1, "NVIDIA kernel module not loaded")


def test_the_validator_waits_for_a_file_and_goes_on_when_it_is_there(enter: Enter) -> None:
    def ready(root: Path) -> None:
        validations = root / "run/nvidia/validations"
        validations.mkdir(parents=True)
        (validations / "toolkit-ready").touch()

    answer = enter("operands.tar", "/bin/sh", "-c", "nvidia-validator wait toolkit-ready && timeout 2 nvidia-validator wait cuda-ready; exit $?",
                   environment={"WAIT_SECONDS": "1"}, prepare=ready)
    assert answer.returncode == 143  # the second wait was ended by its timeout
    assert set(answer.stdout.splitlines()) == {"waiting for /run/nvidia/validations/cuda-ready"}


def test_the_driver_image_has_modules_for_the_older_kernel_alone(images: Path, tmp_path: Path) -> None:
    unpack(images / "driver.tar", tmp_path)
    assert [path.name for path in (tmp_path / "archive").iterdir()] == [aptrepo.kernels(Archive()).older.release]


def test_every_image_that_a_pod_names_is_in_an_archive(images: Path) -> None:
    there = {name for archive in images.glob("*.tar") for name in image_names(archive)}
    named = set()
    for path in (HERE / "manifests").glob("*.yaml"):
        for document in yaml.safe_load_all(manifest(path.name)):
            spec = document["spec"] if document["kind"] == "Pod" else document.get("spec", {}).get("template", {}).get("spec", {})
            for container in [*spec.get("initContainers", []), *spec.get("containers", [])]:
                named.add(container["image"])
                assert container["imagePullPolicy"] == "Never"
    assert named == there


@pytest.mark.parametrize(("name", "version", "depends"), [
    ("nvidia", DRIVER_VERSION, ""), ("nvidia-uvm", DRIVER_VERSION, "nvidia"), ("nvidia-modeset", DRIVER_VERSION, "nvidia"),
    ("nvidia-drm", DRIVER_VERSION, "nvidia-modeset"), ("nvidia-peermem", DRIVER_VERSION, "ib_core,nvidia"), ("gdrdrv", "2.5.2", "nvidia"),
])
def test_modules_have_the_real_names_version_and_dependencies_for_both_kernels(progress: Progress, name: str, version: str, depends: str) -> None:
    found = aptrepo.kernels(Archive())
    for kernel in (found.older, found.newer):
        path = modules.build_modules(progress) / kernel.release / f"{name}.ko"
        info = modinfo(path.read_bytes())
        assert info["name"] == name.replace("-", "_")
        assert info["version"] == version
        assert ",".join(sorted(info["depends"].split(","))) == depends
        assert info["vermagic"].split()[0] == kernel.release


def test_the_go_programs_pass_their_own_tests(progress: Progress) -> None:
    answer = subprocess.run([str(gotool.find_go(progress)), "test", "./cmd/..."], cwd=gotool.GO_SOURCES, capture_output=True, text=True,
                            check=False, env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"})
    assert answer.returncode == 0, answer.stdout + answer.stderr
