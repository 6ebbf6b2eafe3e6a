# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of `gpu_cluster_info`: one call per kind of object for the whole fleet, then everything is joined in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import objects
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info import entries, images
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info.source import Source, Unread

PARTS = ("nodes", "driver_pods", "operator", "pending_pods")
PARALLEL = 8


@dataclass(frozen=True)
class Want:
    """What to read.

    :ivar parts: of `PARTS`.
    :ivar nodes: names; empty for all.
    :ivar logs_of: nodes whose failing driver pods' logs are read; None for all.
    :ivar log_lines: how many lines of each log.
    """

    parts: Collection[str] = PARTS
    nodes: tuple[str, ...] = ()
    logs_of: tuple[str, ...] | None = None
    log_lines: int = 40


@dataclass(frozen=True)
class Gathered:
    """The evidence, and the Node objects it came from."""

    evidence: dict[str, Any]
    nodes: list[dict[str, Any]]


def gather(source: Source, want: Want) -> Gathered:
    """Read the cluster. A part that cannot be read is None, with the reason in `unknown`.

    :raises HygieneError: the Nodes cannot be read, or one that was asked for does not exist.
    """
    unknown: dict[str, str] = {}
    nodes = _nodes(source, want.nodes)
    operator = _operator(source, unknown) if "operator" in want.parts else None
    pods = _driver_pods(source, want, unknown) if "driver_pods" in want.parts else None
    result: dict[str, dict[str, Any]] = {}
    for node in nodes:
        entry = entries.node_entry(node)
        entry["driver_pods"] = None if pods is None else [pod for pod in pods if pod["node"] == entry["name"]]
        if operator is not None:
            entry |= _expected(operator, entry["labels"])
        result[entry["name"]] = entry
    evidence = {
        "nodes": result,
        "operator": operator,
        "pending_gpu_pods": _pending(source, unknown) if "pending_pods" in want.parts else None,
        "unknown": unknown,
    }
    for part, key in (("operator", "operator"), ("driver_pods", "driver_pods"), ("pending_pods", "pending_gpu_pods")):
        if part not in want.parts:
            unknown[key] = "not asked for (option parts)"
    return Gathered(evidence, nodes)


def expected_on(evidence: Mapping[str, Any], node: str, kernel_release: str = "") -> images.Expected:
    """The images that the operator will ask for on a node that runs `kernel_release`, from what `gather` returned.

    :raises HygieneError: the evidence does not know the node or the operator.
    """
    entry = (evidence.get("nodes") or {}).get(node)
    operator = evidence.get("operator")
    if entry is None or operator is None:
        reason = (evidence.get("unknown") or {}).get("operator", "it is missing")
        raise HygieneError(
            seen=f"The evidence has no {'Node ' + node if entry is None else 'operator: ' + reason}",
            why="Without it the images that the operator will ask for cannot be told",
            remedy="Gather it with gpu_cluster_info, parts nodes and operator",
        )
    return images.expected_images(operator["policies"] or [], operator["daemonsets"] or [], entry["labels"], kernel_release, operator["image_variables"])


def node_slice(evidence: Mapping[str, Any], node: str) -> dict[str, Any]:
    """What concerns one node: its own entry, and beside it what the fleet shares.

    :raises HygieneError: there is no such node in the evidence.
    """
    nodes = evidence.get("nodes") or {}
    if node not in nodes:
        raise HygieneError(
            seen=f"The evidence has no Node {node}", why="Its slice cannot be cut", remedy=f"Use one of: {', '.join(sorted(nodes)[:20]) or 'none'}",
        )
    operating_systems: dict[str, list[str]] = {}
    for name, entry in nodes.items():
        tag = images.os_tag(entry["labels"])
        if tag and entry["labels"].get(images.GPU_PRESENT) == "true":
            operating_systems.setdefault(tag, []).append(name)
    return {
        **nodes[node],
        "operator": evidence.get("operator"),
        "pending_gpu_pods": evidence.get("pending_gpu_pods"),
        "fleet": {"gpu_nodes_by_os": operating_systems},
        "unknown": dict(evidence.get("unknown") or {}),
    }


def _nodes(source: Source, names: tuple[str, ...]) -> list[dict[str, Any]]:
    try:
        found = source.list("Node", fields={"metadata.name": names[0]} if len(names) == 1 else None)
    except Unread as error:
        raise HygieneError(
            seen=f"The Nodes cannot be read: {error}",
            why="Everything else is told by node",
            remedy="Grant `list` on nodes, or add the output of `kubectl get nodes -o yaml` to the folder",
        ) from error
    missing = sorted(set(names) - {objects.name(node) for node in found})
    if missing:
        raise HygieneError(
            seen=f"There is no Node {', '.join(missing)}",
            why="It was asked for by name",
            remedy="Correct the name, or choose the cluster with `kubeconfig` or `context`",
        )
    return [node for node in found if not names or objects.name(node) in names]


