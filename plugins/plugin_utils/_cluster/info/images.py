# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which driver images the operator will ask for on a node. Pure.

Source: NVIDIA/gpu-operator controllers/object_controls.go `resolveDriverTag`, api/nvidia/v1 `imagePath`, api/nvidia/v1alpha1 `GetImagePath` and
`GetPrecompiledImagePath`, internal/state/nodepool.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

NFD = "feature.node.kubernetes.io/"
KERNEL_LABEL = f"{NFD}kernel-version.full"
OS_ID_LABEL = f"{NFD}system-os_release.ID"
OS_VERSION_LABEL = f"{NFD}system-os_release.VERSION_ID"
GPU_PRESENT = "nvidia.com/gpu.present"

# Variables of the operator's own container that stand in for an empty ClusterPolicy field (OLM bundles).
IMAGE_VARIABLES = {"driver": "DRIVER_IMAGE", "gds": "GDS_IMAGE", "gdrcopy": "GDRCOPY_IMAGE"}


@dataclass(frozen=True)
class Expected:
    """The images, as `{role, reference}` with role driver, gds or gdrcopy, and what could not be told."""

    images: tuple[dict[str, str], ...] = ()
    problems: tuple[str, ...] = ()


def expected_images(
    policies: Iterable[Mapping[str, Any]],
    daemonsets: Iterable[Mapping[str, Any]],
    labels: Mapping[str, str],
    kernel_release: str = "",
    variables: Mapping[str, str] | None = None,
) -> Expected:
    """The images that this node's labels make the operator ask for.

    :param policies: as `gpu_cluster.operator.policies`.
    :param daemonsets: as `gpu_cluster.operator.daemonsets`; asked only where there is no policy at all.
    :param labels: the node's labels; the operating system is NFD's, which a change of the kernel does not change.
    :param kernel_release: the kernel to ask for instead of the one that NFD reports.
    :param variables: environment of the operator's container.
    """
    known = list(policies)
    cluster = next((policy for policy in known if policy["kind"] == "ClusterPolicy"), None)
    drivers = [policy for policy in known if policy["kind"] == "NVIDIADriver"]
    if cluster is None and not drivers:
        return _of_daemonsets(daemonsets, labels)
    if cluster is not None and cluster["driver"].get("enabled") is False:
        return Expected()
    if cluster is not None and not cluster["driver"].get("useNvidiaDriverCRD"):
        return _of_policy(cluster, labels, kernel_release, variables or {})
    selected = [policy for policy in drivers if _selects(policy.get("node_selector"), labels)]
    if len(selected) != 1:
        return Expected(problems=(f"{len(selected)} NVIDIADriver objects select the node: {', '.join(policy['name'] for policy in selected) or 'none'}",))
    return _of_policy(selected[0], labels, kernel_release, {})


def os_tag(labels: Mapping[str, str]) -> str:
    """The operating system's part of an image tag, such as `ubuntu24.04`; empty when NFD has not labelled the node."""
    system, version = labels.get(OS_ID_LABEL, ""), labels.get(OS_VERSION_LABEL, "")
    if not system or not version:
        return ""
    major = version.partition(".")[0]
    major_only = system in ("rocky", "ol") or (system == "rhel" and major.isdigit() and int(major) >= 10)
    return f"{system}{major if major_only else version}"


def _of_policy(policy: Mapping[str, Any], labels: Mapping[str, str], kernel_release: str, variables: Mapping[str, str]) -> Expected:
    precompiled = bool(policy["driver"].get("usePrecompiled"))
    kernel = kernel_release or labels.get(KERNEL_LABEL, "")
    images: list[dict[str, str]] = []
    problems: list[str] = []
    for role in ("driver", "gds", "gdrcopy"):
        spec = policy.get(role) or {}
        if role != "driver" and not spec.get("enabled"):
            continue
        if role != "driver" and precompiled:
            problems.append(f"the operator refuses {role} together with usePrecompiled")
            continue
        base = _base(spec, variables.get(IMAGE_VARIABLES[role], ""))
        digest = "sha256:" in base
        if not base:
            problems.append(f"{policy['kind']} {policy['name']} names no {role} image")
        elif digest and precompiled:
            problems.append("the operator refuses an image digest together with usePrecompiled")
        elif digest:
            images.append({"role": role, "reference": base})
        elif not os_tag(labels):
            problems.append(f"the node has no labels {OS_ID_LABEL} and {OS_VERSION_LABEL} (node-feature-discovery)")
        elif precompiled and not kernel:
            problems.append(f"the node has no label {KERNEL_LABEL} (node-feature-discovery)")
        else:
            suffix = f"{kernel}-{os_tag(labels)}" if precompiled else os_tag(labels)
            images.append({"role": role, "reference": f"{base}-{suffix}"})
    return Expected(tuple(images), tuple(dict.fromkeys(problems)))


def _base(spec: Mapping[str, Any], variable: str) -> str:
    repository, image, version = (str(spec.get(key) or "") for key in ("repository", "image", "version"))
    if not repository and not version:
        return image or variable
    return f"{repository}/{image}{'@' if version.startswith('sha256:') else ':'}{version}"


def _of_daemonsets(daemonsets: Iterable[Mapping[str, Any]], labels: Mapping[str, str]) -> Expected:
    """Without the operator's objects the images are those that the driver DaemonSets name."""
    roles = {"nvidia-driver-ctr": "driver", "nvidia-fs-ctr": "gds", "nvidia-gdrcopy-ctr": "gdrcopy"}
    images = [
        {"role": roles[container], "reference": reference}
        for daemonset in daemonsets
        if all(labels.get(key) == value for key, value in daemonset["node_selector"].items())
        for container, reference in daemonset["images"].items()
        if container in roles
    ]
    return Expected(tuple(images))


def _selects(selector: Mapping[str, str] | None, labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in (selector or {GPU_PRESENT: "true"}).items())
