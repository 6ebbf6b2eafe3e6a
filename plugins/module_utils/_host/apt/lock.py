# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The package manager's locks: who has them, and taking dpkg's frontend lock as apt does."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Optional

from ..._model import HygieneError
from ..files import read_text

FRONTEND = "var/lib/dpkg/lock-frontend"
# apt-get update writes the lists that a simulation reads; dpkg alone takes only the second one.
_OTHERS = ("var/lib/dpkg/lock", "var/lib/apt/lists/lock")
_POLL = 1.0
_FLOCK = "hhqqi4x"  # struct flock of Linux with 64-bit off_t: type, whence, start, length, pid


class _Busy(Exception):
    """A lock that somebody else has; its text says who."""


@contextmanager
def package_lock(timeout: float, write: bool, root: str = "/") -> Iterator[None]:
    """Wait until nobody changes packages; with `write`, keep everybody else out until the end.

    Without `write` nothing is opened for writing and nothing is created (check mode). With it the lock on lock-frontend is held, and child
    dpkg processes need DPKG_FRONTEND_LOCKED in their environment (dpkg's doc/frontend.txt).

    :param timeout: seconds to wait.
    :raises HygieneError: when the wait was in vain; nothing was changed.
    """
    handle = _wait(lambda: _take(root, write), timeout)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def holder(path: str) -> Optional[int]:
    """The process that has a write lock on a file; None when nobody has, 0 for one of another PID namespace."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _holder(handle)
    finally:
        os.close(handle)


def _holder(handle: int) -> Optional[int]:
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, _whence, _start, _length, pid = struct.unpack(_FLOCK, fcntl.fcntl(handle, fcntl.F_GETLK, asked))
    return None if kind == fcntl.F_UNLCK else pid


def _take(root: str, write: bool) -> Optional[int]:
    for name in _OTHERS if write else (FRONTEND, *_OTHERS):
        path = os.path.join(root, name)
        pid = holder(path)
        if pid is not None:
            raise _Busy(f"{path} is locked by {_describe(pid)}")
    return _lock_frontend(os.path.join(root, FRONTEND)) if write else None


def _lock_frontend(path: str) -> int:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as error:
        raise HygieneError(
            f"{path} cannot be opened ({error.strerror})",
            "Without dpkg's lock its database cannot be changed safely",
            "Run this on a writable host that has dpkg",
        ) from error
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pid = _holder(handle)
        os.close(handle)
        raise _Busy(f"{path} is locked by {_describe(pid)}") from None
    return handle


def _wait(attempt: Callable[[], Optional[int]], timeout: float) -> Optional[int]:
    until = time.monotonic() + timeout
    while True:
        try:
            return attempt()
        except _Busy as busy:
            left = until - time.monotonic()
            if left <= 0:
                raise HygieneError(
                    f"{busy} (waited {timeout:g} s)",
                    "Selections cannot be read and changed while another program works on the packages; nothing was changed",
                    "Wait until that program has ended, or give `lock_timeout` more seconds",
                ) from None
            time.sleep(min(_POLL, left))


def _describe(pid: Optional[int]) -> str:
    if not pid:
        return "a process of another PID namespace"
    try:
        command = (read_text(f"/proc/{pid}/cmdline") or "").replace("\0", " ").strip()
    except OSError:
        command = ""
    return f"process {pid} ({command or 'it has just ended'})"