def _operator(source: Source, unknown: dict[str, str]) -> dict[str, Any]:
    policies = _list(source, "ClusterPolicy", unknown)
    drivers = _list(source, "NVIDIADriver", unknown)
    daemonsets = _list(source, "DaemonSet", unknown)
    pods = _list(source, "Pod", unknown, "operator_pods", entries.OPERATOR_LABELS)
    image = next((reference for pod in pods or [] for reference in entries.images_of(objects.spec(pod)).values()), None)
    return {
        "namespace": next((objects.namespace(pod) for pod in pods or []), None),
        "image": image,
        "version": image.rpartition(":")[2] if image and "@" not in image and ":" in image.rpartition("/")[2] else None,
        "policies": None if policies is None or drivers is None else [entries.policy_entry(item) for item in [*policies, *drivers]],
        "daemonsets": None if daemonsets is None else [entries.daemonset_entry(item) for item in daemonsets if entries.is_driver_daemonset(item)],
        "image_variables": entries.operator_variables(pods or [], images.IMAGE_VARIABLES.values()),
    }


def _expected(operator: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    if operator["policies"] is None:
        return {"expected_images": [], "expected_images_problems": ["ClusterPolicy and NVIDIADriver objects could not be read"]}
    expected = images.expected_images(operator["policies"], operator["daemonsets"] or [], labels, variables=operator["image_variables"])
    return {"expected_images": list(expected.images), "expected_images_problems": list(expected.problems)}


def _driver_pods(source: Source, want: Want, unknown: dict[str, str]) -> list[dict[str, Any]] | None:
    fields = {"spec.nodeName": want.nodes[0]} if len(want.nodes) == 1 else None
    found = _list(source, "Pod", unknown, "driver_pods", entries.DRIVER_LABELS, fields)
    if found == []:
        found = _list(source, "Pod", unknown, "driver_pods", entries.OLD_DRIVER_LABELS, fields)
    if found is None:
        return None
    chosen = [(pod, entries.driver_pod_entry(pod)) for pod in found if not want.nodes or objects.spec(pod).get("nodeName") in want.nodes]
    troubled = [pair for pair in chosen if not pair[1]["ready"] and (want.logs_of is None or pair[1]["node"] in want.logs_of)]
    if troubled:
        _add_events(source, [entry for _pod, entry in troubled], unknown)
        _add_logs(source, troubled, want.log_lines, unknown)
    return [entry for _pod, entry in chosen]


def _add_events(source: Source, pods: list[dict[str, Any]], unknown: dict[str, str]) -> None:
    events = _list(source, "Event", unknown, fields={"involvedObject.kind": "Pod"})
    by_uid: dict[str, list[dict[str, Any]]] = {}
    for event in events or []:
        by_uid.setdefault(str((event.get("involvedObject") or {}).get("uid", "")), []).append(entries.event_entry(event))
    for pod in pods:
        pod["events"] = None if events is None else by_uid.get(pod["uid"], [])


def _add_logs(source: Source, pods: list[tuple[dict[str, Any], dict[str, Any]]], lines: int, unknown: dict[str, str]) -> None:
    wanted = [
        (pod, entry, container, previous)
        for pod, entry in pods
        for container in entry["containers"]
        if entries.is_failing(container)
        for previous in (False, True)
        if not previous or container["restart_count"]
    ]

    def read(item: tuple[dict[str, Any], dict[str, Any], dict[str, Any], bool]) -> None:
        pod, entry, container, previous = item
        key = "previous_log" if previous else "log"
        try:
            container[key] = source.log(pod, container["name"], previous, lines)
        except Unread as error:
            unknown[f"nodes.{entry['node']}.driver_pods.{entry['name']}.{container['name']}.{key}"] = str(error)

    with ThreadPoolExecutor(PARALLEL) as pool:
        list(pool.map(read, wanted))


def _pending(source: Source, unknown: dict[str, str]) -> list[dict[str, Any]] | None:
    pods = _list(source, "Pod", unknown, "pending_gpu_pods", fields={"status.phase": "Pending"})
    return None if pods is None else [entry for entry in map(entries.pending_entry, pods) if entry is not None]


def _list(
    source: Source,
    kind: str,
    unknown: dict[str, str],
    part: str = "",
    labels: Mapping[str, str] | None = None,
    fields: Mapping[str, str] | None = None,
) -> list[dict[str, Any]] | None:
    try:
        return source.list(kind, labels, fields)
    except Unread as error:
        unknown[part or kind] = str(error)
        return None
