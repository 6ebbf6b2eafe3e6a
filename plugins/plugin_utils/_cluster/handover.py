# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The patches that take a node and give it back, each one request. Pure: node in, patch and description out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.gpunode.hygiene.plugins.module_utils._model import Change
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import objects, protection
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import FIELD_MANAGER
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.ledger import CLAIM, KEEP_CORDONED, Claim

# State labels in which the operator's upgrade controller is at work on the node and counts on its cordon (k8s-operator-libs pkg/upgrade/consts.go).
UPGRADE_STATE = "nvidia.com/gpu-driver-upgrade-state"
UPGRADING = frozenset({
    "cordon-required", "wait-for-jobs-required", "pod-deletion-required", "drain-required", "pod-restart-required", "validation-required",
    "uncordon-required", "node-maintenance-required", "post-maintenance-required",
})


@dataclass(frozen=True)
class Step:
    """One patch of the Node.

    :ivar patch: JSON merge patch without the resource version; empty when there is nothing to write.
    :ivar claim: the claim that holds afterwards.
    :ivar changes: what the patch changes, without the renewal of the claim.
    :ivar kept_by: whose cordon stays on the node after it is given back; None when it becomes schedulable or was not cordoned.
    """

    patch: dict[str, Any]
    claim: Claim | None
    changes: tuple[Change, ...]
    kept_by: str | None = None


def take(node: objects.Object, before: Claim | None, held: Claim, protect: bool) -> Step:
    """Cordon the node, claim it and keep autoscalers away.

    :param before: the claim found on the node.
    :param held: that claim as it is to be held now, or a new one.
    """
    name = objects.name(node)
    cordons = not objects.is_unschedulable(node)
    found_annotations, found_labels = objects.annotations_of(node), objects.labels_of(node)
    new_annotations = protection.taken(found_annotations, protection.ANNOTATIONS) if protect else {}
    new_labels = protection.taken(found_labels, protection.LABELS) if protect else {}
    # What was recorded first is what was there before us, also when somebody changed it meanwhile.
    claim = replace(
        held, cordoned=held.cordoned or cordons, annotations={**new_annotations, **held.annotations}, labels={**new_labels, **held.labels},
    )
    changes = [Change("cordon", name, False, True, f"kubectl uncordon {name}")] if cordons else []
    if before is None or before.run != claim.run:
        found = None if before is None else _brief(before)
        changes.append(Change("annotation", f"{name} {CLAIM}", found, _brief(claim), f"kubectl annotate node {name} {CLAIM}-"))
    changes += _described(name, "annotation", found_annotations, {key: protection.ANNOTATIONS[key] for key in new_annotations})
    changes += _described(name, "label", found_labels, {key: protection.LABELS[key] for key in new_labels})
    patch = _patch(
        {CLAIM: claim.render(), **{key: protection.ANNOTATIONS[key] for key in new_annotations}}, {key: protection.LABELS[key] for key in new_labels},
    )
    if cordons:
        patch["spec"] = {"unschedulable": True}
    return Step(patch, claim, tuple(changes))


def give_back(node: objects.Object, claim: Claim | None) -> Step:
    """Undo what the claim says was taken, and the cordon if it is ours and nobody asked to keep it."""
    name = objects.name(node)
    kept_by = cordon_kept_by(node, claim)
    uncordons = objects.is_unschedulable(node) and kept_by is None
    found_annotations, found_labels = objects.annotations_of(node), objects.labels_of(node)
    old_annotations = protection.restored(found_annotations, claim.annotations, protection.ANNOTATIONS) if claim else {}
    old_labels = protection.restored(found_labels, claim.labels, protection.LABELS) if claim else {}
    changes = [Change("cordon", name, True, False, f"kubectl cordon {name}")] if uncordons else []
    if claim is not None:
        changes.append(Change("annotation", f"{name} {CLAIM}", _brief(claim), None))
    changes += _described(name, "annotation", found_annotations, old_annotations)
    changes += _described(name, "label", found_labels, old_labels)
    patch = _patch({**({CLAIM: None} if claim else {}), **old_annotations}, old_labels)
    if uncordons:
        patch["spec"] = {"unschedulable": None}
    return Step(patch, None, tuple(changes), kept_by)


