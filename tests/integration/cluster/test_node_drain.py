# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`node_drain` against a real API server, disruption controller and scheduler."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import ledger, protection
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import Api, Response, connect
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.drain.filters import Rules
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.options import Settings
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.process import Owner, this_owner
from cluster_world import Cluster, maintenance, ready, seeker
from gpunode_lab.controlplane import ControlPlane

TOLERATES_CORDON = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]


def claim_of(cluster: Cluster, node: str) -> ledger.Claim | None:
    return ledger.read(cluster.node(node))


def stable(node: Mapping[str, Any]) -> dict[str, Any]:
    """What a check-mode run must leave as it was."""
    return {"spec": node["spec"], "labels": node["metadata"]["labels"], "annotations": node["metadata"].get("annotations")}


def put_claim(cluster: Cluster, node: str, **fields: Any) -> ledger.Claim:
    """A claim as an earlier process left it, with its cordon."""
    stamp = (datetime.now(UTC) - fields.pop("age", timedelta())).strftime(ledger.TIME)
    me = this_owner()
    values = {
        "run": "run-0", "procedure": "recover", "controller": me.controller, "pid": dead_pid(), "started": stamp, "renewed": stamp, "cordoned": True,
        "boot_id": "boot-0", **fields,
    }
    claim = ledger.Claim(**values)
    cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {ledger.CLAIM: claim.render()}}, "spec": {"unschedulable": True}})
    settle(cluster, node)
    return claim


def settle(cluster: Cluster, node: str) -> None:
    """The node controller adds its taint a moment after a cordon, which counts as a change of the node."""
    cluster.until(lambda: bool(cluster.node(node)["spec"].get("taints")), "the cordon's taint")


def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


class Recorder:
    """Passes requests on and remembers those that write."""

    def __init__(self, api: Api) -> None:
        self._send = api._transport
        self.requests: list[tuple[str, str, Any]] = []
        self.api = Api(self.send, api.server, api.patience)

    def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Response:
        if method != "GET":
            self.requests.append((method, target, json.loads(body or b"null")))
        return self._send(method, target, headers, body, timeout)


def test_cordon_claim_and_protection_are_one_patch(cluster: Cluster) -> None:
    node = cluster.add_node()
    version = cluster.node(node)["metadata"]["resourceVersion"]
    recorder = Recorder(cluster.api)
    out = maintenance(cluster, node, api=recorder.api, protect=True).cordoned()
    [(method, target, body)] = recorder.requests
    assert (method, urlsplit(target).path, parse_qs(urlsplit(target).query)) == ("PATCH", f"/api/v1/nodes/{node}", {"fieldManager": ["gpunode-hygiene"]})
    assert body["spec"] == {"unschedulable": True}
    assert body["metadata"]["resourceVersion"] == version
    assert set(body["metadata"]["annotations"]) == {ledger.CLAIM, *protection.ANNOTATIONS}
    assert body["metadata"]["labels"] == protection.LABELS
    answer = out.answer(seeker())
    assert (answer["changed"], answer["schedulable"], answer["cordon_owner"], answer["adopted"]) == (True, False, "gpunode-hygiene", False)
    assert answer["boot_id"] == cluster.node(node)["status"]["nodeInfo"]["bootID"]
    assert answer["before"]["claim"] is None
    assert answer["after"]["claim"] == {"run": "run-1", "procedure": "recover", "cordoned": True}


def test_cordoning_again_renews_the_claim_and_changes_nothing(cluster: Cluster) -> None:
    node = cluster.add_node()
    maintenance(cluster, node, protect=True).cordoned()
    out = maintenance(cluster, node, protect=True).cordoned()
    assert out.answer(seeker())["changed"] is False
    assert out.plan == []


