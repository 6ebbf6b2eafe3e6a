# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Evidence about a node for tests. The cluster's part is made by the collection's own reader from API objects, so that both sides stay in step."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info.gather import Want, gather, node_slice

NEW, OLD = "7.0.0-15-generic", "6.8.0-117-generic"
NFD = "feature.node.kubernetes.io/"
HEADERS_LOG = f"""========== NVIDIA Software Installer ==========
Starting installation of NVIDIA driver version 580.126.20 for Linux kernel version {NEW}
Updating the package cache...
Resolving Linux kernel version...
Could not resolve Linux kernel version
"""
Change = Callable[[dict[str, Any]], None]


class Objects:
    """A source of API objects in memory, as `gather` reads them."""

    def __init__(self, objects: Mapping[str, list[dict[str, Any]]], logs: Mapping[tuple[str, bool], str]) -> None:
        self._objects = objects
        self._logs = logs

    def list(self, kind: str, labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Objects with the labels; this source has one node, so fields select nothing away."""
        assert fields is None or set(fields) <= {"involvedObject.kind", "status.phase", "metadata.name", "spec.nodeName"}
        wanted = [] if fields and "status.phase" in fields else self._objects.get(kind, [])
        return [item for item in wanted if all(item["metadata"].get("labels", {}).get(key) == value for key, value in (labels or {}).items())]

    def log(self, _pod: Mapping[str, Any], container: str, previous: bool, _lines: int) -> str:
        """The log given for the container."""
        return self._logs[container, previous]


def node_object(name: str = "gpu-1", kernel: str = OLD, version_id: str = "24.04", gpus: str | None = "8") -> dict[str, Any]:
    """A Node as the API server has it."""
    amounts = {"cpu": "64", **({} if gpus is None else {"nvidia.com/gpu": gpus})}
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "nvidia.com/gpu.present": "true",
                f"{NFD}kernel-version.full": kernel,
                f"{NFD}system-os_release.ID": "ubuntu",
                f"{NFD}system-os_release.VERSION_ID": version_id,
            },
        },
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kernelVersion": kernel},
            "capacity": amounts,
            "allocatable": amounts,
        },
    }


def driver_pod(containers: list[dict[str, Any]] | None = None, node: str = "gpu-1", image_os: str = "ubuntu24.04") -> dict[str, Any]:
    """A driver pod; ready when no statuses are given."""
    image = f"nvcr.io/nvidia/driver:580.126.20-{image_os}"
    statuses = containers or [{"name": "nvidia-driver-ctr", "ready": True, "restartCount": 0, "state": {"running": {}}}]
    ready = all(status["ready"] for status in statuses)
    return {
        "kind": "Pod",
        "metadata": {"name": "nvidia-driver-daemonset-x", "namespace": "gpu-operator", "uid": "u1", "labels": {"app.kubernetes.io/component": "nvidia-driver"}},
        "spec": {"nodeName": node, "containers": [{"name": "nvidia-driver-ctr", "image": image}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}], "containerStatuses": statuses},
    }


def crashing(restarts: int = 76, **state: Any) -> dict[str, Any]:
    """The driver container's status in CrashLoopBackOff, or in another state."""
    return {
        "name": "nvidia-driver-ctr",
        "ready": False,
        "restartCount": restarts,
        "state": state or {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1}} if restarts else {},
    }


def policy(version: str = "580.126.20", **driver: Any) -> dict[str, Any]:
    """A ClusterPolicy."""
    spec = {"repository": "nvcr.io/nvidia", "image": "driver", "version": version, **driver}
    return {"kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}, "spec": {"driver": spec}, "status": {}}


def cluster(
    nodes: list[dict[str, Any]] | None = None,
    pods: list[dict[str, Any]] | None = None,
    policies: list[dict[str, Any]] | None = None,
    log: str = "",
    previous_log: str = "",
) -> dict[str, Any]:
    """The slice of node gpu-1, as gpu_cluster_info and node_slice make it."""
    objects = {
        "Node": nodes or [node_object()],
        "Pod": [driver_pod()] if pods is None else pods,
        "ClusterPolicy": [policy()] if policies is None else policies,
    }
    logs = {("nvidia-driver-ctr", False): log, ("nvidia-driver-ctr", True): previous_log}
    return node_slice(gather(Objects(objects, logs), Want()).evidence, "gpu-1")


def kernel_row(release: str, complete: bool = True) -> dict[str, Any]:
    """A row of the kernel inventory."""
    return {"kernel_release": release, "complete": complete, "problems": [] if complete else [f"there is no initrd /boot/initrd.img-{release}"]}


def healthy() -> dict[str, Any]:
    """A node with nothing to find."""
    fallback = "6.8.0-110-generic"
    closure = [f"linux-headers-{OLD}", f"linux-image-{OLD}", f"linux-modules-{OLD}", "linux-generic", "linux-image-generic"]
    return {
        "node": "gpu-1",
        "host": {
            "kernel": {"running": OLD, "installed": [kernel_row(OLD), kernel_row(fallback)]},
            "boot": {
                "loader": "grub",
                "default": {"spec": "gnulinux-advanced-U>gnulinux-x", "source": "/etc/default/grub.d/zz.cfg", "kernel_release": OLD, "problems": []},
                "next": {"kernel_release": OLD, "via": "default"},
                "once_supported": True,
                "problems": [],
            },
            "packages": {"closure": closure, "held": [*closure, f"linux-image-{fallback}"], "metas": closure[-2:], "protected": True, "problems": []},
            "os": {"id": "ubuntu", "version_id": "24.04", "codename": "noble"},
            "boot_space": {"free_bytes": 500_000_000, "total_bytes": 1_000_000_000, "needed_bytes": 90_000_000, "menu_bytes": 1_100_000},
            "out_of_tree": [{"name": "mlx5_core", "source": "module", "loaded": True, "version": None, "available_for": [OLD, fallback]}],
            "pci_gpus": ["0000:17:00.0"],
            "runs": [],
            "unknown": {},
            "not_checked": [],
        },
        "cluster": cluster(),
        "images": [{"reference": "nvcr.io/nvidia/driver:580.126.20-ubuntu24.04", "state": "exists", "digest": "sha256:1", "reason": ""}],
        "policy": {"supported_kernels": ["6.8.0-*-generic"]},
    }


def incident() -> dict[str, Any]:
    """The node after the accident: Ubuntu 26.04's kernel runs, the image is Ubuntu 24.04's, the labels are up to date, the tag of the new release is not."""
    evidence = healthy()
    host = evidence["host"]
    host["kernel"] = {"running": NEW, "installed": [kernel_row(NEW), kernel_row(OLD)]}
    host["boot"]["default"] |= {"spec": "0", "kernel_release": NEW}
    host["boot"]["next"]["kernel_release"] = NEW
    host["packages"] |= {"closure": [f"linux-image-{NEW}", "linux-generic"], "held": [], "metas": ["linux-generic"], "protected": False}
    host["os"] |= {"version_id": "26.04", "codename": "resolute"}
    host["out_of_tree"][0]["available_for"] = [NEW, OLD]
    evidence["cluster"] = cluster(
        nodes=[node_object(kernel=NEW, version_id="26.04", gpus="0")], pods=[driver_pod([crashing()])], log=HEADERS_LOG, previous_log=HEADERS_LOG
    )
    return evidence


def changed(evidence: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with one value replaced; `path` is keys with dots."""
    result = copy.deepcopy(evidence)
    *parents, last = path.split(".")
    part = result
    for key in parents:
        part = part[key]
    part[last] = value
    return result
