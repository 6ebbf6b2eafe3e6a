# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-ins' container images, made from busybox, two Go programs and scripts."""

from __future__ import annotations

import json
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from .. import aptrepo, dockerarchive, gotool
from ..archive import Archive
from ..cache import built, cache_root, key
from ..dockerarchive import Content, Link
from ..errors import LabError
from ..modules import build_modules
from ..progress import Progress

HERE = Path(__file__).parent
BUSYBOX = Path("/bin/busybox")
REPOSITORY = "127.0.0.1:5043/nvidia"  # what ClusterPolicy and pods name; registry.py serves it to who asks whether an image exists
DRIVER_VERSION = "580.126.20"
DRIVER_TAG = f"{DRIVER_VERSION}-debian12"

_PATH = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
_OPERANDS = ("driver-manager", "nfd-worker", "gpu-operator", "dcgm-exporter", "trainer")


@dataclass(frozen=True)
class Image:
    """What goes into one archive."""

    file: str
    names: tuple[str, ...]
    files: dict[str, Content]
    entrypoint: tuple[str, ...]
    environment: dict[str, str]


def build(progress: Progress) -> Path:
    """The folder with one `docker save` archive an image.

    :raises LabError: busybox is missing, or something it is made from cannot be built.
    """
    if not BUSYBOX.exists():
        raise LabError(f"There is no {BUSYBOX}", "Install the package busybox-static")
    modules = build_modules(progress)
    kernel = aptrepo.kernels(Archive()).older.release

    def make(folder: Path) -> None:
        programs = folder / "programs"
        gotool.build(programs, ["./cmd/operand", "./cmd/device-plugin"], progress)
        for image in images(programs, modules, kernel):
            dockerarchive.write(folder / image.file, image.names, image.files, entrypoint=image.entrypoint, environment=image.environment)

    go = [gotool.GO_SOURCES / name for name in ("go.mod", "go.sum", "internal", "cmd/operand", "cmd/device-plugin")]
    sources = [Path(__file__), Path(dockerarchive.__file__), HERE / "driver", HERE / "operands", BUSYBOX, *go]
    return built(cache_root() / "standins" / key(*sources, modules.name, kernel), make, "stand-in images", progress)


def images(programs: Path, modules: Path, kernel: str) -> list[Image]:
    """All images.

    :param programs: folder with the Go programs.
    :param modules: folder with `<kernel release>/*.ko`.
    :param kernel: the one kernel release whose headers the driver image's own archive has.
    """
    tools = busybox_files()
    driver: dict[str, Content] = {f"archive/{kernel}/{path.name}": path for path in (modules / kernel).glob("*.ko")}
    driver.update({f"usr/local/bin/{path.name}": path for path in (HERE / "driver").iterdir()})
    driver.update({f"usr/bin/{name}": programs / "operand" for name in ("flock", "nvidia-persistenced")})
    validator: dict[str, Content] = {f"usr/local/bin/{path.name}": path for path in (HERE / "operands").iterdir()}
    operand: dict[str, Content] = {"usr/bin/operand": programs / "operand", **{f"usr/bin/{name}": Link("operand") for name in _OPERANDS}}
    return [
        Image("driver.tar", (f"{REPOSITORY}/driver:{DRIVER_TAG}",), {**tools, **driver}, ("nvidia-driver",), {**_PATH, "DRIVER_VERSION": DRIVER_VERSION}),
        Image("operands.tar", (f"{REPOSITORY}/gpu-operator:v26.3.2", f"{REPOSITORY}/cloud-native/k8s-driver-manager:v0.11.0",
                               f"{REPOSITORY}/k8s/container-toolkit:v1.19.0", f"{REPOSITORY}/k8s/dcgm-exporter:4.5.2-4.8.1",
                               "registry.k8s.io/nfd/node-feature-discovery:v0.18.3", "registry.example/ml/trainer:1"),
              {**tools, **validator, **operand}, ("operand",), _PATH),
        Image("device-plugin.tar", (f"{REPOSITORY}/k8s-device-plugin:v0.19.0",), {**tools, "usr/bin/device-plugin": programs / "device-plugin"},
              ("device-plugin",), _PATH),
    ]


def busybox_files() -> dict[str, Content]:
    """busybox and a link for each of its applets."""
    applets = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    files: dict[str, Content] = {f"bin/{applet}": Link("busybox") for applet in applets if applet != "busybox"}
    return {**files, "bin/busybox": BUSYBOX, "tmp/.keep": b"", "var/run/.keep": b"", "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n"}


def image_names(archive: Path) -> list[str]:
    """The references that a `docker save` archive gives its image."""
    with tarfile.open(archive) as tar:
        content = tar.extractfile("manifest.json")
        if content is None:
            raise LabError(f"{archive} has no manifest.json", f"Delete {archive.parent} and try again")
        names: list[str] = json.load(content)[0]["RepoTags"]
        return names
