# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put the stand-ins and the workloads into a lab, and wait for what they do."""

from __future__ import annotations

import hashlib
import json
import string
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import LabError
from .images import DRIVER_TAG, DRIVER_VERSION, HERE, REPOSITORY, build, image_names

if TYPE_CHECKING:
    from ..lab import Lab

NAMESPACE = "gpu-operator"
WORKLOADS = "ml"
BARE_POD = "bare-gpu-pod"
DRIVER = "app=nvidia-driver-daemonset"


def manifest(name: str) -> str:
    """A manifest of this folder with the stand-ins' names and versions filled in."""
    digest = hashlib.sha256(f"{REPOSITORY}/driver:{DRIVER_TAG}".encode()).hexdigest()[:16]  # opaque to all but driver and driver manager, as the operator's is
    text = (HERE / "manifests" / name).read_text("utf-8")
    return string.Template(text).substitute(repository=REPOSITORY, driver_version=DRIVER_VERSION, digest=digest)


def deploy(lab: Lab) -> None:
    """Bring a node that is Ready into full work: driver loaded, nvidia.com/gpu 1, workloads running. May be repeated.

    :raises LabError: something does not come up in time; what it is and its log are in the message.
    """
    folder = build(lab.progress)
    present = set(lab.ssh("ctr -n k8s.io images ls -q").stdout.split())
    for archive in sorted(folder.glob("*.tar")):
        if not set(image_names(archive)) <= present:
            lab.copy(archive, f"/var/tmp/{archive.name}")
            lab.ssh(f"ctr -n k8s.io images import /var/tmp/{archive.name} && rm /var/tmp/{archive.name}", timeout=300)
    for name in sorted(path.name for path in (HERE / "manifests").glob("[0-9]*.yaml")):
        lab.kubectl("apply", "-f", "-", stdin=manifest(name))
        if name.startswith("00-"):
            lab.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/clusterpolicies.nvidia.com")
    wait_driver_ready(lab)
    wait_capacity(lab, 1)
    lab.kubectl("apply", "-f", "-", stdin=manifest(f"{BARE_POD}.yaml"))
    wait_all_ready(lab)


def capacity(lab: Lab) -> int:
    """The node's nvidia.com/gpu as the kubelet reports it; 0 where it reports none."""
    found = json.loads(lab.kubectl("get", "nodes", "-o", "json").stdout)["items"]
    return sum(int(node["status"]["allocatable"].get("nvidia.com/gpu", "0")) for node in found)


def pods(lab: Lab, namespace: str, selector: str = "") -> list[dict[str, Any]]:
    """Pods as the API gives them."""
    items: list[dict[str, Any]] = json.loads(lab.kubectl("get", "pods", "-n", namespace, "-l", selector, "-o", "json").stdout)["items"]
    return items


def waiting_reason(pod: dict[str, Any], container: str) -> str:
    """Why a container waits (`CrashLoopBackOff`); empty when it does not."""
    for status in pod["status"].get("containerStatuses", []):
        if status["name"] == container:
            return str(status.get("state", {}).get("waiting", {}).get("reason", ""))
    return ""


def is_ready(pod: dict[str, Any]) -> bool:
    """Whether the pod's Ready condition is true and it is not on its way out."""
    conditions = {condition["type"]: condition["status"] for condition in pod["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


def wait_driver_ready(lab: Lab, patience: float = 900) -> None:
    """Wait until there is a driver pod and it is ready."""
    wait_until(lab, "the driver pod is ready", lambda: [is_ready(pod) for pod in pods(lab, NAMESPACE, DRIVER)] == [True], patience)


def wait_capacity(lab: Lab, expected: int, patience: float = 900) -> None:
    """Wait until the kubelet reports that many GPUs."""
    wait_until(lab, f"nvidia.com/gpu is {expected}", lambda: capacity(lab) == expected, patience)


def wait_all_ready(lab: Lab, patience: float = 900) -> None:
    """Wait until every pod of the stand-ins and of the workloads is ready."""
    wait_until(lab, "all pods are ready", lambda: all(is_ready(pod) for namespace in (NAMESPACE, WORKLOADS) for pod in pods(lab, namespace)), patience)


def wait_until(lab: Lab, what: str, condition: Callable[[], bool], patience: float) -> None:
    """Poll until `condition` holds.

    :raises LabError: it does not within `patience` seconds; the pods' state is in the message.
    """
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            state = lab.kubectl("get", "pods", "-A", "-o", "wide", check=False).stdout
            log = lab.kubectl("logs", "-n", NAMESPACE, "-l", DRIVER, "--all-containers", "--prefix", "--tail=20", check=False).stdout
            raise LabError(f"It is not so within {patience:.0f} s that {what}. The pods:\n{state}\nThe driver says:\n{log}\n",
                           "Look with `lab status` and `lab ssh`")
        time.sleep(1)
