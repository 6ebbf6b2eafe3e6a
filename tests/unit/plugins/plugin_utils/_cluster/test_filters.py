# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drain's filters give kubectl's answers (kubectl pkg/drain/filters.go), also where kubernetes.core.k8s_drain does not."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.drain.filters import EVICT, LEAVE, REFUSE, Rules, judge, judge_all, tolerates_cordon

NOW = datetime(2026, 10, 1, 12, 0, 0, tzinfo=UTC)
REPLICASET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "controller": True}
DAEMONSET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}
EMPTYDIR = [{"name": "data", "emptyDir": {}}]


def pod(owner: dict[str, Any] | None = None, *, phase: str = "Running", volumes: list[dict[str, Any]] | None = None, **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ml", "name": "p", "uid": "u", "ownerReferences": [owner] if owner else [], **meta},
        "spec": {"volumes": volumes or []},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("item", "rules", "action", "reason"),
    [
        (pod(REPLICASET), Rules(), EVICT, "managed by ReplicaSet web-1"),
        (pod(), Rules(), REFUSE, "it has no controller; nothing makes it again (option force)"),
        (pod(), Rules(force=True), EVICT, "nothing makes it again"),
        # An owner that is no controller manages nothing (k8s_drain takes any owner reference).
        (pod({**REPLICASET, "controller": False}), Rules(), REFUSE, "it has no controller; nothing makes it again (option force)"),
        (pod(REPLICASET, volumes=EMPTYDIR), Rules(), REFUSE, "its emptyDir data would be lost (option delete_emptydir_data)"),
        (pod(REPLICASET, volumes=EMPTYDIR), Rules(delete_emptydir_data=True), EVICT, "managed by ReplicaSet web-1"),
        # A bare pod with emptyDir needs both options (k8s_drain evicts it with delete_emptydir_data alone).
        (pod(volumes=EMPTYDIR), Rules(delete_emptydir_data=True), REFUSE, "it has no controller; nothing makes it again (option force)"),
        (pod(volumes=EMPTYDIR), Rules(force=True), REFUSE, "its emptyDir data would be lost (option delete_emptydir_data)"),
        (pod(volumes=EMPTYDIR), Rules(force=True, delete_emptydir_data=True), EVICT, "nothing makes it again"),
        (pod(phase="Succeeded", volumes=EMPTYDIR), Rules(), EVICT, "finished"),
        (pod(phase="Failed"), Rules(), EVICT, "finished"),
        (pod(DAEMONSET), Rules(force=True), LEAVE, "managed by DaemonSet agent"),
        (pod(DAEMONSET, volumes=EMPTYDIR), Rules(), LEAVE, "managed by DaemonSet agent"),
        (pod(DAEMONSET, phase="Failed"), Rules(), EVICT, "finished"),
        (pod({**DAEMONSET, "name": "gone"}), Rules(), REFUSE, "its DaemonSet gone does not exist; nothing makes it again (option force)"),
        (pod({**DAEMONSET, "name": "gone"}), Rules(force=True), EVICT, "nothing makes it again"),
        (pod({**DAEMONSET, "apiVersion": "apps.kruise.io/v1alpha1"}), Rules(), EVICT, "managed by DaemonSet agent"),
        (pod(annotations={"kubernetes.io/config.mirror": "x"}), Rules(), LEAVE, "static pod of the kubelet"),
        (pod(phase="Succeeded", annotations={"kubernetes.io/config.mirror": "x"}), Rules(), LEAVE, "static pod of the kubelet"),
    ],
)
def test_verdict(item: dict[str, Any], rules: Rules, action: str, reason: str) -> None:
    verdict = judge(item, rules, {("ml", "agent")}, NOW)
    assert (verdict.action, verdict.reason) == (action, reason)


@pytest.mark.parametrize(("limit", "age", "action"), [(0, 9999, EVICT), (60, 60, EVICT), (60, 61, LEAVE), (60, -30, EVICT)])
def test_a_pod_past_its_deletion_time_is_left_only_after_the_limit(limit: int, age: int, action: str) -> None:
    item = pod(REPLICASET, deletionTimestamp=f"{NOW - timedelta(seconds=age):%Y-%m-%dT%H:%M:%SZ}")
    assert judge(item, Rules(skip_wait_for_delete_timeout=limit), (), NOW).action == action


def test_options_only_ever_allow_more() -> None:
    items = [
        pod(owner, phase=phase, volumes=volumes)
        for owner, phase, volumes in itertools.product((None, REPLICASET, DAEMONSET, {**DAEMONSET, "name": "gone"}), ("Running", "Failed"), ([], EMPTYDIR))
    ]
    for item, force, data in itertools.product(items, (False, True), (False, True)):
        strict = judge(item, Rules(), {("ml", "agent")}, NOW).action
        loose = judge(item, Rules(force=force, delete_emptydir_data=data), {("ml", "agent")}, NOW).action
        assert loose == strict or (strict, loose) == (REFUSE, EVICT)


def test_verdicts_come_in_the_order_of_the_names() -> None:
    items = [pod(REPLICASET, name=name) for name in ("c", "a", "b")]
    assert [verdict.pod["metadata"]["name"] for verdict in judge_all(items, Rules(), (), NOW)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Equal", "value": "x"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, False),
    ],
)
def test_toleration_of_a_cordon(toleration: dict[str, str], expected: bool) -> None:
    assert tolerates_cordon({"spec": {"tolerations": [toleration]}}) is expected
