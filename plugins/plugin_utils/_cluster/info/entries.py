# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""API objects reshaped into the evidence of `gpu_cluster_info`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import ledger, objects
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.handover import UPGRADE_STATE

GPU = "nvidia.com/gpu"
GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-")
DRIVER_LABELS = {"app.kubernetes.io/component": "nvidia-driver"}
# Releases of the operator before v22 label the driver pods with their app alone.
OLD_DRIVER_LABELS = {"app": "nvidia-driver-daemonset"}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
OPERATOR_LABELS = {"app": "gpu-operator"}
# Parts of the specs that can hold credentials (a proxy's password in an environment variable).
SECRET_KEYS = frozenset({"env"})


def node_entry(node: objects.Object) -> dict[str, Any]:
    """One Node, without its driver pods and images."""
    ready = objects.condition(node, "Ready")
    annotations = objects.annotations_of(node)
    claim, problem = _claim(node)
    capacity, allocatable = (_gpus(objects.status(node).get(key) or {}) for key in ("capacity", "allocatable"))
    return {
        "name": objects.name(node),
        "created": objects.metadata(node).get("creationTimestamp"),
        "labels": objects.labels_of(node),
        "annotations": {key: value for key, value in annotations.items() if key != LAST_APPLIED},
        "taints": [dict(taint) for taint in objects.spec(node).get("taints") or []],
        "unschedulable": objects.is_unschedulable(node),
        "cordon_owner": objects.cordon_owner(node),
        "claim": claim,
        "claim_problem": problem,
        "keep_cordoned": annotations.get(ledger.KEEP_CORDONED),
        "ready": ready.get("status") == "True",
        "ready_condition": {
            "status": ready.get("status", "Unknown"),
            "reason": ready.get("reason", ""),
            "message": ready.get("message", ""),
            "since": ready.get("lastTransitionTime"),
            "heartbeat": ready.get("lastHeartbeatTime"),
        },
        "machine_id": objects.node_info(node, "machineID"),
        "system_uuid": objects.node_info(node, "systemUUID"),
        "boot_id": objects.node_info(node, "bootID"),
        "kernel_version": objects.node_info(node, "kernelVersion"),
        "os_image": objects.node_info(node, "osImage"),
        "container_runtime": objects.node_info(node, "containerRuntimeVersion"),
        "kubelet_version": objects.node_info(node, "kubeletVersion"),
        "capacity": capacity,
        "allocatable": allocatable,
        "gpu_capacity": capacity.get(GPU),
        "gpu_allocatable": allocatable.get(GPU),
        "upgrade_state": objects.labels_of(node).get(UPGRADE_STATE),
    }


def _claim(node: objects.Object) -> tuple[dict[str, Any] | None, str | None]:
    try:
        claim = ledger.read(node)
    except HygieneError as error:
        return None, error.seen
    return (asdict(claim) if claim else None), None


def _gpus(amounts: Mapping[str, Any]) -> dict[str, int]:
    """Extended resources are whole numbers; a missing key and a zero are different findings."""
    return {resource: int(str(amount)) for resource, amount in amounts.items() if resource.startswith(GPU_RESOURCES)}


def driver_pod_entry(pod: objects.Object) -> dict[str, Any]:
    """One driver pod, without logs and events."""
    status = objects.status(pod)
    owner = objects.controller(pod)
    containers = [
        *(_container(entry, init=True) for entry in status.get("initContainerStatuses") or []),
        *(_container(entry, init=False) for entry in status.get("containerStatuses") or []),
    ]
    waiting = [entry["reason"] for entry in containers if entry["state"] == "waiting" and entry["reason"] not in ("", "PodInitializing", "ContainerCreating")]
    return {
        "namespace": objects.namespace(pod),
        "name": objects.name(pod),
        "uid": objects.uid(pod),
        "node": objects.spec(pod).get("nodeName") or None,
        "created": objects.metadata(pod).get("creationTimestamp"),
        "daemonset": str(owner.get("name")) if owner else None,
        "phase": status.get("phase", "Unknown"),
        "ready": objects.is_ready(pod),
        "terminating": bool(objects.metadata(pod).get("deletionTimestamp")),
        "waiting_reason": waiting[0] if waiting else None,
        "message": status.get("message") or objects.condition(pod, "PodScheduled").get("message") or None,
        "restart_count": sum(entry["restart_count"] for entry in containers),
        "images": images_of(objects.spec(pod)),
        "containers": containers,
        "events": [],
    }


def _container(entry: Mapping[str, Any], init: bool) -> dict[str, Any]:
    state, details = _state(entry.get("state"))
    _last, ended = _state(entry.get("lastState"))
    return {
        "name": entry.get("name", ""),
        "init": init,
        "image": entry.get("image", ""),
        "ready": bool(entry.get("ready")),
        "state": state,
        "reason": details.get("reason", ""),
        "message": details.get("message", ""),
        "exit_code": details.get("exitCode"),
        "started_at": details.get("startedAt"),
        "restart_count": int(entry.get("restartCount") or 0),
        "last_exit_code": ended.get("exitCode"),
        "last_reason": ended.get("reason", ""),
        "last_message": ended.get("message", ""),
        "last_finished_at": ended.get("finishedAt"),
        "log": None,
        "previous_log": None,
    }


