# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which kernel a node shall move to."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gpunode.hygiene.plugins.module_utils._host.kernel.release import newest_first
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError


def choose(kernel: Mapping[str, Any], kernel_release: str = "", supported_kernels: Sequence[str] = ()) -> str:
    """The release that is asked for, or else the newest complete one on disk that a pattern supports.

    :param kernel: `gpu_host.kernel` of gpu_host_info: `running` and `installed`.
    :param kernel_release: the release asked for; taken whatever the patterns say, the running one included.
    :param supported_kernels: shell patterns (`6.8.0-*-generic`), upper and lower case apart.
    :raises HygieneError: when there is no such release on disk; it names every installed release and why it is not taken.
    """
    installed = kernel.get("installed")
    if not isinstance(installed, Sequence):
        raise HygieneError(
            "Which kernels are installed on the host is not known",
            "A node is only moved to a kernel that is complete on its disk",
            "Look at `gpu_host.unknown` in the answer of gpu_host_info (subset `kernel`), and repair what it names",
        )
    if kernel_release:
        return _demand(kernel_release, installed, str(kernel.get("running")))
    if not supported_kernels:
        raise HygieneError(
            f"No kernel is asked for. Installed are: {_list(row['kernel_release'] for row in installed)}",
            "Which of them the driver images support is not known here",
            "Set gpunode_supported_kernels to patterns (as in `6.8.0-*-generic`), or gpunode_kernel_release to one release",
        )
    candidates = [row["kernel_release"] for row in installed if row["complete"] and _matches(row["kernel_release"], supported_kernels)]
    if not candidates:
        raise HygieneError(
            f"No installed kernel is complete and matches {_list(supported_kernels)}: {_reasons(installed, supported_kernels, str(kernel.get('running')))}",
            "A node is only moved to a kernel that the driver images support and that is complete on its disk",
            "Install such a kernel with apt-get (image and modules), or widen gpunode_supported_kernels, or ask for a release with gpunode_kernel_release",
        )
    return newest_first(candidates)[0]


def _demand(release: str, installed: Sequence[Mapping[str, Any]], running: str) -> str:
    row = next((row for row in installed if row["kernel_release"] == release), None)
    if row is not None and row["complete"]:
        return release
    why = "it is not installed" if row is None else "; ".join(row["problems"])
    complete = [other["kernel_release"] for other in installed if other["complete"]]
    raise HygieneError(
        f"Kernel {release} is asked for, but {why}. Complete on disk: {_list(complete)}; running: {running}",
        "A node is only moved to a kernel that is complete on its disk",
        f"Install it with `apt-get install linux-image-{release}`, or ask for another release with gpunode_kernel_release",
    )


def _matches(release: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(release, pattern) for pattern in patterns)


def _reasons(installed: Sequence[Mapping[str, Any]], patterns: Sequence[str], running: str) -> str:
    if not installed:
        return "none is installed"
    return "; ".join(_reason(row, patterns, running) for row in installed)


def _reason(row: Mapping[str, Any], patterns: Sequence[str], running: str) -> str:
    release = row["kernel_release"]
    reasons = [] if _matches(release, patterns) else ["no pattern matches it"]
    reasons += row["problems"]
    return f"{release}{' (running)' if release == running else ''}: {', '.join(reasons)}"


def _list(names: Any) -> str:
    return ", ".join(names) or "none"