def test_everything_taken_is_given_back(cluster: Cluster) -> None:
    node = cluster.add_node(labels={"k8saas.nvidia.com/ManagedByNVSentinel": "true"})
    cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}})
    before = stable(cluster.node(node))
    maintenance(cluster, node, protect=True).drained()
    assert cluster.node(node)["metadata"]["labels"]["k8saas.nvidia.com/ManagedByNVSentinel"] == "false"
    out = maintenance(cluster, node).uncordoned()
    cluster.until(lambda: stable(cluster.node(node)) == before, "the node to be as before")  # the taint goes a moment later
    assert out.answer(seeker())["schedulable"] is True
    again = maintenance(cluster, node).uncordoned()
    assert again.answer(seeker())["changed"] is False
    assert "not claimed" in again.msg


def test_a_value_that_somebody_changed_meanwhile_is_not_overwritten(cluster: Cluster) -> None:
    node = cluster.add_node()
    maintenance(cluster, node, protect=True).cordoned()
    cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "because"}}})
    maintenance(cluster, node).uncordoned()
    annotations = cluster.node(node)["metadata"]["annotations"]
    assert annotations["karpenter.sh/do-not-disrupt"] == "because"
    assert "cluster-autoscaler.kubernetes.io/scale-down-disabled" not in annotations


def test_budget_refusal_is_retried_until_the_replacement_is_ready(cluster: Cluster) -> None:
    first = cluster.add_node()
    cluster.workload("deployments", "web", 2)
    second = cluster.add_node()
    cluster.budget("web", 1)
    out = maintenance(cluster, first).drained()
    assert len(out.pods) == 2
    assert cluster.pods_on(first) == []
    cluster.until(lambda: len(cluster.pods_on(second)) == 2, "the pods on the other node")


