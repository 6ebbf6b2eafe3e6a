# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts that a JMESPath cannot express, computed once per node and given to the rules as `derived`.

JMESPath cannot compare a list's element with a value outside the list (the running kernel's row of the inventory), subtract lists
(what of the closure is not held), or tell a log without a line from a log that was not read. None always means unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .driver import driver_facts
from .shapes import count, mapping, rows, text, texts

_HELD_KERNEL = re.compile(r"linux-image-(?:unsigned-)?(\d[^:]*?)(?:-unsigned)?(?::[a-z0-9]+)?\Z")
_LOST_HOLD = re.compile(r"the recorded hold of (\S+) is gone")
_IMAGE_OS = re.compile(r"-([a-z]+)([0-9][0-9.]*)\Z")

_COLLECT = {
    "wanted_kernels": "host.packages.held (gpu_host_info) or target.kernel_release",
    "held_kernels": "host.packages.held (gpu_host_info)",
    "held_incomplete": "host.packages.held and host.kernel.installed (gpu_host_info)",
    "complete_kernels": "host.kernel.installed (gpu_host_info)",
    "fallbacks": "host.kernel.installed and host.kernel.running (gpu_host_info)",
    "protected_fallbacks": "host.kernel.installed, host.kernel.running and host.packages.held (gpu_host_info)",
    "closure_unheld": "host.packages.closure and host.packages.held (gpu_host_info)",
    "holds_lost": "host.packages.problems (gpu_host_info)",
    "out_of_tree_missing": "host.out_of_tree and host.boot.next.kernel_release (gpu_host_info)",
    "host_os": "host.os (gpu_host_info)",
    "label_os": "cluster.labels: NFD's system-os_release labels (gpu_cluster_info)",
    "label_kernel": "cluster.labels: NFD's kernel-version.full label (gpu_cluster_info)",
    "image_os": "cluster.driver_pods: the driver container's image (gpu_cluster_info)",
    "gpu_expected": "host.pci_gpus (gpu_host_info) or the label nvidia.com/gpu.present (gpu_cluster_info)",
    "gpu_allocatable": "cluster.allocatable (gpu_cluster_info)",
    "gpu_resources": "cluster.allocatable (gpu_cluster_info)",
    "fleet_majority": "cluster.fleet (gpu_cluster_info of the whole fleet)",
    "driver_per_os": "cluster.operator.policies (gpu_cluster_info)",
    "claimed": "cluster.claim (gpu_cluster_info)",
    "kept_cordoned": "cluster.keep_cordoned (gpu_cluster_info)",
    "images_missing": "images (driver_image_info)",
    "images_missing_for_kernel": "images (driver_image_info) and host.kernel.running (gpu_host_info)",
    "unread": "host.unknown and cluster.unknown",
    "driver": "cluster.driver_pods with the logs of their failing containers (gpu_cluster_info)",
}


def collect_hint(path: str) -> str:
    """Which evidence to collect so that a path is known."""
    root, _dot, rest = path.partition(".")
    if root != "derived":
        return path
    return _COLLECT.get(re.split(r"\W", rest, maxsplit=1)[0], path)


