# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts for read-only modules: this machine, and the lab node's root filesystem with an overlay that shows every write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpunode_lab.playbooks import collections_path

# In a mount namespace of its own: the root filesystem below, what is written above.
_ENTER = """
mount -t overlay overlay -o "lowerdir=$0/host:$1,upperdir=$0/written,workdir=$0/work" "$0/merged"
mount -t proc proc "$0/merged/proc"
mount -t sysfs -o ro sysfs "$0/merged/sys"
mount --rbind /dev "$0/merged/dev"
mount -t tmpfs tmpfs "$0/merged/tmp"
mount -t tmpfs tmpfs "$0/merged/run"
shift 1
exec "$@"
"""


def ansible(
    module: str, parameters: dict[str, Any], *options: str, python: str = "/usr/bin/python3", prefix: tuple[str, ...] = (), **variables: str
) -> dict[str, Any]:
    """Run a module through Ansible on localhost; its answer, refusals included.

    :param python: the interpreter that runs the module.
    :param prefix: a command to run Ansible under.
    """
    program = str(Path(sys.executable).with_name("ansible"))
    argv = [*prefix, program, "localhost", "-i", "localhost,", "-c", "local", "-m", f"gpunode.hygiene.{module}", "-a", json.dumps(parameters), *options]
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(collections_path()),
        "ANSIBLE_INVENTORY_ENABLED": "host_list",  # a folder as inventory would have every program in it run
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_PYTHON_INTERPRETER": python,
        **variables,
    }
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)
    _status, found, answer = done.stdout.partition("=> ")
    assert found, f"{done.stdout}{done.stderr}"
    return dict(json.JSONDecoder().raw_decode(answer)[0])


@dataclass(frozen=True)
class Rooted:
    """A host that is a root filesystem: `host` holds what a test adds to it, `written` what a module wrote."""

    folder: Path
    base: Path

    def prepare(self) -> None:
        """Make the folders, and the interpreter that enters the root; with pipelining a module comes on its standard input."""
        for name in ("host", "written", "work", "merged"):
            (self.folder / name).mkdir()
        self.python.write_text(f'#!/bin/sh\nexec chroot "{self.folder}/merged" /usr/bin/python3 "$@"\n')
        self.python.chmod(0o755)

    @property
    def python(self) -> Path:
        """The interpreter for Ansible."""
        return self.folder / "python"

    def put(self, path: str, content: str) -> None:
        """Add a file to the host."""
        target = self.folder / "host" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)

    def run(self, module: str, parameters: dict[str, Any], *options: str) -> dict[str, Any]:
        """Run a module on it."""
        prefix = ("unshare", "--mount", "--propagation", "private", "sh", "-ec", _ENTER, str(self.folder), str(self.base))
        return ansible(module, parameters, *options, python=str(self.python), prefix=prefix)

    def written(self) -> list[str]:
        """Every path that was written, made or removed on it, folders that only carry mounts left out."""
        mounts = {"proc", "sys", "dev", "tmp", "run"}
        return sorted(str(path.relative_to(self.folder / "written")) for path in (self.folder / "written").rglob("*") if path.name not in mounts)
