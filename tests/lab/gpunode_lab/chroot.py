# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands inside a root filesystem, with mounts and processes that vanish with the command."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .errors import LabError

# proc, sys and dev for maintainer scripts; in namespaces of their own, so nothing stays mounted or running.
_ENTER = """
set -e
mount -t proc proc "$0/proc"
mount -t sysfs -o ro sysfs "$0/sys"
mount --rbind /dev "$0/dev"
mount -t tmpfs tmpfs "$0/run"
exec chroot "$0" "$@"
"""

_ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}


def run(root: Path, command: Sequence[str], *, log: Path, mounts: Sequence[tuple[Path, str]] = ()) -> None:
    """Run a command in `root`, its output appended to `log`.

    :param mounts: (folder of the host, path in the root) pairs, bound for the command's time.
    :raises LabError: it failed; the last lines of the log are in the message.
    """
    binds = "".join(f'mkdir -p "{root}{inside}"; mount --bind "{outside}" "{root}{inside}"\n' for outside, inside in mounts)
    wrapped = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "sh", "-c", binds + _ENTER, str(root), *command]
    passed = {name: value for name, value in os.environ.items() if name.lower() in ("http_proxy", "https_proxy", "no_proxy")}
    with open(log, "ab") as output:
        answer = subprocess.run(wrapped, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False, env={**_ENVIRONMENT, **passed})
    if answer.returncode:
        tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-12:])
        raise LabError(f"{' '.join(command[:6])} failed in the node image ({answer.returncode}): {tail}", f"Read {log}")