def test_budget_that_blocks_is_named_at_the_deadline_and_the_node_stays_cordoned(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.workload("deployments", "web", 1)
    cluster.owned("free", node)
    cluster.budget("web", 1, "web-must-stay")
    started = time.monotonic()
    with pytest.raises(HygieneError) as caught:
        maintenance(cluster, node, timeout=3.0).drained()
    assert 3.0 <= time.monotonic() - started < 8.0
    assert "budget web-must-stay: The disruption budget web-must-stay needs 1 healthy pods and has 1 currently" in caught.value.seen
    [blocked] = caught.value.facts["blocked"]
    assert blocked["budgets"] == ["web-must-stay"]
    assert [pod["name"] for pod in caught.value.facts["pods"]] == ["free"]
    assert cluster.node(node)["spec"]["unschedulable"] is True
    claim = claim_of(cluster, node)
    assert claim is not None
    assert claim.run == "run-1"


def test_a_blocked_pod_does_not_keep_the_others_from_being_evicted(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.owned("a-blocked", node)
    cluster.owned("b-free", node)
    cluster.budget("a-blocked", 1, "a-waits-for-b")

    def release() -> None:
        cluster.until(lambda: cluster.pods_on(node) == ["a-blocked"], "b to go first")
        cluster.api._json("DELETE", f"/apis/policy/v1/namespaces/{cluster.namespace}/poddisruptionbudgets/a-waits-for-b", None, {})

    helper = threading.Thread(target=release)
    helper.start()
    out = maintenance(cluster, node, timeout=20.0).drained()
    helper.join()
    seconds = {pod["name"]: pod["seconds"] for pod in out.pods}
    assert sorted(seconds) == ["a-blocked", "b-free"]
    assert seconds["b-free"] < seconds["a-blocked"]


def test_two_budgets_over_one_pod_are_both_named_at_once(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.owned("torn", node)
    cluster.budget("torn", 1, "one")
    cluster.budget("torn", 1, "two")
    started = time.monotonic()
    with pytest.raises(HygieneError, match=r"more than one PodDisruptionBudget.*\(one, two\)"):
        maintenance(cluster, node).drained()
    assert time.monotonic() - started < 10.0


def test_the_drain_of_one_pod_waits_for_its_end(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.owned("slow", node, grace=4)
    out = maintenance(cluster, node).drained()
    assert cluster.pods_on(node) == []
    assert out.pods[0]["seconds"] >= 4.0


def test_grace_period_zero_ends_pods_at_once(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.owned("slow", node, grace=60)
    out = maintenance(cluster, node, grace_period=0).drained()
    assert out.pods[0]["seconds"] < 5.0


def test_a_new_pod_of_the_same_name_is_another_pod(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.workload("statefulsets", "db", 1, tolerations=TOLERATES_CORDON)
    cluster.owned("slow", node, grace=3)  # gives the StatefulSet time to put db-0 back on the node
    old = cluster.get_pod("db-0")["metadata"]["uid"]
    out = maintenance(cluster, node, timeout=20.0).drained()
    new = cluster.get_pod("db-0")["metadata"]["uid"]
    assert new != old
    assert [(pod["name"], pod["uid"] == old, pod["seconds"] < 3.0) for pod in out.pods] == [("db-0", True, True), ("slow", False, False)]
    assert [(pod["name"], pod["uid"], pod["reason"]) for pod in out.left] == [("db-0", new, "it came back after it was evicted")]


def test_a_pod_that_terminates_already_is_waited_for_and_named(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.owned("wedged", node, labels={"test/stuck": ""}, grace=1)
    cluster.kubectl("delete", "pod", "wedged", "-n", cluster.namespace, "--wait=false")
    with pytest.raises(HygieneError, match=r"still terminating: .*/wedged") as caught:
        maintenance(cluster, node, timeout=2.0).drained()
    assert [pod["name"] for pod in caught.value.facts["terminating"]] == ["wedged"]


def test_a_pod_of_a_dead_kubelet_is_skipped_when_allowed(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.owned("wedged", node, labels={"test/stuck": ""}, grace=1)
    out = maintenance(cluster, node, timeout=20.0, rules=Rules(skip_wait_for_delete_timeout=2)).drained()
    assert [(pod["name"], pod["reason"]) for pod in out.left] == [("wedged", "terminating for more than 2 s")]
    assert out.pods == []


def test_what_must_not_be_evicted_is_refused_before_the_cordon(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.pod("bare", node)
    cluster.owned("scratch", node, volumes=[{"name": "data", "emptyDir": {}}])
    version = cluster.node(node)["metadata"]["resourceVersion"]
    with pytest.raises(HygieneError) as caught:
        maintenance(cluster, node).drained()
    assert [pod["name"] for pod in caught.value.facts["refused"]] == ["bare", "scratch"]
    assert cluster.node(node)["metadata"]["resourceVersion"] == version
    out = maintenance(cluster, node, rules=Rules(force=True, delete_emptydir_data=True)).drained()
    assert [pod["name"] for pod in out.pods] == ["bare", "scratch"]


def test_daemonset_pods_stay(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.workload("daemonsets", "agent", 1)
    out = maintenance(cluster, node).drained()
    assert [pod["reason"] for pod in out.left] == ["managed by DaemonSet agent"]
    assert len(cluster.pods_on(node)) == 1


def test_a_foreign_cordon_is_drained_and_stays(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.owned("work", node)
    cluster.kubectl("cordon", node)
    out = maintenance(cluster, node).drained()
    assert [pod["name"] for pod in out.pods] == ["work"]
    claim = claim_of(cluster, node)
    assert claim is not None
    assert claim.cordoned is False
    back = maintenance(cluster, node).uncordoned().answer(seeker())
    assert (back["changed"], back["schedulable"], back["cordon_owner"]) == (True, False, "kubectl")
    assert cluster.node(node)["spec"]["unschedulable"] is True
    assert claim_of(cluster, node) is None


def test_a_cordon_that_somebody_placed_again_meanwhile_is_theirs(cluster: Cluster) -> None:
    node = cluster.add_node()
    maintenance(cluster, node).cordoned()
    cluster.kubectl("uncordon", node)
    cluster.kubectl("cordon", node)
    back = maintenance(cluster, node).uncordoned().answer(seeker())
    assert (back["schedulable"], back["cordon_owner"]) == (False, "kubectl")


def test_our_cordon_stays_when_somebody_asks_for_it(cluster: Cluster) -> None:
    node = cluster.add_node()
    maintenance(cluster, node).cordoned()
    cluster.kubectl("annotate", "node", node, f"{ledger.KEEP_CORDONED}=bad fan")
    back = maintenance(cluster, node).uncordoned().answer(seeker())
    assert (back["schedulable"], back["cordon_owner"]) == (False, f"{ledger.KEEP_CORDONED}: bad fan")
    assert claim_of(cluster, node) is None


def test_a_node_never_cordoned_by_us_is_left_alone(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.kubectl("cordon", node)
    settle(cluster, node)
    version = cluster.node(node)["metadata"]["resourceVersion"]
    back = maintenance(cluster, node).uncordoned()
    assert back.answer(seeker())["changed"] is False
    assert f"Node {node} was not claimed by this collection; nothing is given back, and it stays cordoned by kubectl." == back.msg
    assert cluster.node(node)["metadata"]["resourceVersion"] == version


def test_our_own_cordon_without_a_claim_is_taken_back(cluster: Cluster) -> None:
    node = cluster.add_node()
    maintenance(cluster, node).cordoned()
    cluster.kubectl("annotate", "node", node, f"{ledger.CLAIM}-")
    assert maintenance(cluster, node).uncordoned().answer(seeker())["schedulable"] is True
    assert "unschedulable" not in cluster.node(node)["spec"]


def test_the_claim_of_a_dead_process_is_adopted_with_its_run(cluster: Cluster) -> None:
    node = cluster.add_node()
    put_claim(cluster, node, annotations={"karpenter.sh/do-not-disrupt": None})
    cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}})
    answer = maintenance(cluster, node, seeker=seeker("run-9")).drained().answer(seeker("run-9"))
    assert (answer["run"], answer["adopted"], answer["boot_id"], answer["changed"]) == ("run-0", True, "boot-0", False)
    claim = claim_of(cluster, node)
    assert claim is not None
    assert (claim.run, claim.pid, dict(claim.annotations)) == ("run-0", this_owner().pid, {"karpenter.sh/do-not-disrupt": None})


def test_a_live_owner_is_never_displaced(cluster: Cluster) -> None:
    node = cluster.add_node()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        try:
            put_claim(cluster, node, pid=process.pid, age=-timedelta(seconds=5))
            version = cluster.node(node)["metadata"]["resourceVersion"]
            with pytest.raises(HygieneError, match=rf"claimed by run run-0 of recover \(process {process.pid}"):
                maintenance(cluster, node, seeker=seeker("run-9", take_over=True)).drained()
            assert cluster.node(node)["metadata"]["resourceVersion"] == version
        finally:
            process.kill()
    assert maintenance(cluster, node, seeker=seeker("run-9")).drained().answer(seeker())["run"] == "run-0"


def test_a_claim_from_another_controller_holds_until_its_time_is_over(cluster: Cluster) -> None:
    node = cluster.add_node()
    put_claim(cluster, node, controller="elsewhere/1", age=timedelta(minutes=10))
    with pytest.raises(HygieneError, match=r"last sign 10 min ago.*Wait 20 min"):
        maintenance(cluster, node).cordoned()
    out = maintenance(cluster, node, seeker=seeker(ttl=timedelta(minutes=9))).cordoned()
    assert out.answer(seeker())["adopted"] is True


def test_an_unreadable_claim_is_refused(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.kubectl("annotate", "node", node, f"{ledger.CLAIM}=mine!")
    with pytest.raises(HygieneError, match=r"is not a claim that this version can read.*mine!"):
        maintenance(cluster, node).cordoned()


def test_check_mode_changes_nothing_and_names_the_budget_that_would_block(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.workload("deployments", "web", 1)
    cluster.owned("free", node)
    cluster.budget("web", 1, "web-must-stay")
    before = [cluster.node(node), *(cluster.get_pod(name) for name in cluster.pods_on(node))]
    out = maintenance(cluster, node, check_mode=True, protect=True).drained()
    assert [cluster.node(node), *(cluster.get_pod(name) for name in cluster.pods_on(node))] == before
    assert [entry["budgets"] for entry in out.blocked] == [["web-must-stay"]]
    assert {pod["name"].split("-")[0] for pod in out.pods} == {"free", "web"}
    answer = out.answer(seeker())
    assert answer["changed"] is True
    assert answer["after"] == {
        "unschedulable": True, "cordon_owner": "gpunode-hygiene", "claim": {"run": "run-1", "procedure": "recover", "cordoned": True},
        "protection": {**protection.ANNOTATIONS, **protection.LABELS}, "pods": [],
    }
    assert [change.what for change in out.plan] == ["cordon", "annotation", "annotation", "annotation", "label", "label", "pod", "pod"]


def test_check_mode_predicts_what_giving_back_does(cluster: Cluster) -> None:
    node = cluster.add_node()
    maintenance(cluster, node, protect=True).cordoned()
    foreseen = maintenance(cluster, node, check_mode=True).uncordoned()
    assert claim_of(cluster, node) is not None
    done = maintenance(cluster, node).uncordoned()
    assert foreseen.after == done.after
    assert [change.as_dict() for change in foreseen.plan] == [change.as_dict() for change in done.plan]


def test_a_node_is_not_given_back_before_it_is_as_expected(cluster: Cluster) -> None:
    node = cluster.add_node()
    maintenance(cluster, node).cordoned()
    cluster.set_status(node, conditions=[ready(False)])
    with pytest.raises(HygieneError) as caught:
        maintenance(cluster, node, timeout=1.0, expect_kernel="6.1.0-2-amd64", expect_boot_id="new").uncordoned()
    assert caught.value.facts["unmet"] == [
        "it is not Ready (said the test)", "it reports kernel 6.1.0-1-amd64, not 6.1.0-2-amd64",
        f"it reports boot id {cluster.node(node)['status']['nodeInfo']['bootID']}, not new",
    ]
    assert cluster.node(node)["spec"]["unschedulable"] is True

    def boot() -> None:
        time.sleep(1)
        info = {**cluster.node(node)["status"]["nodeInfo"], "bootID": "new", "kernelVersion": "6.1.0-2-amd64"}
        cluster.set_status(node, conditions=[ready(True)], nodeInfo=info)

    helper = threading.Thread(target=boot)
    helper.start()
    out = maintenance(cluster, node, expect_kernel="6.1.0-2-amd64", expect_boot_id="new").uncordoned()
    helper.join()
    assert out.answer(seeker())["schedulable"] is True


def test_a_running_driver_upgrade_keeps_the_node(cluster: Cluster) -> None:
    node = cluster.add_node(labels={"nvidia.com/gpu-driver-upgrade-state": "validation-required"})
    maintenance(cluster, node).cordoned()
    with pytest.raises(HygieneError, match="driver upgrade is in state validation-required"):
        maintenance(cluster, node, timeout=0.5).uncordoned()


def test_an_uncordon_by_somebody_else_during_the_drain_is_answered(cluster: Cluster) -> None:
    node = cluster.add_node()
    cluster.owned("slow", node, grace=3)

    def uncordon() -> None:
        cluster.until(lambda: bool(cluster.node(node)["spec"].get("unschedulable")), "our cordon")
        cluster.kubectl("uncordon", node)

    helper = threading.Thread(target=uncordon)
    helper.start()
    out = maintenance(cluster, node).drained()
    helper.join()
    assert cluster.node(node)["spec"]["unschedulable"] is True
    assert out.answer(seeker())["schedulable"] is False
    assert maintenance(cluster, node).uncordoned().answer(seeker())["schedulable"] is True


def test_a_node_with_the_only_api_server_or_an_etcd_member_is_refused(cluster: Cluster) -> None:
    only = cluster.add_node(labels={"node-role.kubernetes.io/control-plane": ""})
    with pytest.raises(HygieneError, match="has the only API server"):
        maintenance(cluster, only).drained()
    member = cluster.add_node(labels={"node-role.kubernetes.io/etcd": "true"})
    with pytest.raises(HygieneError, match="has an etcd member"):
        maintenance(cluster, member).drained()
    own = cluster.add_node()
    cluster.owned("automation-job", own)
    with pytest.raises(HygieneError, match="This run is in pod"):
        maintenance(cluster, own, own_pod=(cluster.namespace, "automation-job")).drained()
    assert not any(cluster.node(node)["spec"].get("unschedulable") for node in (only, member, own))


def test_a_missing_node_is_said_so(cluster: Cluster) -> None:
    with pytest.raises(HygieneError, match="There is no Node nowhere"):
        maintenance(cluster, "nowhere").cordoned()


def test_missing_rights_are_said_before_anything_changes(cluster: Cluster, control_plane: ControlPlane) -> None:
    node = cluster.add_node()
    cluster.kubectl("create", "clusterrole", f"{cluster.namespace}-read", "--verb=get,list", "--resource=nodes,pods,daemonsets.apps")
    cluster.kubectl("create", "clusterrolebinding", f"{cluster.namespace}-read", f"--clusterrole={cluster.namespace}-read", "--user=reader")
    reader = connect(Settings("kubeconfig", str(control_plane.user_kubeconfig("reader")), {}, 5.0))
    with pytest.raises(HygieneError, match=r'answered with 403.*User "reader" cannot patch resource "nodes".*Grant the right'):
        maintenance(cluster, node, api=reader, check_mode=True).drained()
    assert "unschedulable" not in cluster.node(node)["spec"]


def test_an_api_server_that_restarts_during_the_drain_is_waited_for(cluster: Cluster, control_plane: ControlPlane) -> None:
    node = cluster.add_node()
    cluster.owned("slow", node, grace=4)

    def restart() -> None:
        cluster.until(lambda: "deletionTimestamp" in cluster.get_pod("slow")["metadata"], "the eviction")
        control_plane.stop_server("kube-apiserver")
        control_plane.start_server("kube-apiserver")

    # The servers end with the thread that started them, so the drain goes to the other thread.
    answers: list[Any] = []
    helper = threading.Thread(target=lambda: answers.append(maintenance(cluster, node, timeout=60.0).drained()))
    helper.start()
    restart()
    helper.join()
    control_plane.wait_ready(60.0)
    assert [pod["name"] for pod in answers[0].pods] == ["slow"]


def test_an_unreachable_api_server_is_a_clear_error_in_time(control_plane: ControlPlane) -> None:
    nowhere = connect(Settings("kubeconfig", str(control_plane.user_kubeconfig("lost", url="https://127.0.0.1:1")), {}, 2.0))
    started = time.monotonic()
    with pytest.raises(HygieneError, match=r"The API server https://127.0.0.1:1 gave no answer.*refused.*tried for 2 s.*api_timeout"):
        nowhere.get("/api/v1/nodes")
    assert time.monotonic() - started < 4.0


def test_an_untrusted_certificate_is_not_tried_again(control_plane: ControlPlane) -> None:
    config = yaml.safe_load(control_plane.kubeconfig.read_text("utf-8"))
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    stranger = connect(Settings("kubeconfig", config, {}, 30.0))
    started = time.monotonic()
    with pytest.raises(HygieneError, match="certificate verify failed"):
        stranger.get("/api/v1/nodes")
    assert time.monotonic() - started < 5.0


def test_two_processes_that_start_at_once_do_not_both_get_the_node(cluster: Cluster) -> None:
    node = cluster.add_node()
    results: list[str] = []

    def contend(index: int) -> None:
        owner = Owner(f"controller-{index}", 1)
        try:
            maintenance(cluster, node, seeker=seeker(f"run-{index}", f"procedure-{index}", owner=owner)).cordoned()
            results.append("got it")
        except HygieneError as error:
            results.append("refused" if "is claimed by run" in error.seen else str(error))

    threads = [threading.Thread(target=contend, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["got it"] + ["refused"] * 7
