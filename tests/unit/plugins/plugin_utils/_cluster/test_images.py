# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The images that the operator will ask for (NVIDIA/gpu-operator resolveDriverTag and GetImagePath)."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info.gather import expected_on, node_slice
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info.images import expected_images, os_tag

NFD = "feature.node.kubernetes.io"
DIGEST = "sha256:" + "0" * 64


def labels(system: str = "ubuntu", version: str = "24.04", kernel: str = "6.8.0-117-generic", **more: str) -> dict[str, str]:
    return {
        f"{NFD}/system-os_release.ID": system, f"{NFD}/system-os_release.VERSION_ID": version, f"{NFD}/kernel-version.full": kernel,
        "nvidia.com/gpu.present": "true", **more,
    }


def policy(kind: str = "ClusterPolicy", name: str = "p", **driver: Any) -> dict[str, Any]:
    parts = {role: driver.pop(role, {}) for role in ("gds", "gdrcopy")}
    selector = driver.pop("node_selector", None)
    spec = {"repository": "nvcr.io/nvidia", "image": "driver", "version": "580.126.20", **driver}
    return {"kind": kind, "name": name, "driver": spec, "node_selector": selector, **parts}


SIDE = {"enabled": True, "repository": "nvcr.io/nvidia/cloud-native", "image": "gdrdrv", "version": "v2.5.2"}


@pytest.mark.parametrize(
    ("policies", "node_labels", "kernel", "references", "problems"),
    [
        ([policy()], labels(), "", ["nvcr.io/nvidia/driver:580.126.20-ubuntu24.04"], []),
        # The kernel does not change the operating system's part.
        ([policy()], labels(version="26.04", kernel="7.0.0-15-generic"), "6.8.0-117-generic", ["nvcr.io/nvidia/driver:580.126.20-ubuntu26.04"], []),
        ([policy(version=DIGEST)], labels(version="26.04"), "", [f"nvcr.io/nvidia/driver@{DIGEST}"], []),
        ([policy(version=DIGEST)], {}, "", [f"nvcr.io/nvidia/driver@{DIGEST}"], []),
        ([policy(repository="", version="", image=f"reg.local/driver@{DIGEST}")], labels(), "", [f"reg.local/driver@{DIGEST}"], []),
        ([policy(repository="", version="", image="")], labels(), "", ["from.env/driver:1-ubuntu24.04"], []),
        (
            [policy(version="580", usePrecompiled=True)], labels(kernel="7.0.0-15-generic"), "6.8.0-117-generic",
            ["nvcr.io/nvidia/driver:580-6.8.0-117-generic-ubuntu24.04"], [],
        ),
        ([policy(version="580", usePrecompiled=True)], labels(), "", ["nvcr.io/nvidia/driver:580-6.8.0-117-generic-ubuntu24.04"], []),
        ([policy(version=DIGEST, usePrecompiled=True)], labels(), "", [], ["the operator refuses an image digest together with usePrecompiled"]),
        (
            [policy(version="580", usePrecompiled=True, gdrcopy=SIDE)], labels(), "",
            ["nvcr.io/nvidia/driver:580-6.8.0-117-generic-ubuntu24.04"], ["the operator refuses gdrcopy together with usePrecompiled"],
        ),
        (
            [policy(gdrcopy=SIDE, gds={**SIDE, "image": "nvidia-fs", "version": "2.27.3"})], labels(), "",
            [
                "nvcr.io/nvidia/driver:580.126.20-ubuntu24.04", "nvcr.io/nvidia/cloud-native/nvidia-fs:2.27.3-ubuntu24.04",
                "nvcr.io/nvidia/cloud-native/gdrdrv:v2.5.2-ubuntu24.04",
            ], [],
        ),
        ([policy(gdrcopy={**SIDE, "enabled": False})], labels(), "", ["nvcr.io/nvidia/driver:580.126.20-ubuntu24.04"], []),
        ([policy(enabled=False)], labels(), "", [], []),
        (
            [policy()], {}, "", [],
            [f"the node has no labels {NFD}/system-os_release.ID and {NFD}/system-os_release.VERSION_ID (node-feature-discovery)"],
        ),
        ([policy("NVIDIADriver", version="595.1")], labels(), "", ["nvcr.io/nvidia/driver:595.1-ubuntu24.04"], []),
        # The operator's environment stands in for a ClusterPolicy alone.
        ([policy("NVIDIADriver", name="d", repository="", version="", image="")], labels(), "", [], ["NVIDIADriver d names no driver image"]),
        ([policy(useNvidiaDriverCRD=True), policy("NVIDIADriver", version="595.1")], labels(), "", ["nvcr.io/nvidia/driver:595.1-ubuntu24.04"], []),
        ([policy(), policy("NVIDIADriver", version="595.1")], labels(), "", ["nvcr.io/nvidia/driver:580.126.20-ubuntu24.04"], []),
        (
            [
                policy("NVIDIADriver", name="a", version="1", node_selector={"pool": "a"}),
                policy("NVIDIADriver", name="b", version="2", node_selector={"pool": "b"}),
            ],
            labels(pool="b"), "", ["nvcr.io/nvidia/driver:2-ubuntu24.04"], [],
        ),
        ([policy("NVIDIADriver", node_selector={"pool": "a"})], labels(), "", [], ["0 NVIDIADriver objects select the node: none"]),
        ([policy("NVIDIADriver", name="a"), policy("NVIDIADriver", name="b")], labels(), "", [], ["2 NVIDIADriver objects select the node: a, b"]),
    ],
)
def test_expected_images(policies: list[dict[str, Any]], node_labels: dict[str, str], kernel: str, references: list[str], problems: list[str]) -> None:
    expected = expected_images(policies, [], node_labels, kernel, {"DRIVER_IMAGE": "from.env/driver:1"})
    assert [image["reference"] for image in expected.images] == references
    assert list(expected.problems) == problems


