# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`gpu_cluster_info` against a real API server, with and without the operator's kinds, and against a folder dumped from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import Api, Response, connect
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info.gather import Want, expected_on, gather, node_slice
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info.source import Folder, Server
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.node_match import Identity, match
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.options import Settings
from cluster_world import Cluster, maintenance
from gpunode_lab.controlplane import ControlPlane

NFD = "feature.node.kubernetes.io"
GPU_NODE = {
    "nvidia.com/gpu.present": "true", f"{NFD}/kernel-version.full": "7.0.0-15-generic",
    f"{NFD}/system-os_release.ID": "ubuntu", f"{NFD}/system-os_release.VERSION_ID": "26.04", "nvidia.com/gpu-driver-upgrade-state": "upgrade-done",
}
POLICY = {
    "apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"},
    "spec": {
        "driver": {
            "enabled": True, "repository": "nvcr.io/nvidia", "image": "driver", "version": "580.126.20", "usePrecompiled": False,
            "env": [{"name": "HTTPS_PROXY", "value": "http://user:secret@proxy"}],
        },
        "gdrcopy": {"enabled": True, "repository": "nvcr.io/nvidia/cloud-native", "image": "gdrdrv", "version": "v2.5.2"},
        "gds": {"enabled": False},
    },
}


def crd(plural: str, kind: str, version: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.nvidia.com"},
        "spec": {
            "group": "nvidia.com", "scope": "Cluster", "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@pytest.fixture
def operator(cluster: Cluster) -> Iterator[Cluster]:
    """The operator's kind ClusterPolicy with one object, and a driver pod in the incident on one node."""
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    cluster.api.post(definitions, crd("clusterpolicies", "ClusterPolicy", "v1"))
    policies = "/apis/nvidia.com/v1/clusterpolicies"

    def make() -> bool:
        return "cluster-policy" in cluster.kubectl("create", "-f", "-", "--save-config=false", stdin=json.dumps(POLICY), check=False).stdout

    cluster.until(make, "the kind ClusterPolicy")
    cluster.node_name = cluster.add_node(labels=GPU_NODE, gpus=0)
    driver(cluster)
    yield cluster
    cluster.api._json("DELETE", f"{policies}/cluster-policy", None, {})
    cluster.api._json("DELETE", f"{definitions}/clusterpolicies.nvidia.com", None, {})
    cluster.until(lambda: "clusterpolicies" not in cluster.kubectl("api-resources", "--api-group=nvidia.com", check=False).stdout, "the kind to go")


def driver(cluster: Cluster) -> str:
    """A driver DaemonSet whose pod crash-loops as in the incident; its name."""
    labels = {"app": "nvidia-driver-daemonset", "app.kubernetes.io/component": "nvidia-driver", "test/scripted": ""}
    image = "nvcr.io/nvidia/driver:580.126.20-ubuntu26.04"
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/daemonsets"
    cluster.api.post(path, {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "nvidia-driver-daemonset"},
        "spec": {
            "selector": {"matchLabels": {"app": "nvidia-driver-daemonset"}}, "updateStrategy": {"type": "OnDelete"},
            "template": {"metadata": {"labels": labels}, "spec": {
                "nodeSelector": {"test": cluster.namespace}, "automountServiceAccountToken": False,
                "initContainers": [{"name": "k8s-driver-manager", "image": "nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.11.0"}],
                "containers": [{
                    "name": "nvidia-driver-ctr", "image": image, "args": ["init"],
                    "startupProbe": {"exec": {"command": ["true"]}, "initialDelaySeconds": 60, "periodSeconds": 10, "failureThreshold": 120},
                }],
            }},
        },
    })
    cluster.until(lambda: len(pods(cluster)) == 1, "the driver pod")
    pod = pods(cluster)[0]
    cluster.api.patch(f"/api/v1/namespaces/{cluster.namespace}/pods/{pod['metadata']['name']}/status", {"status": {
        "phase": "Running", "conditions": [{"type": "Ready", "status": "False"}],
        "initContainerStatuses": [{
            "name": "k8s-driver-manager", "image": "manager", "imageID": "", "ready": True, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
        }],
        "containerStatuses": [{
            "name": "nvidia-driver-ctr", "image": image, "imageID": "", "ready": False, "restartCount": 76,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-10-01T12:00:00Z"}},
        }],
    }})
    cluster.api.post(f"/api/v1/namespaces/{cluster.namespace}/events", {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "backoff"}, "type": "Warning", "reason": "BackOff", "message": "Back-off restarting",
        "count": 330, "lastTimestamp": "2026-10-01T12:00:01Z",
        "involvedObject": {"kind": "Pod", "namespace": cluster.namespace, "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]},
    })
    return str(pod["metadata"]["name"])


def pods(cluster: Cluster) -> list[dict[str, Any]]:
    return cluster.api.list(f"/api/v1/namespaces/{cluster.namespace}/pods", {"labelSelector": "app=nvidia-driver-daemonset"})


def test_a_cluster_without_the_operator_is_read_whole(cluster: Cluster) -> None:
    plain, gpu = cluster.add_node(), cluster.add_node(labels=GPU_NODE, gpus=4)
    evidence = gather(Server(cluster.api), Want()).evidence
    assert evidence["unknown"] == {}
    assert evidence["operator"]["policies"] == []
    assert evidence["operator"]["daemonsets"] == []
    nodes = evidence["nodes"]
    assert (nodes[plain]["gpu_capacity"], nodes[gpu]["gpu_capacity"], nodes[gpu]["gpu_allocatable"]) == (None, 4, 4)
    assert (nodes[gpu]["ready"], nodes[gpu]["unschedulable"], nodes[gpu]["cordon_owner"], nodes[gpu]["claim"]) == (True, False, None, None)
    assert nodes[gpu]["upgrade_state"] == "upgrade-done"
    assert (nodes[gpu]["driver_pods"], nodes[gpu]["expected_images"], nodes[gpu]["expected_images_problems"]) == ([], [], [])


def test_the_incident_is_seen_as_it_is(operator: Cluster) -> None:
    cluster, node = operator, operator.node_name
    cluster.api.post(f"/api/v1/namespaces/{cluster.namespace}/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "trainer"},
        "spec": {
            "nodeSelector": {"test": cluster.namespace}, "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "2"}}}],
        },
    })
    cluster.until(lambda: bool(cluster.get_pod("trainer")["status"].get("conditions")), "the scheduler's verdict")
    maintenance(cluster, node).cordoned()
    evidence = gather(Server(cluster.api), Want()).evidence
    entry = evidence["nodes"][node]
    assert (entry["gpu_capacity"], entry["unschedulable"], entry["cordon_owner"]) == (0, True, "gpunode-hygiene")
    assert (entry["claim"]["run"], entry["claim"]["cordoned"]) == ("run-1", True)
    [pod] = entry["driver_pods"]
    assert (pod["ready"], pod["phase"], pod["waiting_reason"], pod["restart_count"], pod["daemonset"]) == (
        False, "Running", "CrashLoopBackOff", 76, "nvidia-driver-daemonset",
    )
    assert [(event["reason"], event["count"]) for event in pod["events"]] == [("BackOff", 330), ("Scheduled", 1)]
    manager, driver_container = pod["containers"]
    assert (manager["init"], manager["ready"], manager["log"]) == (True, True, None)
    assert (driver_container["last_exit_code"], driver_container["last_reason"]) == (1, "Error")
    # No kubelet serves this node's logs, and that is said, not taken for an empty log.
    log_part = f"nodes.{node}.driver_pods.{pod['name']}.nvidia-driver-ctr"
    assert set(evidence["unknown"]) == {f"{log_part}.log", f"{log_part}.previous_log"}
    assert entry["expected_images"] == [
        {"role": "driver", "reference": "nvcr.io/nvidia/driver:580.126.20-ubuntu26.04"},
        {"role": "gdrcopy", "reference": "nvcr.io/nvidia/cloud-native/gdrdrv:v2.5.2-ubuntu26.04"},
    ]
    [policy] = evidence["operator"]["policies"]
    assert policy["driver"]["env"] == ["HTTPS_PROXY"]
    [daemonset] = evidence["operator"]["daemonsets"]
    assert daemonset["startup_probes"]["nvidia-driver-ctr"]["failureThreshold"] == 120
    assert daemonset["update_strategy"] == "OnDelete"
    waiting = [entry for entry in evidence["pending_gpu_pods"] if entry["namespace"] == cluster.namespace]
    assert [(entry["name"], entry["requests"], entry["node"]) for entry in waiting] == [("trainer", {"nvidia.com/gpu": 2}, None)]
    assert "nodes are available" in waiting[0]["message"]
    assert list(expected_on(evidence, node, "6.8.0-117-generic").images) == entry["expected_images"]
    assert node_slice(evidence, node)["fleet"]["gpu_nodes_by_os"] == {"ubuntu26.04": [node]}


