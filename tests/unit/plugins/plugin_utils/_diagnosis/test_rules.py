# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every rule: when it fires, what excludes it, and what missing evidence does to it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.evidence import packages_evidence
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.loader import Facts, decide
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import Finding
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.engine import diagnose
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.load import load_rules
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.procedure import select
from ansible_collections.gpunode.hygiene.tests.unit.plugins.plugin_utils._diagnosis.evidence import (
    HEADERS_LOG,
    NEW,
    OLD,
    changed,
    cluster,
    crashing,
    driver_pod,
    healthy,
    incident,
    kernel_row,
    node_object,
    policy,
)

ROOT = Path(__file__).parents[5]
RULES = load_rules()
PLAYBOOK = "recover_kernel_mismatch"


def findings(evidence: dict[str, Any]) -> dict[str, Finding]:
    return {finding.id: finding for finding in diagnose(evidence, RULES)}


def ids(evidence: dict[str, Any]) -> dict[str, str]:
    """Finding id to confidence."""
    return {name: finding.confidence for name, finding in findings(evidence).items()}


def with_log(log: str, previous: str = "", **state: Any) -> dict[str, Any]:
    """The incident with other logs and another state of the driver container."""
    nodes = [node_object(kernel=NEW, version_id="26.04", gpus="0")]
    return changed(incident(), "cluster", cluster(nodes=nodes, pods=[driver_pod([crashing(**state)])], log=log, previous_log=previous))


def with_nodes(**own: Any) -> dict[str, Any]:
    """The healthy node with another Node object."""
    return changed(healthy(), "cluster", cluster(nodes=[node_object(**own)]))


