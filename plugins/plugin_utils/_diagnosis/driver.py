# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver pods of one node as facts: are they failing, and what do the logs of the failing containers say."""

from __future__ import annotations

import re
from typing import Any

from .shapes import count, mapping, rows, text

# "Starting installation of NVIDIA driver version ... for Linux kernel version 7.0.0-15-generic" (gpu-driver-container, nvidia-driver: init).
_LOG_KERNEL = re.compile(r"[Ll]inux kernel version (\d\S*)")
_DRIVER_CONTAINER = "nvidia-driver-ctr"


def driver_facts(pods: Any) -> dict[str, Any]:
    """Facts about the driver pods of a node; all None when the pods are unknown.

    :param pods: `driver_pods` of `gpu_cluster_info`.

    `log` are the lines of every failing container's last ended and latest attempt, `current` those of the attempts under way alone;
    `log_read` is whether the failing containers' logs could be read.
    """
    known = rows(pods)
    if known is None:
        return dict.fromkeys(("ready", "failing", "waiting", "images", "restarts", "log", "current", "log_read", "log_kernels"))
    containers = [container for pod in known for container in rows(pod.get("containers")) or []]
    failing = [container for container in containers if _is_failing(container)]
    log = [line for container in failing for key in ("previous_log", "log") for line in _lines(container.get(key))]
    return {
        "ready": bool(known) and all(pod.get("ready") is True for pod in known),
        "failing": bool(failing),
        "waiting": sorted({reason for container in containers if (reason := _waiting(container))}),
        "images": _images(known),
        "restarts": max((count(container.get("restart_count")) or 0 for container in failing), default=0),
        "log": log,
        # The log of a container that is not running is that of its last ended attempt.
        "current": [line for container in failing if container.get("state") == "running" for line in _lines(container.get("log"))],
        "log_read": all(_read(container) for container in failing if _has_run(container)),
        "log_kernels": sorted({found.group(1) for line in log if (found := _LOG_KERNEL.search(line))}),
    }


def _waiting(container: dict[str, Any]) -> str | None:
    """Why it is kept from running, unless it only waits for its turn."""
    reason = text(container.get("reason")) if container.get("state") == "waiting" else None
    return None if reason in ("ContainerCreating", "PodInitializing") else reason


def _is_failing(container: dict[str, Any]) -> bool:
    """Not ready, and ended badly before or kept back by an error; a first attempt under way is neither."""
    if container.get("ready") is True:
        return False
    if container.get("state") == "terminated":
        return container.get("exit_code") != 0
    return bool(count(container.get("restart_count"))) or _waiting(container) is not None


def _has_run(container: dict[str, Any]) -> bool:
    """Whether there can be a log; an image that cannot be pulled never wrote one."""
    return bool(count(container.get("restart_count"))) or container.get("state") in ("running", "terminated")


def _lines(log: Any) -> list[str]:
    return log.splitlines() if isinstance(log, str) else []


def _read(container: dict[str, Any]) -> bool:
    """Either attempt is enough: before its second start a container has no previous log, and a waiting one gives its last as `log`."""
    return isinstance(container.get("log"), str) or isinstance(container.get("previous_log"), str)


def _images(pods: list[dict[str, Any]]) -> list[str]:
    """What the driver containers were told to run: its tag names the operating system that the operator assumed."""
    wanted = [mapping(pod.get("images")).get(_DRIVER_CONTAINER) for pod in pods]
    return [image for image in wanted if isinstance(image, str)]