def cordon_kept_by(node: objects.Object, claim: Claim | None) -> str | None:
    """Whose cordon stays when we leave: None for ours or none; else a field manager, `unknown`, or the keep-cordoned annotation with its reason."""
    owner = objects.cordon_owner(node)
    if owner is None:
        return None
    reason = objects.annotations_of(node).get(KEEP_CORDONED)
    if reason is not None:
        return f"{KEEP_CORDONED}: {reason}"
    if owner == FIELD_MANAGER and (claim is None or claim.cordoned):
        return None
    if owner == "unknown" and claim is not None and claim.cordoned:
        return None  # managedFields were stripped; the claim is the only witness
    return owner


def unmet(node: objects.Object, kernel_release: str, boot_id: str) -> list[str]:
    """What still speaks against giving the node back; empty when nothing does.

    :param kernel_release: `uname -r` that the Node must report; empty for any.
    :param boot_id: the boot id that the Node must report; empty for any.
    """
    reasons = []
    ready = objects.condition(node, "Ready")
    if ready.get("status") != "True":
        reasons.append(f"it is not Ready ({ready.get('message') or ready.get('reason') or 'the kubelet never reported'})")
    for field, wanted, words in (("kernelVersion", kernel_release, "kernel"), ("bootID", boot_id, "boot id")):
        reported = objects.node_info(node, field)
        if wanted and reported != wanted:
            reasons.append(f"it reports {words} {reported or 'nothing'}, not {wanted}")
    state = objects.labels_of(node).get(UPGRADE_STATE, "")
    if state in UPGRADING:
        reasons.append(f"the operator's driver upgrade is in state {state}")
    return reasons


def view(node: objects.Object, claim: Claim | None) -> dict[str, Any]:
    """What `before` and `after` compare; the claim's renewals are not in it."""
    found_annotations, found_labels = objects.annotations_of(node), objects.labels_of(node)
    return {
        "unschedulable": objects.is_unschedulable(node),
        "cordon_owner": objects.cordon_owner(node),
        "claim": _brief(claim) if claim else None,
        "protection": {
            **{key: found_annotations.get(key) for key in protection.ANNOTATIONS},
            **{key: found_labels.get(key) for key in protection.LABELS},
        },
    }


def preview(node: objects.Object, step: Step) -> dict[str, Any]:
    """The `after` of a step that is not carried out."""
    after = view(node, step.claim)
    for change in step.changes:
        key = change.where.rpartition(" ")[2]
        if change.what == "cordon":
            after["unschedulable"] = change.after
            after["cordon_owner"] = FIELD_MANAGER if change.after else None
        elif key in after["protection"]:
            after["protection"][key] = change.after
    return after


def _brief(claim: Claim) -> dict[str, Any]:
    return {"run": claim.run, "procedure": claim.procedure, "cordoned": claim.cordoned}


def _patch(annotations: Mapping[str, str | None], labels: Mapping[str, str | None]) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    if annotations:
        patch["annotations"] = dict(annotations)
    if labels:
        patch["labels"] = dict(labels)
    return {"metadata": patch} if patch else {}


def _described(node: str, kind: str, found: Mapping[str, str], wanted: Mapping[str, str | None]) -> list[Change]:
    return [Change(kind, f"{node} {key}", found.get(key), value, _undo(node, kind, key, found.get(key))) for key, value in wanted.items()]


def _undo(node: str, kind: str, key: str, before: str | None) -> str:
    verb = "annotate" if kind == "annotation" else "label"
    return f"kubectl {verb} node {node} {key}-" if before is None else f"kubectl {verb} --overwrite node {node} {key}={before}"