def cordoned(manager: str, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    node = node_object()
    node["spec"]["unschedulable"] = True
    node["metadata"]["annotations"] = annotations or {}
    node["metadata"]["managedFields"] = [{"manager": manager, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]
    return changed(healthy(), "cluster", cluster(nodes=[node]))


def fleet(policies: list[dict[str, Any]] | None = None, own: str = "26.04") -> dict[str, Any]:
    nodes = [node_object(version_id=own), node_object("gpu-2"), node_object("gpu-3")]
    evidence = changed(healthy(), "cluster", cluster(nodes=nodes, policies=policies))
    return changed(evidence, "host.os.version_id", own)


def unheld(name: str) -> list[str]:
    return [package for package in healthy()["host"]["packages"]["held"] if package != name]


def loader_problems(**facts: Any) -> list[str]:
    """What the host's own reader says about such a boot."""
    usual = Facts("x86_64", True, "", "/boot/vmlinuz", True, True, frozenset(), False, False)
    problems = decide(dataclasses.replace(usual, **facts))[1]
    assert problems
    return problems


def not_ready(status: str) -> dict[str, Any]:
    node = node_object()
    node["status"]["conditions"] = [{"type": "Ready", "status": status}]
    return changed(healthy(), "cluster", cluster(nodes=[node]))


def missing_image(reference: str, evidence: dict[str, Any]) -> dict[str, Any]:
    return changed(evidence, "images", [{"reference": reference, "state": "missing", "digest": None, "reason": "registry says MANIFEST_UNKNOWN"}])


CLAIM = (
    '{"run":"r","procedure":"p","controller":"c","pid":1,"started":"2026-10-01T12:00:00Z","renewed":"2026-10-01T12:00:00Z","cordoned":true,'
    '"labels":{},"annotations":{},"boot_id":""}'
)
NVIDIA_DRIVER = {"kind": "NVIDIADriver", "metadata": {"name": "d"}, "spec": {"repository": "nvcr.io/nvidia", "image": "driver", "version": "1"}}


def outside_kubernetes(cluster_part: bool | None, *supported: str) -> dict[str, Any]:
    return {"node": "gpu-1", "host": {"kernel": {"running": NEW}}, "cluster": None, "policy": {"cluster": cluster_part, "supported_kernels": list(supported)}}


FIRES = [
    pytest.param("kernel-not-supported", outside_kubernetes(False, "6.8.0-*"), id="patterns"),
    pytest.param("kernel-headers-unavailable", incident(), id="headers"),
    pytest.param("kernel-headers-unavailable", with_log("", HEADERS_LOG, running={}), id="headers: the next attempt has only begun"),
    pytest.param("kernel-headers-unavailable", with_log(HEADERS_LOG, restarts=0, terminated={"exitCode": 1}), id="headers: first attempt ended"),
    pytest.param("driver-image-missing", missing_image("nvcr.io/nvidia/driver:580.126.20-ubuntu26.04", healthy()), id="image"),
    pytest.param("gpu-capacity-zero", with_nodes(gpus="0"), id="capacity 0"),
    pytest.param("gpu-capacity-zero", with_nodes(gpus=None), id="capacity not there"),
    pytest.param("os-release-leapfrog", changed(healthy(), "host.os.version_id", "26.04"), id="leapfrog"),
    pytest.param("next-boot-kernel-mismatch", changed(healthy(), "host.boot.next", {"kernel_release": NEW, "via": "default"}), id="next boot"),
    pytest.param("next-boot-kernel-mismatch", changed(healthy(), "host.boot.next.kernel_release", "6.8.0-110-generic"), id="next boot: the fallback"),
    pytest.param("grub-default-unresolved", changed(healthy(), "host.boot.default.problems", ["no entry has this title"]), id="default"),
    pytest.param("grub-once-unsupported", changed(healthy(), "host.boot.once_supported", False), id="once"),
    pytest.param("pending-next-entry", changed(healthy(), "host.boot.next.via", "next_entry"), id="next_entry"),
    pytest.param("boot-loader-not-grub", changed(healthy(), "host.boot.loader", "systemd-boot"), id="loader"),
    pytest.param("kexec-bypasses-grub", changed(healthy(), "host.boot.next.via", "kexec"), id="kexec loaded"),
    pytest.param("kexec-bypasses-grub", changed(healthy(), "host.boot.problems", loader_problems(kexec_loaded=True)), id="kexec loaded, as the host says it"),
    pytest.param("kexec-bypasses-grub", changed(healthy(), "host.boot.problems", loader_problems(kexec_service=True)), id="kexec configured"),
    pytest.param(
        "boot-partition-full", changed(healthy(), "host.boot_space", {"free_bytes": 89_999_999, "needed_bytes": 90_000_000}), id="boot partition"
    ),
    pytest.param("out-of-tree-module-missing", changed(healthy(), "host.out_of_tree", [{"name": "lustre", "available_for": [NEW]}]), id="module"),
    pytest.param("kernel-not-pinned", changed(healthy(), "host.packages.held", ["linux-image-6.8.0-110-generic"]), id="not pinned"),
    pytest.param("hold-incomplete", changed(healthy(), "host.packages.held", unheld("linux-generic")), id="hold incomplete"),
    pytest.param("hold-vanished", changed(healthy(), "host.packages", packages_evidence([], OLD, True, ["linux-generic"])), id="hold vanished"),
    pytest.param(
        "pinned-kernel-incomplete",
        changed(healthy(), "host.kernel.installed", [kernel_row(OLD), kernel_row("6.8.0-110-generic", complete=False)]),
        id="pinned incomplete",
    ),
    pytest.param("no-fallback-kernel", changed(healthy(), "host.kernel.installed", [kernel_row(OLD), kernel_row(NEW, False)]), id="no fallback"),
    pytest.param("fallback-kernel-unprotected", changed(healthy(), "host.packages.held", unheld("linux-image-6.8.0-110-generic")), id="fallback"),
    pytest.param("nfd-labels-stale", changed(healthy(), "host.kernel.running", "6.8.0-110-generic"), id="label: kernel"),
    pytest.param("nfd-labels-stale", changed(healthy(), "host.os.version_id", "22.04"), id="label: release"),
    pytest.param("mixed-os-fleet", fleet(), id="mixed fleet"),
    pytest.param("cordon-orphaned", cordoned("gpunode-hygiene"), id="cordon"),
    pytest.param("node-unreachable", {"node": "gpu-1", "unreachable": "Connection timed out"}, id="ssh"),
    pytest.param("node-unreachable", not_ready("Unknown"), id="kubelet"),
    pytest.param("evidence-incomplete", changed(healthy(), "host.unknown", {"boot": "timed out"}), id="unknown part"),
    pytest.param("evidence-incomplete", changed(healthy(), "host.not_checked", ["boot"]), id="part not asked for"),
    pytest.param("evidence-incomplete", changed(healthy(), "host.boot.loader", "unknown"), id="loader unknown"),
    pytest.param("evidence-incomplete", changed(healthy(), "images", [{"reference": "r", "state": "unknown", "reason": "429"}]), id="image unknown"),
]
DOES_NOT_FIRE = [
    pytest.param("kernel-not-supported", outside_kubernetes(False, "6.8.0-*", NEW), id="patterns: one allows it"),
    pytest.param("kernel-not-supported", outside_kubernetes(False), id="patterns: none given"),
    pytest.param("kernel-not-supported", outside_kubernetes(True, "6.8.0-*"), id="patterns: the driver pod tells"),
    pytest.param("kernel-not-supported", outside_kubernetes(None, "6.8.0-*"), id="patterns: perhaps a node"),
    pytest.param("kernel-headers-unavailable", healthy(), id="headers: the driver is ready"),
    pytest.param("kernel-headers-unavailable", with_log("make: *** failed"), id="headers: another failure"),
    pytest.param(
        "kernel-headers-unavailable", with_log("Installing Linux kernel headers...\n", HEADERS_LOG, running={}), id="headers: the attempt under way installs"
    ),
    pytest.param("kernel-headers-unavailable", with_log("Installing Linux kernel headers...\n", restarts=0, running={}), id="headers: slow first install"),
    pytest.param("kernel-headers-unavailable", with_log(HEADERS_LOG, "ERROR: Failed to update package cache. "), id="headers: no mirror"),
    pytest.param("kernel-headers-unavailable", with_log(HEADERS_LOG, "modprobe: FATAL: Module nvidia-peermem not found in directory"), id="headers: peermem"),
    pytest.param("kernel-headers-unavailable", with_log(HEADERS_LOG + "..., performing userspace-only install"), id="headers: userspace only"),
    pytest.param(
        "kernel-headers-unavailable", with_log(HEADERS_LOG, "Could not unload NVIDIA driver kernel modules, driver is in use"), id="headers: in use"
    ),
    pytest.param("kernel-headers-unavailable", changed(incident(), "host.kernel.running", OLD), id="headers: log of an earlier boot"),
    pytest.param("driver-image-missing", changed(healthy(), "images", [{"reference": "r", "state": "unknown", "reason": "401"}]), id="image: cannot tell"),
    pytest.param("gpu-capacity-zero", changed(with_nodes(gpus="0"), "cluster.labels", {}) | {"host": {"pci_gpus": []}}, id="capacity: no GPUs"),
    pytest.param(
        "gpu-capacity-zero", changed(healthy(), "cluster.allocatable", {"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 14}), id="capacity: MIG slices"
    ),
    pytest.param("os-release-leapfrog", changed(healthy(), "host.os.version_id", "22.04"), id="leapfrog: older host"),
    pytest.param("os-release-leapfrog", changed(healthy(), "host.os.id", "debian"), id="leapfrog: another distribution"),
    pytest.param(
        "next-boot-kernel-mismatch",
        changed(healthy(), "host.boot.next.kernel_release", NEW) | {"target": {"kernel_release": NEW}},
        id="next boot: the target",
    ),
    pytest.param(
        "next-boot-kernel-mismatch",
        changed(changed(incident(), "host.packages.held", [f"linux-image-{OLD}"]), "host.boot.next.kernel_release", OLD),
        id="next boot: the held one instead of the running one",
    ),
    pytest.param("boot-loader-not-grub", changed(healthy(), "host.boot.loader", "unknown"), id="loader: unknown is not another"),
    pytest.param("kexec-bypasses-grub", changed(healthy(), "host.boot.problems", loader_problems(boot_image=None)), id="kexec: only one of the guesses"),
    pytest.param("grub-once-unsupported", changed(changed(healthy(), "host.boot.loader", "extlinux"), "host.boot.once_supported", False), id="once: no GRUB"),
    pytest.param(
        "grub-default-unresolved",
        changed(changed(healthy(), "host.boot.loader", "extlinux"), "host.boot.default.problems", ["no grub.cfg"]),
        id="default: no GRUB",
    ),
    pytest.param("boot-partition-full", changed(healthy(), "host.boot_space.free_bytes", 90_000_000), id="boot partition: just enough"),
    pytest.param("hold-incomplete", changed(healthy(), "host.packages.held", []), id="hold incomplete: nothing is held"),
    pytest.param("no-fallback-kernel", healthy(), id="fallback there"),
    pytest.param("mixed-os-fleet", fleet(own="24.04"), id="mixed fleet: all alike"),
    pytest.param("mixed-os-fleet", fleet([NVIDIA_DRIVER]), id="mixed fleet: NVIDIADriver objects alone"),
    pytest.param("mixed-os-fleet", fleet([policy(useNvidiaDriverCRD=True), NVIDIA_DRIVER]), id="mixed fleet: ClusterPolicy leaves it to them"),
    pytest.param("cordon-orphaned", cordoned("kubectl-cordon"), id="cordon: somebody else's"),
    pytest.param("cordon-orphaned", cordoned("gpunode-hygiene", {"gpunode.hygiene/maintenance": CLAIM}), id="cordon: claimed"),
    pytest.param("cordon-orphaned", cordoned("gpunode-hygiene", {"gpunode.hygiene/maintenance": "{"}), id="cordon: the claim cannot be read"),
    pytest.param("cordon-orphaned", cordoned("gpunode-hygiene", {"gpunode.hygiene/keep-cordoned": "RMA"}), id="cordon: kept on purpose"),
    pytest.param("node-unreachable", not_ready("False"), id="kubelet answers"),
]


@pytest.mark.parametrize(("finding", "evidence"), FIRES)
def test_fires(finding: str, evidence: dict[str, Any]) -> None:
    assert ids(evidence).get(finding) == "certain"


@pytest.mark.parametrize(("finding", "evidence"), DOES_NOT_FIRE)
def test_does_not_fire(finding: str, evidence: dict[str, Any]) -> None:
    assert finding not in ids(evidence)


def test_every_rule_has_a_case_in_which_it_fires() -> None:
    assert {str(case.values[0]) for case in FIRES} == {rule.id for rule in RULES}


def test_a_healthy_node_has_no_findings() -> None:
    assert ids(healthy()) == {}


def test_the_incident() -> None:
    found = findings(incident())
    assert {name: finding.confidence for name, finding in found.items()} == {
        "gpu-capacity-zero": "certain",
        "kernel-headers-unavailable": "certain",
        "kernel-not-pinned": "certain",
        "os-release-leapfrog": "certain",
        "fallback-kernel-unprotected": "certain",
    }
    headers = found["kernel-headers-unavailable"]
    assert headers.summary == f"The driver container finds no headers for kernel {NEW} in its archive and cannot build the driver (76 restarts)."
    assert [(item.source, item.text) for item in headers.evidence] == [
        ("derived.driver.failing", "true"),
        ("derived.driver.log", "Could not resolve Linux kernel version"),
    ]
    assert {item["id"] for item in headers.considered} == {
        "driver-install-slow", "package-mirror-unreachable", "peermem-sidecar-wedge", "userspace-only-install", "driver-in-use", "earlier-boot-log",
    }
    assert {item["id"]: item["excluded_by"] for item in headers.considered}["earlier-boot-log"] == "the log names the kernel that is running now"
    assert [finding["id"] for finding in select([finding.as_dict() for finding in found.values()], PLAYBOOK)] == ["kernel-headers-unavailable"]


def test_an_unpinned_kernel_that_is_not_supported_is_not_to_be_pinned() -> None:
    assert findings(incident())["kernel-not-pinned"].remedy.kind == "manual"
    supported = changed(healthy(), "host.packages.held", [])
    assert findings(supported)["kernel-not-pinned"].remedy.name == f"ansible -b -m gpunode.hygiene.kernel_pin -a 'kernel_release={OLD}' HOST"


@pytest.mark.parametrize(
    ("reference", "kind"),
    [(f"nvcr.io/nvidia/driver:580-{NEW}-ubuntu26.04", "playbook"), ("nvcr.io/nvidia/driver:580.126.20-ubuntu26.04", "manual")],
    ids=["precompiled", "by operating system"],
)
def test_only_a_missing_image_for_the_kernel_is_cured_by_another_kernel(reference: str, kind: str) -> None:
    remedy = findings(missing_image(reference, incident()))["driver-image-missing"].remedy
    assert remedy.kind == kind
    assert "ubuntu26.04" in remedy.name or remedy.name == f"gpunode.hygiene.{PLAYBOOK}"


def test_a_missing_image_does_not_send_a_working_node_through_the_playbook() -> None:
    evidence = missing_image(f"nvcr.io/nvidia/driver:580-{OLD}-ubuntu24.04", healthy())
    assert findings(evidence)["driver-image-missing"].remedy.kind == "manual"


def without_logs() -> dict[str, Any]:
    evidence = incident()
    for container in evidence["cluster"]["driver_pods"][0]["containers"]:
        container |= {"log": None, "previous_log": None}
    return evidence


@pytest.mark.parametrize(
    ("finding", "evidence", "missing"),
    [
        ("kernel-headers-unavailable", without_logs(), "cluster.driver_pods with the logs of their failing containers (gpu_cluster_info)"),
        ("kernel-headers-unavailable", changed(incident(), "host", None), "host.kernel.running"),
        ("next-boot-kernel-mismatch", changed(changed(healthy(), "host.boot.next.kernel_release", NEW), "host.packages", None),
         "host.packages.held (gpu_host_info) or target.kernel_release"),
        ("mixed-os-fleet", changed(fleet(), "cluster.operator", None), "cluster.operator.policies (gpu_cluster_info)"),
    ],
)  # fmt: skip
def test_missing_evidence_makes_a_finding_possible_and_says_what_to_collect(finding: str, evidence: dict[str, Any], missing: str) -> None:
    found = findings(evidence)[finding]
    assert found.confidence == "possible"
    assert missing in found.missing
    assert "evidence-incomplete" in findings(without_logs() | {"host": None})


def test_a_possible_finding_starts_no_playbook() -> None:
    found = [finding.as_dict() for finding in diagnose(without_logs(), RULES)]
    assert select(found, PLAYBOOK) == []
    assert [finding["id"] for finding in select(found, f"gpunode.hygiene.{PLAYBOOK}", "possible")] == ["kernel-headers-unavailable"]


def test_an_image_that_was_never_pulled_has_no_log_and_is_not_taken_for_missing_headers() -> None:
    evidence = with_log("", restarts=0, waiting={"reason": "ImagePullBackOff"})
    assert "kernel-headers-unavailable" not in ids(evidence)


def test_the_unread_logs_of_other_nodes_do_not_concern_this_one() -> None:
    evidence = changed(healthy(), "cluster.unknown", {"nodes.gpu-2.driver_pods.p.c.log": "403", "Event": "403"})
    assert [item.text for item in findings(evidence)["evidence-incomplete"].evidence] == ["cluster.Event: 403"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_finding_has_its_page(rule: Any) -> None:
    page = ROOT / rule.docs
    assert page.read_text(encoding="utf-8").startswith(f"# {rule.id}\n\n")


def test_no_page_is_left_over() -> None:
    assert {page.stem for page in (ROOT / "docs/findings").glob("*.md")} == {rule.id for rule in RULES}
