# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Container images without a container engine: one layer in the `docker save` format, which `ctr images import` reads."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Link:
    """A symbolic link in an image."""

    target: str


Content = bytes | Path | Link


def layer(files: Mapping[str, Content], executable: Sequence[str] = ()) -> bytes:
    """A reproducible tar of `files` ({path without leading slash: content}); a `Path` is read from disk and keeps its executable bit.

    :param executable: paths that get mode 0755 although their content is given as bytes.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for folder in sorted({str(parent) for name in files for parent in Path(name).parents if str(parent) != "."}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            if isinstance(content, Link):
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, content.target, 0o777
                tar.addfile(entry)
                continue
            data = content.read_bytes() if isinstance(content, Path) else content
            runs = name in executable or (isinstance(content, Path) and content.stat().st_mode & 0o100)
            entry.size, entry.mode = len(data), 0o755 if runs else 0o644
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def write(path: Path, names: Sequence[str], files: Mapping[str, Content], *, entrypoint: Sequence[str], executable: Sequence[str] = (),
          environment: Mapping[str, str] | None = None, user: str = "") -> Path:
    """Write an image with one layer to `path`.

    :param names: its references with tag, for example `registry.k8s.io/pause:3.6`.
    :param files: see `layer`.
    """
    data = layer(files, executable)
    digest = hashlib.sha256(data).hexdigest()
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "created": "1970-01-01T00:00:00Z",
        "config": {"Entrypoint": list(entrypoint), "Env": [f"{name}={value}" for name, value in (environment or {}).items()], "User": user},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}, "history": [{"created": "1970-01-01T00:00:00Z"}],
    }, sort_keys=True).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": list(names), "Layers": [f"{digest}/layer.tar"]}]).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    with tarfile.open(partial, "w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in ((f"{digest}/layer.tar", data), (config_name, config), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    partial.rename(path)
    return path
