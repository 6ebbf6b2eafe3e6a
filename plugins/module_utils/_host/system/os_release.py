# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which operating system a host has: /etc/os-release, virtualisation, and whether it wants a reboot."""

from __future__ import annotations

import os
import shlex
from typing import Any

from ..._model import HygieneError
from ..files import read_text
from ..run import run

_TIMEOUT = 5.0


def parse_os_release(text: str) -> dict[str, str]:
    """The assignments of an os-release file (os-release(5): shell syntax without expansion); lines that are none are passed over."""
    values = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if not equals or name.startswith("#") or not name.isidentifier():
            continue
        try:
            values[name] = "".join(shlex.split(value))
        except ValueError:
            continue
    return values


def read_os(root: str = "/") -> dict[str, Any]:
    """The `os` part: id, version_id, codename, reboot_required (bool), reboot_required_by (package names).

    `version_id` is None where a release has none (Debian testing and unstable).

    :raises OSError: when there is no os-release file, or one that cannot be read.
    """
    text = read_text(os.path.join(root, "etc/os-release"))
    if text is None:
        text = read_text(os.path.join(root, "usr/lib/os-release"))
    if text is None:
        raise FileNotFoundError("neither /etc/os-release nor /usr/lib/os-release exists")
    values = parse_os_release(text)
    by = read_text(os.path.join(root, "run/reboot-required.pkgs")) or ""
    return {
        "id": values.get("ID"),
        "version_id": values.get("VERSION_ID"),
        "codename": values.get("VERSION_CODENAME"),
        # A kernel that is pinned below the newest keeps this file there for ever: it is a hint, not a fault.
        "reboot_required": os.path.exists(os.path.join(root, "run/reboot-required")),
        "reboot_required_by": sorted(set(by.split())),
    }


def read_virtualization() -> str:
    """What systemd-detect-virt says: `none`, `kvm`, `docker`, ...

    :raises HygieneError: when it gives no answer in time, or is not there.
    """
    ended = run(["systemd-detect-virt"], timeout=_TIMEOUT)
    answer = ended.out.strip()
    # Its answer for bare metal is the word "none" with status 1.
    if not answer:
        raise HygieneError(ended.summary, "Whether this is a container or a virtual machine is not known", "Run `systemd-detect-virt` on the host")
    return answer
