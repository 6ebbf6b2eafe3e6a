# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a program for a bounded time, whatever it does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Mapping, Optional, Sequence

# C.UTF-8, so that messages can be matched and titles written by update-grub do not depend on who ran it.
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8", "LANGUAGE": "", "DEBIAN_FRONTEND": "noninteractive"}
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Completed:
    """How a program ended. `rc` is None when it was still running at its deadline, 127 when it does not exist."""

    argv: tuple[str, ...]
    rc: Optional[int]
    out: str
    err: str

    @property
    def ok(self) -> bool:
        """Whether it ended in time with status 0."""
        return self.rc == 0

    @property
    def summary(self) -> str:
        """One line that says what ran and how it ended, for messages."""
        how = "did not end in time" if self.rc is None else f"ended with status {self.rc}"
        said = (self.err.strip() or self.out.strip()).splitlines()
        return f"`{' '.join(self.argv)}` {how}" + (f": {said[-1].strip()}" if said else "")


def run(argv: Sequence[str], timeout: float, stdin: str = "", env: Optional[Mapping[str, str]] = None) -> Completed:
    """Run `argv` (never through a shell) and wait at most `timeout` seconds for it.

    The child leads its own session and writes to files, not pipes: a grandchild that keeps them open, or a process in D
    state that SIGKILL does not reach, cannot make this call wait. Such a child is left to the kernel.
    """
    environment = {"PATH": os.environ.get("PATH", _DEFAULT_PATH), "HOME": os.environ.get("HOME", "/root"), **_ENVIRONMENT, **(env or {})}
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source.write(stdin.encode())
        source.seek(0)
        try:
            child = subprocess.Popen(  # pylint: disable=consider-using-with,ansible-bad-function
                list(argv), stdin=source, stdout=out, stderr=err, env=environment, start_new_session=True, close_fds=True
            )
        except (FileNotFoundError, PermissionError) as error:
            return Completed(tuple(argv), 127, "", str(error))
        rc: Optional[int]
        try:
            rc = child.wait(timeout)
        except subprocess.TimeoutExpired:
            rc = None
            _kill_session(child.pid)
            child.poll()
        out.seek(0)
        err.seek(0)
        return Completed(tuple(argv), rc, out.read().decode(errors="replace"), err.read().decode(errors="replace"))


def _kill_session(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
