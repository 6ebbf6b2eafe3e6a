# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which Node is this host, and which nodes are not drained at all."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.drain.guards import demand_drainable
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.ledger import CLAIM, Claim
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.node_match import Identity, match

UUID = "4c4c4544-0042-3510-8052-b4c04f4e3532"
SWAPPED = "44454c4c-4200-1035-8052-b4c04f4e3532"


def node(name: str, machine: str = "m1", system: str = UUID, boot: str = "b1", claimed_boot: str = "") -> dict[str, Any]:
    claim = Claim("r", "p", "c", 1, "2026-10-01T12:00:00Z", "2026-10-01T12:00:00Z", True, boot_id=claimed_boot)
    return {
        "metadata": {"name": name, "annotations": {CLAIM: claim.render()} if claimed_boot else {}},
        "status": {"nodeInfo": {"machineID": machine, "systemUUID": system, "bootID": boot}},
    }


@pytest.mark.parametrize(
    ("nodes", "host", "wanted", "expected"),
    [
        ([node("a"), node("b", "m2")], Identity("m1", UUID, "b1"), "", "a"),
        ([node("a")], Identity("m1", UUID.upper(), "b1"), "a", "a"),
        ([node("a")], Identity("M1", "", "b1"), "", "a"),
        ([node("a")], Identity("m1", SWAPPED, "b1"), "", "a"),
        ([node("a")], Identity("m1", UUID), "", "a"),
        # Right after a reboot the Node still reports the boot that the claim recorded.
        ([node("a", boot="b0", claimed_boot="b0")], Identity("m1", UUID, "b1"), "", "a"),
        # Cloned machines differ in what they booted.
        ([node("a", boot="b1"), node("b", boot="b2")], Identity("m1", UUID, "b2"), "", "b"),
        ([node("a", system="x"), node("b")], Identity("m1", UUID, "b1"), "", "b"),
    ],
)
def test_match(nodes: list[dict[str, Any]], host: Identity, wanted: str, expected: str) -> None:
    assert match(nodes, host, wanted) == expected


@pytest.mark.parametrize(
    ("nodes", "host", "wanted", "text", "candidates"),
    [
        ([node("a", "m2"), node("b", "m3")], Identity("m1", UUID, "b1"), "", "None of 2 Nodes has this host's ids", ["a", "b"]),
        ([], Identity("m1", UUID, "b1"), "", "None of 0 Nodes", []),
        ([node("a"), node("b")], Identity("m1", UUID, "b1"), "", "2 Nodes have this host's", ["a", "b"]),
        ([node("a"), node("b", "m2")], Identity("m1", UUID, "b1"), "b", "Node b was named, but this host .* is Node a", ["a"]),
        ([node("a")], Identity("m1", UUID, "b9"), "", "reports boot id b1; the host says b9", ["a"]),
        ([node("a", boot="b0", claimed_boot="b7")], Identity("m1", UUID, "b1"), "", "reports boot id b0", ["a"]),
        ([node("a", "m2")], Identity("m1", UUID, "b1"), "nowhere", "There is no Node nowhere", []),
        ([node("a", boot="")], Identity("m1", UUID, "b1"), "", "reports boot id", ["a"]),
        ([node("a")], Identity("", UUID, "b1"), "", "The host has no machine id", None),
    ],
)
def test_no_match(nodes: list[dict[str, Any]], host: Identity, wanted: str, text: str, candidates: list[str] | None) -> None:
    with pytest.raises(HygieneError, match=text) as caught:
        match(nodes, host, wanted)
    found = caught.value.facts.get("candidates")
    assert (None if found is None else [entry["name"] for entry in found]) == candidates


def member(name: str, *roles: str, ready: bool = True) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return {"metadata": {"name": name, "labels": {f"node-role.kubernetes.io/{role}": "" for role in roles}}, "status": status}


def static(component: str, on: str, ready: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "kube-system", "name": f"{component}-{on}", "labels": {"component": component}},
        "spec": {"nodeName": on}, "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


@pytest.mark.parametrize(
    ("nodes", "pods", "own", "text"),
    [
        ([member("n")], [], None, None),
        ([member("n")], [static("kube-proxy", "n")], None, None),
        ([member("n")], [static("etcd", "n")], None, "has an etcd member"),
        ([member("n"), member("o")], [static("etcd", "o")], None, None),
        ([member("n", "etcd")], [], None, "has an etcd member"),
        ([member("n"), member("o")], [static("kube-apiserver", "n")], None, "has the only API server"),
        ([member("n"), member("o")], [static("kube-apiserver", "n"), static("kube-apiserver", "o", ready=False)], None, "has the only API server"),
        ([member("n"), member("o")], [static("kube-apiserver", "n"), static("kube-apiserver", "o")], None, None),
        ([member("n", "control-plane"), member("o")], [], None, "has the only API server"),
        ([member("n", "control-plane"), member("o", "control-plane", ready=False)], [], None, "has the only API server"),
        ([member("n", "control-plane"), member("o", "control-plane")], [], None, None),
        ([member("n"), member("o", "control-plane")], [], None, None),
        ([member("n")], [static("runner", "n")], ("kube-system", "runner-n"), "This run is in pod kube-system/runner-n"),
        ([member("n"), member("o")], [static("runner", "o")], ("kube-system", "runner-o"), None),
    ],
)
def test_nodes_that_are_not_drained(nodes: list[dict[str, Any]], pods: list[dict[str, Any]], own: tuple[str, str] | None, text: str | None) -> None:
    if text is None:
        demand_drainable(nodes[0], nodes, pods, own)
        return
    with pytest.raises(HygieneError, match=text):
        demand_drainable(nodes[0], nodes, pods, own)
