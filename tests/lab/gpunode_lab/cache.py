# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One cache folder for everything the lab builds; each entry is keyed by a hash of its inputs and safe to delete."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from .progress import Progress


def cache_root() -> Path:
    """`$GPUNODE_CACHE`, or `~/.cache/gpunode-hygiene`."""
    configured = os.environ.get("GPUNODE_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "gpunode-hygiene"


def key(*inputs: str | bytes | Path) -> str:
    """A short hash over texts, file contents and folders of files (names and contents, in sorted order)."""
    digest = hashlib.sha256()
    for chunk in _chunks(inputs):
        digest.update(len(chunk).to_bytes(8, "big"))
        digest.update(chunk)
    return digest.hexdigest()[:16]


def _chunks(inputs: Iterable[str | bytes | Path]) -> Iterator[bytes]:
    for item in inputs:
        if isinstance(item, str):
            yield item.encode()
        elif isinstance(item, bytes):
            yield item
        elif item.is_dir():
            for path in sorted(p for p in item.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
                yield str(path.relative_to(item)).encode()
                yield path.read_bytes()
        else:
            yield item.read_bytes()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `<path>.lock`; a second process waits for the first one's build and then finds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(path.name + ".lock"), "w", encoding="ascii") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def built(entry: Path, build: Callable[[Path], None], title: str, progress: Progress) -> Path:
    """Return `entry`, a folder that exists only when `build(temporary folder)` ended well; build it when it is not there.

    :param title: what is built, for the progress line and its estimate.
    """
    if entry.is_dir():
        return entry
    with locked(entry):
        if entry.is_dir():
            return entry
        partial = entry.with_name(entry.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        with progress.step(title):
            build(partial)
        partial.rename(entry)
    return entry