def derive(record: dict[str, Any]) -> dict[str, Any]:
    """The facts of one node; never raises on JSON of any shape."""
    host, cluster = mapping(record.get("host")), mapping(record.get("cluster"))
    kernel, packages, boot = mapping(host.get("kernel")), mapping(host.get("packages")), mapping(host.get("boot"))
    running = text(kernel.get("running"))
    held = texts(packages.get("held"))
    closure = texts(packages.get("closure"))
    complete = _complete(rows(kernel.get("installed")))
    held_kernels = None if held is None else sorted({found.group(1) for name in held if (found := _HELD_KERNEL.match(name))})
    fallbacks = None if complete is None or running is None else [release for release in complete if release != running]
    next_kernel = text(mapping(boot.get("next")).get("kernel_release"))
    labels = cluster.get("labels")
    driver = driver_facts(cluster.get("driver_pods"))
    missing = _missing_images(record.get("images"))
    return {
        "wanted_kernels": _wanted(text(mapping(record.get("target")).get("kernel_release")), running, held_kernels),
        "held_kernels": held_kernels,
        "held_incomplete": _both(held_kernels, complete, lambda one, other: [name for name in one if name not in other]),
        "complete_kernels": complete,
        "fallbacks": fallbacks,
        "protected_fallbacks": _both(fallbacks, held_kernels, lambda one, other: [name for name in one if name in other]),
        "closure_unheld": _both(closure, held, lambda one, other: [name for name in one if name not in other]),
        "holds_lost": _holds_lost(packages.get("problems")),
        "out_of_tree_missing": _out_of_tree_missing(host.get("out_of_tree"), next_kernel),
        "host_os": _os_tag(mapping(host.get("os")).get("id"), mapping(host.get("os")).get("version_id")),
        "label_os": _label_os(labels),
        "label_kernel": text(mapping(labels).get("feature.node.kubernetes.io/kernel-version.full")),
        "image_os": _image_os(driver.get("images")),
        "gpu_expected": _gpu_expected(host.get("pci_gpus"), labels),
        "gpu_allocatable": _gpus(cluster.get("allocatable")),
        "gpu_resources": _gpu_resources(cluster.get("allocatable")),
        "images_missing": missing,
        "images_missing_for_kernel": None if missing is None or running is None else [name for name in missing if f"-{running}-" in name],
        "fleet_majority": _majority(mapping(cluster.get("fleet")).get("gpu_nodes_by_os")),
        "driver_per_os": _driver_per_os(mapping(cluster.get("operator")).get("policies")),
        "claimed": None if "claim" not in cluster or cluster.get("claim_problem") else cluster["claim"] is not None,
        "kept_cordoned": None if "keep_cordoned" not in cluster else cluster["keep_cordoned"] is not None,
        "unread": _unread(record),
        "driver": driver,
    }


def _both(one: list[str] | None, other: list[str] | None, join: Callable[[list[str], list[str]], list[str]]) -> list[str] | None:
    return None if one is None or other is None else join(one, other)


def _complete(installed: list[dict[str, Any]] | None) -> list[str] | None:
    """One row that does not say which kernel it is, or whether it is complete, leaves the whole question open."""
    if installed is None or not all(text(row.get("kernel_release")) and isinstance(row.get("complete"), bool) for row in installed):
        return None
    return [row["kernel_release"] for row in installed if row["complete"]]


def _wanted(target: str | None, running: str | None, held: list[str] | None) -> list[str] | None:
    """The kernels that may boot next without surprise: the target, else the running one when it is held, else whatever is held."""
    if target is not None:
        return [target]
    return [running] if held is not None and running in held else held


def _os_tag(os_id: Any, version_id: Any) -> str | None:
    """As the operator writes it behind a driver image's tag: ubuntu24.04."""
    return f"{os_id}{version_id}" if text(os_id) and text(version_id) else None


def _label_os(labels: Any) -> str | None:
    prefix = "feature.node.kubernetes.io/system-os_release."
    return _os_tag(mapping(labels).get(f"{prefix}ID"), mapping(labels).get(f"{prefix}VERSION_ID"))


def _image_os(images: Any) -> dict[str, str] | None:
    """The operating system that a driver image's tag ends with: 580.126.20-ubuntu24.04. A digest has none."""
    for image in texts(images) or []:
        found = _IMAGE_OS.search(image)
        if found:
            return {"id": found.group(1), "version_id": found.group(2)}
    return None


def _gpu_expected(pci_gpus: Any, labels: Any) -> bool | None:
    if isinstance(pci_gpus, list) and pci_gpus:
        return True
    present = text(mapping(labels).get("nvidia.com/gpu.present"))
    if present is not None:
        return present == "true"
    return False if isinstance(pci_gpus, list) else None


