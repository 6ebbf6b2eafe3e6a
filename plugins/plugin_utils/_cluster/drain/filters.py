# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which pods a drain evicts, leaves or refuses. Pure; the same answers as `kubectl drain --ignore-daemonsets` (kubectl pkg/drain/filters.go)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import objects

EVICT, LEAVE, REFUSE = "evict", "leave", "refuse"
MIRROR = "kubernetes.io/config.mirror"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True)
class Rules:
    """The user's choices.

    :ivar force: evict pods that no controller will make again.
    :ivar delete_emptydir_data: evict pods whose emptyDir volumes are lost with them.
    :ivar skip_wait_for_delete_timeout: seconds past a pod's deletion time after which it is not waited for; 0 waits for all.
    """

    force: bool = False
    delete_emptydir_data: bool = False
    skip_wait_for_delete_timeout: int = 0


@dataclass(frozen=True)
class Verdict:
    """What happens to one pod, and why."""

    pod: objects.Object
    action: str
    reason: str


def judge(pod: objects.Object, rules: Rules, daemonsets: Collection[tuple[str, str]], now: datetime) -> Verdict:
    """The verdict on one pod.

    :param daemonsets: (namespace, name) of those that exist; a pod whose DaemonSet is gone is an orphan that nothing makes again.
    """
    deletion = objects.moment(objects.metadata(pod).get("deletionTimestamp"))
    limit = rules.skip_wait_for_delete_timeout
    if limit > 0 and deletion is not None and (now - deletion).total_seconds() > limit:
        return Verdict(pod, LEAVE, f"terminating for more than {limit} s")
    finished = objects.status(pod).get("phase") in FINISHED
    owner = objects.controller(pod)
    orphan = False
    if owner and owner.get("kind") == "DaemonSet" and owner.get("apiVersion") == "apps/v1" and not finished:
        if (objects.namespace(pod), str(owner.get("name"))) in daemonsets:
            return Verdict(pod, LEAVE, f"managed by DaemonSet {owner.get('name')}")
        if not rules.force:
            return Verdict(pod, REFUSE, f"its DaemonSet {owner.get('name')} does not exist; nothing makes it again (option force)")
        orphan = True
    if MIRROR in objects.annotations_of(pod):
        return Verdict(pod, LEAVE, "static pod of the kubelet")
    if finished:
        return Verdict(pod, EVICT, "finished")
    # Local data is asked about first, and the missing controller all the same: a bare pod with emptyDir needs both options.
    local = any("emptyDir" in volume for volume in objects.spec(pod).get("volumes") or [])
    if local and not rules.delete_emptydir_data:
        return Verdict(pod, REFUSE, "its emptyDir data would be lost (option delete_emptydir_data)")
    if owner is None and not rules.force:
        return Verdict(pod, REFUSE, "it has no controller; nothing makes it again (option force)")
    if owner is None or orphan:
        return Verdict(pod, EVICT, "nothing makes it again")
    return Verdict(pod, EVICT, f"managed by {owner.get('kind')} {owner.get('name')}")


def tolerates_cordon(pod: objects.Object) -> bool:
    """Whether the scheduler sends the pod to a cordoned node all the same: evicting it again would not help."""
    return any(
        toleration.get("key", "") in ("", UNSCHEDULABLE) and toleration.get("effect", "") in ("", "NoSchedule")
        and (toleration.get("operator") == "Exists" or (toleration.get("key") == UNSCHEDULABLE and not toleration.get("value")))
        for toleration in objects.spec(pod).get("tolerations") or []
    )


def judge_all(pods: Iterable[objects.Object], rules: Rules, daemonsets: Collection[tuple[str, str]], now: datetime) -> list[Verdict]:
    """The verdicts in the order of namespace and name."""
    return [judge(pod, rules, daemonsets, now) for pod in sorted(pods, key=objects.path)]
