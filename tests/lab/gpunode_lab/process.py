# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Child processes that outlive the command that started them, found again by pid file and start time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError


@dataclass(frozen=True)
class Process:
    """A process by number and start time (clock ticks since boot, field 22 of proc(5) stat), so that a reused number is not mistaken for it."""

    name: str
    pid: int
    started: int

    def alive(self) -> bool:
        """Whether that very process still runs (a zombie does not)."""
        with contextlib.suppress(OSError):
            os.waitpid(self.pid, os.WNOHANG)
        return _start_time(self.pid) == self.started

    def stop(self, grace: float = 10.0) -> None:
        """SIGTERM, then SIGKILL after `grace` seconds; a process that is gone is fine.

        :raises LabError: it is still there after SIGKILL.
        """
        for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
            if not self.alive():
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
            deadline = time.monotonic() + patience
            while self.alive() and time.monotonic() < deadline:
                time.sleep(0.02)
        if self.alive():
            raise LabError(f"{self.name} (pid {self.pid}) does not end after SIGKILL", f"Look at /proc/{self.pid}/stack")


def _start_time(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()
    return None if state in "ZX" else int(rest[18])


class ProcessTable:
    """The processes of one lab: `<folder>/<name>.pid` says which, `<folder>/<name>.log` is what they print."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def log(self, name: str) -> Path:
        """Where that process prints."""
        return self.folder / f"{name}.log"

    def start(self, name: str, command: Sequence[str | Path], *, tied: bool = False, env: Mapping[str, str] | None = None) -> Process:
        """Start a command in its own session.

        :param tied: end it when the starting thread ends, for short-lived users such as a test.
        """
        self.stop(name)
        self.folder.mkdir(parents=True, exist_ok=True)
        argv = [str(word) for word in command]
        if tied:
            argv = ["setpriv", "--pdeathsig", "TERM", "--", *argv]
        with open(self.log(name), "ab") as log:
            child = subprocess.Popen(  # pylint: disable=consider-using-with  # outlives this function by design
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, close_fds=True,
                env=None if env is None else dict(env),
            )
        child.returncode = 0  # Popen's destructor shall not warn: Process reaps it.
        started = _start_time(child.pid)
        if started is None:
            raise LabError(f"{name} ended at once", f"Read {self.log(name)}")
        process = Process(name, child.pid, started)
        (self.folder / f"{name}.pid").write_text(json.dumps({"pid": process.pid, "started": process.started}), "ascii")
        return process

    def get(self, name: str) -> Process | None:
        """The process by that name when it still runs."""
        try:
            record = json.loads((self.folder / f"{name}.pid").read_text("ascii"))
        except (OSError, ValueError):
            return None
        process = Process(name, record["pid"], record["started"])
        return process if process.alive() else None

    def stop(self, name: str, grace: float = 10.0) -> None:
        """End the process by that name if it runs, and forget it."""
        process = self.get(name)
        if process:
            process.stop(grace)
        with contextlib.suppress(FileNotFoundError):
            (self.folder / f"{name}.pid").unlink()

    def names(self) -> list[str]:
        """Names of the processes that were started and not stopped, alive or not."""
        return sorted(path.stem for path in self.folder.glob("*.pid"))

    def tail(self, name: str, lines: int = 15) -> str:
        """The last lines that the process printed."""
        try:
            return "\n".join(self.log(name).read_text("utf-8", "replace").splitlines()[-lines:])
        except OSError:
            return "(it printed nothing)"