def _gpus(allocatable: Any) -> int | None:
    """GPUs and MIG slices together; a node whose device plugin never registered has no such key, which means none."""
    if not isinstance(allocatable, dict):
        return None
    amounts = [count(amount) for amount in allocatable.values()]
    return None if None in amounts else sum(amount for amount in amounts if amount is not None)


def _gpu_resources(allocatable: Any) -> list[str] | None:
    """For reading: a key that is not there and a zero have different causes."""
    if not isinstance(allocatable, dict):
        return None
    return [f"{resource}: {amount}" for resource, amount in sorted(allocatable.items())] or ["nvidia.com/gpu is not there at all"]


def _majority(nodes_by_os: Any) -> str | None:
    """The operating system of most GPU nodes; of equals, the first by name."""
    sizes = {name: len(nodes) for name, nodes in mapping(nodes_by_os).items() if isinstance(nodes, list) and nodes}
    return min(sizes, key=lambda name: (-sizes[name], name)) if sizes else None


def _driver_per_os(policies: Any) -> bool | None:
    """Whether NVIDIADriver objects rule: they get one DaemonSet per operating system (gpu-operator, internal/state/nodepool.go)."""
    known = rows(policies)
    if known is None:
        return None
    cluster = [mapping(policy.get("driver")) for policy in known if policy.get("kind") == "ClusterPolicy"]
    return any(policy.get("kind") == "NVIDIADriver" for policy in known) and all(driver.get("useNvidiaDriverCRD") is True for driver in cluster)


def _holds_lost(problems: Any) -> list[str] | None:
    """Packages whose recorded hold is gone, as the packages part of gpu_host_info words it."""
    known = texts(problems)
    return None if known is None else [found.group(1) for problem in known if (found := _LOST_HOLD.fullmatch(problem))]


def _out_of_tree_missing(modules: Any, next_kernel: str | None) -> list[str] | None:
    known = rows(modules)
    if known is None or next_kernel is None:
        return None
    found = []
    for module in known:
        name, available = text(module.get("name")), texts(module.get("available_for"))
        if name is None or available is None:
            return None
        if next_kernel not in available:
            found.append(name)
    return found


def _missing_images(images: Any) -> list[str] | None:
    """References that the registry says it does not have; unknown as soon as one could not be looked up and none is missing."""
    answers = rows(images)
    if answers is None:
        return None
    missing = [reference for answer in answers if answer.get("state") == "missing" and (reference := text(answer.get("reference")))]
    if not missing and any(answer.get("state") != "exists" for answer in answers):
        return None
    return missing


def _unread(record: dict[str, Any]) -> list[str]:
    """Every part of the evidence that is not there, with the reason where one was given."""
    host, cluster, node = record.get("host"), record.get("cluster"), record.get("node")
    found = []
    if isinstance(host, dict):
        found += [f"host.{part}: {reason}" for part, reason in sorted(mapping(host.get("unknown")).items())]
        found += [f"host subset {subset}: not asked for" for subset in texts(host.get("not_checked")) or []]
        boot = mapping(host.get("boot"))
        found += [f"host.boot.loader: {'; '.join(texts(boot.get('problems')) or [])}"] if boot.get("loader") == "unknown" else []
    else:
        found.append("host: not gathered")
    if isinstance(cluster, dict):
        # The reasons of all nodes lie together; those about the logs of another node do not concern this one.
        reasons = sorted(mapping(cluster.get("unknown")).items())
        found += [f"cluster.{part}: {reason}" for part, reason in reasons if not part.startswith("nodes.") or part.startswith(f"nodes.{node}.")]
        found += [f"cluster.expected_images: {problem}" for problem in texts(cluster.get("expected_images_problems")) or []]
    else:
        found.append("cluster: not gathered")
    answers = rows(record.get("images"))
    if answers is None:
        return [*found, "images: not looked up"]
    return found + [f"image {answer.get('reference')}: {answer.get('reason')}" for answer in answers if answer.get("state") not in ("exists", "missing")]
