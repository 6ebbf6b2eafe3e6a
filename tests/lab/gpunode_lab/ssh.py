# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ssh to the node, with its own key and its own known_hosts."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from .errors import LabError


def make_key(path: Path) -> None:
    """An ed25519 key pair at `path` and `path`.pub."""
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpunode-lab", "-f", str(path)], check=True, capture_output=True)


class Connection:
    """root at the node behind a port on 127.0.0.1."""

    def __init__(self, port: int, key: Path, known_hosts: Path) -> None:
        self.port = port
        self.key = key
        self.known_hosts = known_hosts

    def trust(self, host_key: str) -> None:
        """Write the known_hosts file; the host key is known from the image, nothing is accepted unseen."""
        kind, data = host_key.split()[:2]
        self.known_hosts.parent.mkdir(parents=True, exist_ok=True)
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {kind} {data}\n", "ascii")

    @property
    def options(self) -> list[str]:
        """What ssh and scp need, without the port."""
        return ["-i", str(self.key), "-o", f"UserKnownHostsFile={self.known_hosts}", "-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes",
                "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=6", "-o", "LogLevel=ERROR"]

    @property
    def command(self) -> list[str]:
        """An ssh command to which a remote command may be added."""
        return ["ssh", "-F", "/dev/null", *self.options, "-p", str(self.port), "root@127.0.0.1"]

    def run(self, command: str, *, timeout: float = 120, check: bool = True, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a shell command on the node.

        :raises LabError: it failed and `check` is true; what it printed is in the message.
        """
        try:
            answer = subprocess.run([*self.command, command], input=stdin or "", capture_output=True, text=True, errors="replace", check=False,
                                    timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise LabError(f"On the node, `{command[:200]}` did not end within {timeout:.0f} s", "Read the serial log") from error
        if check and answer.returncode:
            printed = (answer.stdout + answer.stderr).strip()[-1500:]
            raise LabError(f"On the node, `{command[:200]}` failed ({answer.returncode}): {printed}", "Look with `lab ssh`")
        return answer

    def copy(self, local: Path, remote: str, *, timeout: float = 300) -> None:
        """Copy a file or folder to the node.

        :raises LabError: scp failed.
        """
        command = ["scp", "-F", "/dev/null", "-q", "-r", *self.options, "-P", str(self.port), str(local), f"root@127.0.0.1:{remote}"]
        answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=timeout)
        if answer.returncode:
            raise LabError(f"Copying {local} to the node failed: {answer.stderr.strip()}", "Look with `lab ssh`")

    def wait(self, patience: float, still_possible: Callable[[], None]) -> None:
        """Wait until a command runs on the node.

        :param still_possible: called before each attempt; raises when waiting on is useless.
        :raises LabError: none did within `patience` seconds.
        """
        deadline = time.monotonic() + patience
        while True:
            still_possible()
            try:
                if self.run("true", check=False, timeout=30).returncode == 0:
                    return
            except LabError:
                pass  # a connection that hangs while the machine boots; the deadline decides
            if time.monotonic() > deadline:
                raise LabError(f"The node does not answer ssh on port {self.port} within {patience:.0f} s", "Read the serial log")
            time.sleep(1)
