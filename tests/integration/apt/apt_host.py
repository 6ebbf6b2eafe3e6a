# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands on a host whose package database, apt state and /boot are a package world's: bound in a mount namespace of the command's own."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apt_world import World
from gpunode_lab.playbooks import collections_path

PRIVATE = ("var/lib", "var/cache", "var/log", "etc/apt", "boot", "usr/lib/modules")
# A machine without a kernel of its own (a container) has no folder to bind the modules to; an overlay in memory gives it one.
_MODULES = """if [ ! -d /usr/lib/modules ]; then
  mkdir -p "$0/overlay"; mount -t tmpfs tmpfs "$0/overlay"; mkdir "$0/overlay/upper" "$0/overlay/work"
  mount -t overlay overlay -o "lowerdir=/usr/lib,upperdir=$0/overlay/upper,workdir=$0/overlay/work" /usr/lib
  mkdir /usr/lib/modules
fi
[ -d /lib/modules ] || { echo "/lib is no link to /usr/lib" >&2; exit 1; }
"""
_BIND = _MODULES + "".join(f'mount --bind "$0/{folder}" "/{folder}"\n' for folder in PRIVATE) + 'exec "$@"\n'


@dataclass(frozen=True)
class Host:
    """This machine with the package state of a world."""

    world: World

    def command(self, *argv: str) -> list[str]:
        """The command that runs `argv` on this host."""
        return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", _BIND, str(self.world.root), *argv]

    def run(self, *argv: str) -> str:
        """Run it and give its output; it must succeed."""
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(self.command(*argv), capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout

    def pin(self, check: bool = False, **parameters: Any) -> dict[str, Any]:
        """Run `kernel_pin` through Ansible; its answer, refusals included."""
        ansible = str(Path(sys.executable).with_name("ansible"))
        options: Sequence[str] = ["--check", "--diff"] if check else []
        argv = [ansible, "localhost", "--inventory", "localhost,", "-m", "gpunode.hygiene.kernel_pin", "-a", json.dumps(parameters), *options]
        home = self.world.root / "home"
        environment = {
            **os.environ, "HOME": str(home), "ANSIBLE_COLLECTIONS_PATH": str(collections_path()), "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "False", "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3", "ANSIBLE_INVENTORY_ENABLED": "host_list",
            "ANSIBLE_REMOTE_TMP": str(home / "tmp"),
        }
        done = subprocess.run(self.command(*argv, "-c", "local"), capture_output=True, text=True, env=environment, check=False)
        _status, found, answer = done.stdout.partition("=> ")
        assert found, f"{done.stdout}{done.stderr}"
        return dict(json.JSONDecoder().raw_decode(answer)[0])

    def held(self) -> set[str]:
        """What apt says is held."""
        return set(self.run("apt-mark", "showhold").split())

    def versions(self) -> dict[str, str]:
        """Every installed package with its version."""
        rows = self.run("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\\n").splitlines()
        return {name: version for status, name, version in (row.split() for row in rows) if status == "installed"}

    def fingerprint(self) -> dict[str, str]:
        """A hash of every file of its state, and its modification time."""
        files = [path for folder in PRIVATE for path in (self.world.root / folder).rglob("*")]
        return {str(path): f"{path.stat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ''}" for path in files}