def test_a_dumped_folder_tells_the_same_as_the_server(operator: Cluster, tmp_path: Path) -> None:
    cluster, node = operator, operator.node_name
    name = pods(cluster)[0]["metadata"]["name"]
    for kind in ("nodes", "pods", "events", "daemonsets"):
        (tmp_path / f"{kind}.yaml").write_text(cluster.kubectl("get", kind, "-A", "-o", "yaml", "--show-managed-fields").stdout, "utf-8")
    (tmp_path / "policy.json").write_text(cluster.kubectl("get", "clusterpolicy", "cluster-policy", "-o", "json").stdout, "utf-8")
    (tmp_path / f"{cluster.namespace}_{name}_nvidia-driver-ctr.previous.log").write_text("first\nCould not resolve Linux kernel version\n", "utf-8")
    served = gather(Server(cluster.api), Want()).evidence
    dumped = gather(Folder(tmp_path), Want(log_lines=1)).evidence
    assert dumped["nodes"][node]["driver_pods"][0]["containers"][1]["previous_log"] == "Could not resolve Linux kernel version\n"
    dumped["nodes"][node]["driver_pods"][0]["containers"][1]["previous_log"] = None
    for evidence in (served, dumped):
        evidence["pending_gpu_pods"] = [entry for entry in evidence["pending_gpu_pods"] if entry["namespace"] == cluster.namespace]
        evidence["unknown"] = sorted(part for part in evidence["unknown"] if not part.endswith("previous_log"))
        for each in evidence["nodes"].values():
            each["ready_condition"].pop("heartbeat")
    assert dumped == served