def _state(state: Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any]]:
    """A ContainerState has at most one of waiting, running and terminated."""
    for kind, details in (state or {}).items():
        return kind, details or {}
    return "unknown", {}


def is_failing(container: Mapping[str, Any]) -> bool:
    """Whether the container's log says why the pod is not ready: it ended badly before, or it is up and not ready."""
    if container["ready"] or (container["state"] == "terminated" and container["exit_code"] == 0):
        return False
    return bool(container["restart_count"]) or container["state"] in ("running", "terminated")


def images_of(pod_spec: Mapping[str, Any]) -> dict[str, str]:
    """{container: image reference}, init containers included."""
    every = [*(pod_spec.get("initContainers") or []), *(pod_spec.get("containers") or [])]
    return {str(container.get("name")): str(container.get("image", "")) for container in every}


def event_entry(event: objects.Object) -> dict[str, Any]:
    """One event."""
    return {
        "type": event.get("type", ""),
        "reason": event.get("reason", ""),
        "message": event.get("message", ""),
        "count": int(event.get("count") or (event.get("series") or {}).get("count") or 1),
        "last": event.get("lastTimestamp") or (event.get("series") or {}).get("lastObservedTime") or event.get("eventTime"),
    }


def is_driver_daemonset(daemonset: objects.Object) -> bool:
    """Whether the DaemonSet's pods are the driver's."""
    template = objects.labels_of(objects.spec(daemonset).get("template") or {})
    return any(all(template.get(key) == value for key, value in wanted.items()) for wanted in (DRIVER_LABELS, OLD_DRIVER_LABELS))


def daemonset_entry(daemonset: objects.Object) -> dict[str, Any]:
    """One driver DaemonSet."""
    template = objects.spec(daemonset).get("template") or {}
    pod_spec, status = objects.spec(template), objects.status(daemonset)
    probes = {
        str(container.get("name")): dict(container["startupProbe"]) for container in pod_spec.get("containers") or [] if container.get("startupProbe")
    }
    return {
        "namespace": objects.namespace(daemonset),
        "name": objects.name(daemonset),
        "images": images_of(pod_spec),
        "node_selector": dict(pod_spec.get("nodeSelector") or {}),
        "precompiled": objects.labels_of(template).get("nvidia.com/precompiled") == "true",
        "update_strategy": (objects.spec(daemonset).get("updateStrategy") or {}).get("type", ""),
        "startup_probes": probes,
        "desired": int(status.get("desiredNumberScheduled") or 0),
        "ready": int(status.get("numberReady") or 0),
    }


def policy_entry(policy: objects.Object) -> dict[str, Any]:
    """A ClusterPolicy or an NVIDIADriver in one shape."""
    spec = dict(objects.spec(policy))
    cluster = policy.get("kind") == "ClusterPolicy"
    driver = dict(spec.get("driver") or {}) if cluster else {key: value for key, value in spec.items() if key not in ("gds", "gdrcopy", "nodeSelector")}
    return {
        "kind": str(policy.get("kind")),
        "name": objects.name(policy),
        "state": objects.status(policy).get("state"),
        "driver": _without_secrets(driver),
        "gds": _without_secrets(dict(spec.get("gds") or {})),
        "gdrcopy": _without_secrets(dict(spec.get("gdrcopy") or {})),
        "node_selector": None if cluster else spec.get("nodeSelector"),
    }


def _without_secrets(part: Any) -> Any:
    """The values of environment variables are left out; their names stay."""
    if isinstance(part, Mapping):
        return {key: _names_only(value) if key in SECRET_KEYS else _without_secrets(value) for key, value in part.items()}
    return [_without_secrets(entry) for entry in part] if isinstance(part, list) else part


def _names_only(variables: Any) -> list[str]:
    return [str(entry.get("name")) for entry in variables or [] if isinstance(entry, Mapping)]


def pending_entry(pod: objects.Object) -> dict[str, Any] | None:
    """A pod that waits for GPUs, or None when it asks for none."""
    asked = objects.requests(pod, GPU_RESOURCES)
    if not asked:
        return None
    scheduled = objects.condition(pod, "PodScheduled")
    return {
        "namespace": objects.namespace(pod),
        "name": objects.name(pod),
        "node": objects.spec(pod).get("nodeName") or None,
        "requests": asked,
        "message": scheduled.get("message", ""),
        "since": objects.metadata(pod).get("creationTimestamp"),
    }


def operator_variables(pods: Iterable[objects.Object], names: Iterable[str]) -> dict[str, str]:
    """Those environment variables of the operator's own container that name images."""
    wanted = set(names)
    return {
        str(entry["name"]): str(entry.get("value") or "")
        for pod in pods
        for container in objects.spec(pod).get("containers") or []
        for entry in container.get("env") or []
        if entry.get("name") in wanted
    }
