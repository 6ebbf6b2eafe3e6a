# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes that are not drained at all, because the cluster or this very run would go down with them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import objects

CONTROL_PLANE_ROLES = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
ETCD_ROLE = "node-role.kubernetes.io/etcd"


def demand_drainable(node: objects.Object, nodes: Sequence[objects.Object], pods: Iterable[objects.Object], own_pod: tuple[str, str] | None) -> None:
    """Refuse the node of this run's own pod, of an etcd member, and of the only API server.

    :param nodes: all Nodes.
    :param pods: the pods on the node, and all pods labelled `component=kube-apiserver`.
    :param own_pod: (namespace, name) of the pod in which this run is, or None outside a cluster.
    :raises HygieneError: the node must not be drained.
    """
    name = objects.name(node)
    every = list(pods)
    here = [pod for pod in every if objects.spec(pod).get("nodeName") == name]
    if own_pod is not None and any((objects.namespace(pod), objects.name(pod)) == own_pod for pod in here):
        raise HygieneError(
            seen=f"This run is in pod {own_pod[0]}/{own_pod[1]} on node {name}",
            why="The drain would evict it half-way",
            remedy="Run it from outside the cluster, or on another node (instance group with a node selector)",
        )
    if ETCD_ROLE in objects.labels_of(node) or any(objects.labels_of(pod).get("component") == "etcd" for pod in here):
        raise HygieneError(
            seen=f"Node {name} has an etcd member",
            why="A reboot can cost the cluster its quorum",
            remedy="Maintain control plane nodes with the tool that built the cluster",
        )
    if _has_api_server(node, here) and not any(_serves(other, every) for other in nodes if objects.name(other) != name):
        raise HygieneError(
            seen=f"Node {name} has the only API server",
            why="Nothing could be asked or given back while it is down",
            remedy="Maintain control plane nodes with the tool that built the cluster",
        )


def _has_api_server(node: objects.Object, here: Iterable[objects.Object]) -> bool:
    if any(role in objects.labels_of(node) for role in CONTROL_PLANE_ROLES):
        return True
    return any(objects.labels_of(pod).get("component") == "kube-apiserver" for pod in here)


def _serves(node: objects.Object, pods: Iterable[objects.Object]) -> bool:
    """Whether another node answers for the API: its API server pod is ready, or (distributions without such pods) it is a ready control plane node."""
    servers = [pod for pod in pods if objects.labels_of(pod).get("component") == "kube-apiserver"]
    if servers:
        return any(objects.is_ready(pod) for pod in servers if objects.spec(pod).get("nodeName") == objects.name(node))
    return objects.is_ready(node) and any(role in objects.labels_of(node) for role in CONTROL_PLANE_ROLES)