def test_what_one_user_may_not_read_is_unknown_and_the_rest_is_there(operator: Cluster, control_plane: ControlPlane) -> None:
    cluster = operator
    role = f"{cluster.namespace}-nodes"
    cluster.kubectl("create", "clusterrole", role, "--verb=get,list", "--resource=nodes")
    cluster.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", "--user=node-reader")
    api = connect(Settings("kubeconfig", str(control_plane.user_kubeconfig("node-reader")), {}, 5.0))
    evidence = gather(Server(api), Want()).evidence
    assert evidence["nodes"][cluster.node_name]["driver_pods"] is None
    assert evidence["pending_gpu_pods"] is None
    assert set(evidence["unknown"]) == {"ClusterPolicy", "NVIDIADriver", "DaemonSet", "operator_pods", "driver_pods", "pending_gpu_pods"}
    assert "403" in evidence["unknown"]["driver_pods"]
    assert evidence["nodes"][cluster.node_name]["expected_images_problems"] == ["ClusterPolicy and NVIDIADriver objects could not be read"]
    stranger = connect(Settings("kubeconfig", str(control_plane.user_kubeconfig("stranger")), {}, 5.0))
    with pytest.raises(HygieneError, match="The Nodes cannot be read.*403"):
        gather(Server(stranger), Want())


def test_lists_come_in_pages_and_whole(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    names = sorted(cluster.add_node() for _ in range(7))
    monkeypatch.setattr("ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client.PAGE", 3)
    calls: list[str] = []

    def counted(method: str, target: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Response:
        calls.append(target)
        return cluster.api._transport(method, target, headers, body, timeout)

    counting = Api(counted, cluster.api.server)
    evidence = gather(Server(counting), Want(parts=("nodes",))).evidence
    assert sorted(name for name in evidence["nodes"] if name in names) == names
    assert len(calls) == -(-len(evidence["nodes"]) // 3)
    assert evidence["unknown"]["operator"] == "not asked for (option parts)"


def test_one_node_is_asked_for_alone_and_a_missing_one_is_an_error(cluster: Cluster) -> None:
    cluster.add_node()
    name = cluster.add_node()
    assert list(gather(Server(cluster.api), Want(nodes=(name,))).evidence["nodes"]) == [name]
    with pytest.raises(HygieneError, match="There is no Node nowhere"):
        gather(Server(cluster.api), Want(nodes=(name, "nowhere")))


def test_a_host_is_matched_with_its_node_also_right_after_its_reboot(cluster: Cluster) -> None:
    cluster.add_node()
    name = cluster.add_node()
    info = cluster.node(name)["status"]["nodeInfo"]
    host = Identity(info["machineID"], info["systemUUID"].upper(), info["bootID"])
    nodes = gather(Server(cluster.api), Want(parts=("nodes",))).nodes
    assert match(nodes, host) == name
    rebooted = Identity(info["machineID"], info["systemUUID"], "another-boot")
    with pytest.raises(HygieneError, match="reports boot id"):
        match(nodes, rebooted)
    maintenance(cluster, name).cordoned()
    assert match(gather(Server(cluster.api), Want(parts=("nodes",))).nodes, rebooted) == name


def test_the_answer_of_an_api_server_that_hangs_comes_in_time(cluster: Cluster, control_plane: ControlPlane) -> None:
    name = cluster.add_node()
    hasty = connect(Settings("kubeconfig", str(control_plane.kubeconfig), {}, 2.0))
    control_plane.pause("kube-apiserver")
    try:
        with pytest.raises(HygieneError, match="gave no answer to GET /api/v1/nodes"):
            gather(Server(hasty), Want(nodes=(name,)))
    finally:
        control_plane.resume("kube-apiserver")
    assert list(gather(Server(hasty), Want(nodes=(name,))).evidence["nodes"]) == [name]
