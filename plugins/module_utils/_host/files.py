# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and write files so that nobody ever sees half of one."""

from __future__ import annotations

import os
import tempfile
from typing import Optional


def read_text(path: str) -> Optional[str]:
    """The text of a file, or None when there is none.

    :raises OSError: when it exists but cannot be read.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_atomic(path: str, text: str, mode: int = 0o644) -> None:
    """Replace or create a file by rename, flushed to disk with its folder, so that a crash leaves the old or the new one.

    :raises OSError: when the folder cannot be written; the old file is then untouched.
    """
    folder = os.path.dirname(path)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    sync_folder(folder)


def remove(path: str) -> None:
    """Remove a file for good, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    sync_folder(os.path.dirname(path))


def sync_folder(folder: str) -> None:
    """Flush a folder's entries to disk (rename and unlink are not durable before that)."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
