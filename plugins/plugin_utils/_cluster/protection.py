# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps autoscalers and node repair away while a node is under maintenance. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import objects

# Cluster Autoscaler FAQ; Karpenter "node-level controls".
ANNOTATIONS = {
    "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
    "karpenter.sh/do-not-disrupt": "true",
}
# medik8s NodeHealthCheck skips nodes with the first; NVSentinel's quarantine rules skip nodes with the second.
LABELS = {
    "remediation.medik8s.io/exclude-from-remediation": "true",
    "k8saas.nvidia.com/ManagedByNVSentinel": "false",
}

# Node repair that acts on the machine behind the Node and does not look at the Node's own labels.
MANAGED_BY = {
    "cluster.x-k8s.io/machine": "Cluster API (a MachineHealthCheck skips Machines annotated cluster.x-k8s.io/skip-remediation)",
    "machine.openshift.io/machine": "the OpenShift Machine API (pause its MachineHealthCheck)",
    "cloud.google.com/gke-nodepool": "GKE (turn the pool's auto-repair off)",
    "kubernetes.azure.com/cluster": "AKS (its auto-repair reboots nodes that are not Ready)",
    "eks.amazonaws.com/nodegroup": "EKS (turn the node group's auto-repair off)",
}


def warnings(node: objects.Object) -> list[str]:
    """One sentence for each manager that may reboot or replace the node meanwhile and cannot be told off on the Node."""
    known = {**objects.labels_of(node), **objects.annotations_of(node)}
    return [
        f"Node {objects.name(node)} belongs to {manager}; it may be rebooted or replaced while it is not Ready."
        for marker, manager in MANAGED_BY.items()
        if marker in known
    ]


def taken(found: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str | None]:
    """The values that setting `wanted` overwrites: {key: value before, or None}; keys that already have the wanted value are not taken."""
    return {key: found.get(key) for key, value in wanted.items() if found.get(key) != value}


def restored(found: Mapping[str, str], before: Mapping[str, str | None], wanted: Mapping[str, str]) -> dict[str, str | None]:
    """What to write to give `before` back; a key that somebody changed since we set it to `wanted` is left alone."""
    return {key: value for key, value in before.items() if key in wanted and found.get(key) == wanted[key]}
