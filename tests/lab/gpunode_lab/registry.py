# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Container registries on loopback: Debian's `docker-registry` with real, small images.

::

    with Registry(tmp_path) as registry:
        registry.push("nvidia/driver", "580.126.20-debian12")
    join("my lab"); leave("my lab")      # the one that all labs share, at ADDRESS
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import yaml

from . import dockerarchive
from .cache import cache_root, locked
from .errors import LabError
from .ports import free_ports
from .process import ProcessTable
from .standins.images import DRIVER_TAG, REPOSITORY

ADDRESS, PROJECT = REPOSITORY.split("/", 1)
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def config_text(address: str, storage: Path) -> str:
    """docker-registry's configuration: plain HTTP, everybody may push and pull, images may be deleted."""
    return yaml.safe_dump({
        "version": "0.1", "log": {"level": "warn"}, "http": {"addr": address},
        "storage": {"filesystem": {"rootdirectory": str(storage)}, "delete": {"enabled": True}},
    })


class Registry:
    """One registry in one folder (images, configuration, log, pid file).

    :param address: `host:port`; a free port on 127.0.0.1 by default.
    :param tied: end it when the starting thread ends.
    """

    def __init__(self, folder: Path, *, address: str = "", tied: bool = True) -> None:
        self.folder = folder
        self.address = address or f"127.0.0.1:{free_ports(1)[0]}"
        self.tied = tied
        self.processes = ProcessTable(folder / "run")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self, patience: float = 20) -> None:
        """Start it and wait until it answers; one that runs is left alone.

        :raises LabError: docker-registry is missing, ended, or somebody else listens there.
        """
        if self.processes.get("registry"):
            return
        program = shutil.which("docker-registry")
        if not program:
            raise LabError("There is no docker-registry on PATH", "Install the package docker-registry (its service need not run)")
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "config.yml"
        config.write_text(config_text(self.address, self.folder / "images"), "utf-8")
        self.processes.start("registry", [program, "serve", config], tied=self.tied)
        deadline = time.monotonic() + patience
        while True:
            process = self.processes.get("registry")
            if not process:
                raise LabError(f"docker-registry ended: {self.processes.tail('registry')}", f"See who listens on {self.address}: ss -ltnp")
            try:
                if self.request("GET", "/v2/")[0] == 200:
                    return
            except OSError:
                pass  # not listening yet; the deadline decides
            if time.monotonic() > deadline:
                raise LabError(f"docker-registry does not answer on {self.address} within {patience:.0f} s", f"Read {self.processes.log('registry')}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it; safe to repeat."""
        self.processes.stop("registry")

    def push(self, repository: str, tag: str) -> str:
        """Push an image of one small layer and return its manifest's digest."""
        text = f"{repository}:{tag}\n".encode()
        plain = dockerarchive.layer({"etc/image": text})
        layer = gzip.compress(plain, mtime=0)
        config = json.dumps({
            "architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": [_digest(plain)]},
        }).encode()
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": {"mediaType": CONFIG, "size": len(config), "digest": _digest(config)},
            "layers": [{"mediaType": LAYER, "size": len(layer), "digest": _digest(layer)}],
        }).encode()
        for blob in (config, layer):
            location = self._demand(202, "POST", f"/v2/{repository}/blobs/uploads/", b"", {})["Location"]
            target = urlsplit(location)
            self._demand(201, "PUT", f"{target.path}?{target.query}&digest={_digest(blob)}", blob, {"Content-Type": "application/octet-stream"})
        answer = self._demand(201, "PUT", f"/v2/{repository}/manifests/{tag}", manifest, {"Content-Type": MANIFEST})
        return answer["Docker-Content-Digest"]

    def request(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> tuple[int, dict[str, str], bytes]:
        """One HTTP request: (status, headers, body)."""
        connection = http.client.HTTPConnection(self.address, timeout=20)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def _demand(self, wanted: int, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
        status, found, answer = self.request(method, path, body, headers)
        if status != wanted:
            raise LabError(f"The registry answers {method} {path} with {status}, not {wanted}: {answer[:300]!r}", f"Read {self.processes.log('registry')}")
        return found


def shared() -> Registry:
    """The registry that all labs' ClusterPolicies name. Its address is part of their snapshots, so there is one for all."""
    return Registry(cache_root() / "registry", address=ADDRESS, tied=False)


def join(user: str) -> None:
    """Have the shared registry run, with the driver image of the lab's OS, until `user` leaves it."""
    registry = shared()
    with locked(registry.folder):
        _users(registry).mkdir(parents=True, exist_ok=True)
        (_users(registry) / user).touch()
        registry.start()
        if registry.request("HEAD", f"/v2/{PROJECT}/driver/manifests/{DRIVER_TAG}", headers={"Accept": MANIFEST})[0] != 200:
            registry.push(f"{PROJECT}/driver", DRIVER_TAG)


def leave(user: str) -> None:
    """Give the shared registry up; the last user's leaving stops it. Safe to repeat."""
    registry = shared()
    with locked(registry.folder):
        (_users(registry) / user).unlink(missing_ok=True)
        if not _users(registry).is_dir() or not any(_users(registry).iterdir()):
            registry.stop()


def _users(registry: Registry) -> Path:
    return registry.folder / "users"


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
