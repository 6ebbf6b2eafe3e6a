# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects reshaped into evidence, from a folder as somebody sends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import objects
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import Api, ApiError, Response
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info import entries
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info.gather import Want, gather
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info.source import Folder, Server, Unread

NODES = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata:
    name: gpu-1
    creationTimestamp: 2026-09-30T08:00:00Z
    labels: {nvidia.com/gpu.present: "true"}
    annotations: {gpunode.hygiene/keep-cordoned: bad fan, gpunode.hygiene/maintenance: broken}
  spec: {unschedulable: true}
  status:
    capacity: {cpu: "8", nvidia.com/gpu: "0", nvidia.com/mig-1g.5gb: "7"}
    nodeInfo: {machineID: m1, kernelVersion: 7.0.0-15-generic}
    conditions:
    - {type: Ready, status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting node status.}
"""
POD: dict[str, Any] = {
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
        "name": "driver-x", "namespace": "gpu-operator", "uid": "u1", "labels": {"app": "nvidia-driver-daemonset"},
        "ownerReferences": [{"kind": "DaemonSet", "name": "nvidia-driver-daemonset", "controller": True}],
    },
    "spec": {"nodeName": "gpu-1", "containers": [{"name": "nvidia-driver-ctr", "image": "i:1"}]},
    "status": {"phase": "Running", "containerStatuses": [
        {"name": "nvidia-driver-ctr", "image": "i:1", "ready": False, "restartCount": 76, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
         "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}},
    ]},
}


def dump(folder: Path) -> Path:
    (folder / "deep").mkdir()
    (folder / "deep" / "nodes.yaml").write_text(NODES, "utf-8")
    (folder / "pod.json").write_text(json.dumps(POD), "utf-8")
    (folder / "notes.txt").write_text("not an object", "utf-8")
    log = "\n".join(f"line {number}" for number in range(100)) + "\nCould not resolve Linux kernel version\n"
    (folder / "deep" / "gpu-operator_driver-x_nvidia-driver-ctr.previous.log").write_text(log, "utf-8")
    return folder


def test_a_folder_answers_with_what_it_has_and_says_what_it_has_not(tmp_path: Path) -> None:
    evidence = gather(Folder(dump(tmp_path)), Want(log_lines=2)).evidence
    node = evidence["nodes"]["gpu-1"]
    assert (node["ready"], node["ready_condition"]["reason"], node["created"]) == (False, "NodeStatusUnknown", "2026-09-30T08:00:00Z")
    assert (node["capacity"], node["gpu_capacity"], node["gpu_allocatable"]) == ({"nvidia.com/gpu": 0, "nvidia.com/mig-1g.5gb": 7}, 0, None)
    assert (node["cordon_owner"], node["keep_cordoned"], node["claim"]) == ("unknown", "bad fan", None)
    assert "is not a claim that this version can read" in node["claim_problem"]
    [pod] = node["driver_pods"]
    assert (pod["waiting_reason"], pod["restart_count"], pod["daemonset"], pod["events"]) == ("CrashLoopBackOff", 76, "nvidia-driver-daemonset", None)
    assert pod["containers"][0]["previous_log"] == "line 99\nCould not resolve Linux kernel version\n"
    assert evidence["operator"]["policies"] == []
    assert evidence["operator"]["daemonsets"] is None
    assert sorted(evidence["unknown"]) == ["DaemonSet", "Event", "nodes.gpu-1.driver_pods.driver-x.nvidia-driver-ctr.log"]
    assert json.loads(json.dumps(evidence)) == evidence


def test_logs_are_read_of_the_nodes_asked_for_alone(tmp_path: Path) -> None:
    evidence = gather(Folder(dump(tmp_path)), Want(logs_of=("other",))).evidence
    container = evidence["nodes"]["gpu-1"]["driver_pods"][0]["containers"][0]
    assert (container["log"], container["previous_log"]) == (None, None)
    assert sorted(evidence["unknown"]) == ["DaemonSet"]


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("x.yaml", "a: [", "x.yaml cannot be read as yaml"),
        ("x.json", "{", "x.json cannot be read as json"),
        ("x.yml", "a: 1\n", "The Nodes cannot be read: there is no Node in"),
    ],
)
def test_a_folder_that_says_nothing_is_refused(tmp_path: Path, name: str, text: str, error: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(HygieneError, match=error):
        gather(Folder(tmp_path), Want())
    with pytest.raises(HygieneError, match="is not a folder"):
        Folder(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("state", "ready", "restarts", "failing"),
    [
        ({"waiting": {"reason": "CrashLoopBackOff"}}, False, 3, True),
        ({"waiting": {"reason": "PodInitializing"}}, False, 0, False),
        ({"waiting": {"reason": "ImagePullBackOff"}}, False, 0, False),
        ({"running": {}}, False, 0, True),
        ({"running": {}}, True, 5, False),
        ({"terminated": {"exitCode": 0}}, False, 1, False),
        ({"terminated": {"exitCode": 137}}, False, 0, True),
        ({}, False, 0, False),
    ],
)
def test_containers_whose_log_says_why(state: dict[str, Any], ready: bool, restarts: int, failing: bool) -> None:
    pod = {"status": {"containerStatuses": [{"name": "c", "ready": ready, "restartCount": restarts, "state": state}]}}
    assert entries.is_failing(entries.driver_pod_entry(pod)["containers"][0]) is failing


def test_values_of_variables_are_not_shown() -> None:
    policy = {"kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": {
        "driver": {"env": [{"name": "P", "value": "secret"}], "manager": {"env": [{"name": "Q", "value": "secret"}], "image": "m"}}, "gds": {"env": None},
    }}
    entry = entries.policy_entry(policy)
    assert "secret" not in json.dumps(entry)
    assert entry["driver"] == {"env": ["P"], "manager": {"env": ["Q"], "image": "m"}}


def test_an_nvidiadriver_is_shaped_as_a_clusterpolicy() -> None:
    spec = {"repository": "r", "version": "1", "gds": {"enabled": True}, "nodeSelector": {"a": "b"}}
    entry = entries.policy_entry({"kind": "NVIDIADriver", "metadata": {"name": "d"}, "spec": spec, "status": {"state": "ready"}})
    assert entry == {
        "kind": "NVIDIADriver", "name": "d", "state": "ready", "driver": {"repository": "r", "version": "1"}, "gds": {"enabled": True}, "gdrcopy": {},
        "node_selector": {"a": "b"},
    }


def test_a_pending_pod_counts_when_it_asks_for_gpus() -> None:
    def pod(*amounts: str, init: str = "0") -> dict[str, Any]:
        def asks(amount: str) -> dict[str, Any]:
            return {"resources": {"limits": {"cpu": "1", "nvidia.com/gpu": amount}}}

        return {"metadata": {"name": "p"}, "spec": {"containers": [asks(amount) for amount in amounts], "initContainers": [asks(init)]}}

    for item, expected in ((pod("1", "2"), 3), (pod("1", init="4"), 4), (pod("2", init="1"), 2)):
        entry = entries.pending_entry(item)
        assert entry is not None
        assert entry["requests"] == {"nvidia.com/gpu": expected}
    assert entries.pending_entry({"metadata": {}, "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}) is None


def test_a_kind_the_cluster_does_not_have_is_none_only_for_the_operator_s_kinds() -> None:
    missing = Api(lambda *_: Response(404, {}, b'{"message": "no such kind"}'), "https://h")
    assert Server(missing).list("ClusterPolicy") == []
    with pytest.raises(Unread, match="404"):
        Server(missing).list("DaemonSet")


def test_a_log_is_asked_for_by_its_end() -> None:
    asked: list[str] = []

    def send(_method: str, target: str, *_: Any) -> Response:
        asked.append(target)
        return Response(200, {}, b"last\xff\n")

    api = Api(send, "https://h")
    assert Server(api).log(POD, "c", True, 7) == "last\ufffd\n"
    assert asked == ["/api/v1/namespaces/gpu-operator/pods/driver-x/log?container=c&previous=true&tailLines=7&limitBytes=65536"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False), ({}, True), ({"matchLabels": {"a": "1"}}, True), ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, True),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_label_selector(selector: Any, expected: bool) -> None:
    assert objects.selects(selector, {"a": "1"}) is expected


def test_api_errors_know_their_causes() -> None:
    error = ApiError(403, "POST x", {"message": "m", "details": {"causes": [{"reason": "NamespaceTerminating"}]}})
    assert error.has_cause("NamespaceTerminating")
    assert not ApiError(403, "POST x", {}).has_cause("NamespaceTerminating")