def test_without_policies_the_daemonsets_say_it() -> None:
    containers = {"k8s-driver-manager": "m:1", "nvidia-driver-ctr": "own/driver:1", "nvidia-gdrcopy-ctr": "own/gdr:1"}
    daemonset = {"node_selector": {"gpu": "yes"}, "images": containers}
    assert expected_images([], [daemonset], {"gpu": "yes"}).images == (
        {"role": "driver", "reference": "own/driver:1"}, {"role": "gdrcopy", "reference": "own/gdr:1"},
    )
    assert expected_images([], [daemonset], {}).images == ()


@pytest.mark.parametrize(
    ("system", "version", "tag"),
    [
        ("ubuntu", "24.04", "ubuntu24.04"), ("debian", "12", "debian12"), ("rocky", "9.4", "rocky9"), ("rhel", "9.4", "rhel9.4"), ("rhel", "10.1", "rhel10"),
        ("ol", "8.9", "ol8"), ("", "12", ""), ("ubuntu", "", ""),
    ],
)
def test_os_tag(system: str, version: str, tag: str) -> None:
    assert os_tag(labels(system, version)) == tag


def evidence() -> dict[str, Any]:
    return {
        "nodes": {"a": {"name": "a", "labels": labels()}, "b": {"name": "b", "labels": labels(version="26.04")}, "cpu": {"name": "cpu", "labels": {}}},
        "operator": {"policies": [policy(version="580", usePrecompiled=True)], "daemonsets": [], "image_variables": {}},
        "pending_gpu_pods": [],
        "unknown": {},
    }


def test_the_evidence_answers_for_another_kernel() -> None:
    assert expected_on(evidence(), "b", "7.0.0-1-generic").images[0]["reference"] == "nvcr.io/nvidia/driver:580-7.0.0-1-generic-ubuntu26.04"


def test_evidence_without_the_operator_or_the_node_is_no_answer() -> None:
    with pytest.raises(HygieneError, match="no Node c"):
        expected_on(evidence(), "c")
    with pytest.raises(HygieneError, match="operator: 403"):
        expected_on({**evidence(), "operator": None, "unknown": {"operator": "403"}}, "a")


def test_a_slice_has_the_node_and_what_the_fleet_shares() -> None:
    cut = node_slice(evidence(), "b")
    assert (cut["name"], cut["fleet"]) == ("b", {"gpu_nodes_by_os": {"ubuntu24.04": ["a"], "ubuntu26.04": ["b"]}})
    with pytest.raises(HygieneError, match="Use one of: a, b, cpu"):
        node_slice(evidence(), "c")
