# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading API objects as plain dicts: pure accessors, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

Object = Mapping[str, Any]


def metadata(item: Object) -> Mapping[str, Any]:
    """`metadata`, or an empty mapping."""
    return item.get("metadata") or {}


def name(item: Object) -> str:
    """`metadata.name`."""
    return str(metadata(item).get("name", ""))


def namespace(item: Object) -> str:
    """`metadata.namespace`; empty for cluster-scoped objects."""
    return str(metadata(item).get("namespace", ""))


def uid(item: Object) -> str:
    """`metadata.uid`."""
    return str(metadata(item).get("uid", ""))


def path(item: Object) -> str:
    """`namespace/name`."""
    return f"{namespace(item)}/{name(item)}"


def labels_of(item: Object) -> dict[str, str]:
    """`metadata.labels`, never None."""
    return dict(metadata(item).get("labels") or {})


def annotations_of(item: Object) -> dict[str, str]:
    """`metadata.annotations`, never None."""
    return dict(metadata(item).get("annotations") or {})


def spec(item: Object) -> Mapping[str, Any]:
    """`spec`, or an empty mapping."""
    return item.get("spec") or {}


def status(item: Object) -> Mapping[str, Any]:
    """`status`, or an empty mapping."""
    return item.get("status") or {}


def controller(item: Object) -> Mapping[str, Any] | None:
    """The owner reference with `controller: true` (metav1.GetControllerOf); other owners do not manage the object."""
    for reference in metadata(item).get("ownerReferences") or []:
        if reference.get("controller"):
            return dict(reference)
    return None


def condition(item: Object, kind: str) -> Mapping[str, Any]:
    """The condition of this type, or an empty mapping."""
    for entry in status(item).get("conditions") or []:
        if entry.get("type") == kind:
            return dict(entry)
    return {}


def is_ready(item: Object) -> bool:
    """Whether the condition Ready is True (Nodes and Pods)."""
    return condition(item, "Ready").get("status") == "True"


def is_unschedulable(node: Object) -> bool:
    """Whether the node is cordoned."""
    return bool(spec(node).get("unschedulable"))


def node_info(node: Object, field: str) -> str:
    """A field of `status.nodeInfo` such as `bootID`; empty when the kubelet never reported."""
    return str((status(node).get("nodeInfo") or {}).get(field) or "")


def cordon_owner(node: Object) -> str | None:
    """Who set `spec.unschedulable`: the field manager, `unknown` when managedFields do not say, None when the node is not cordoned."""
    if not is_unschedulable(node):
        return None
    owners = [
        str(entry.get("manager", ""))
        for entry in metadata(node).get("managedFields") or []
        if "f:unschedulable" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]
    return ", ".join(sorted(set(owners))) or "unknown"


def requests(pod: Object, prefixes: Iterable[str]) -> dict[str, int]:
    """Extended resources with one of these name prefixes that the pod's containers and init containers ask for: the largest need at one time."""
    wanted = tuple(prefixes)
    running: dict[str, int] = {}
    for container in spec(pod).get("containers") or []:
        for resource, amount in _asked(container, wanted).items():
            running[resource] = running.get(resource, 0) + amount
    for container in spec(pod).get("initContainers") or []:
        for resource, amount in _asked(container, wanted).items():
            running[resource] = max(running.get(resource, 0), amount)
    return running


def _asked(container: Mapping[str, Any], prefixes: tuple[str, ...]) -> dict[str, int]:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {resource: int(str(amount)) for resource, amount in asked.items() if resource.startswith(prefixes)}


def moment(text: Any) -> datetime | None:
    """An API time (`2026-10-01T12:00:00Z`, with or without fractions) as an aware datetime; None when there is none."""
    if not text:
        return None
    return datetime.fromisoformat(str(text))


def selects(selector: Mapping[str, Any] | None, item_labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector (matchLabels and matchExpressions) selects these labels; no selector selects nothing, an empty one everything."""
    if selector is None:
        return False
    if any(item_labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_expression(entry, item_labels) for entry in selector.get("matchExpressions") or [])


def _expression(entry: Mapping[str, Any], item_labels: Mapping[str, str]) -> bool:
    key, values = entry["key"], entry.get("values") or []
    holds = {
        "In": item_labels.get(key) in values,
        "NotIn": item_labels.get(key) not in values,
        "Exists": key in item_labels,
        "DoesNotExist": key not in item_labels,
    }
    return holds.get(str(entry.get("operator")), False)
