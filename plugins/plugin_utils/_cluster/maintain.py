# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cordon, drain and give back one node: the work of `node_drain`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from ansible_collections.gpunode.hygiene.plugins.module_utils._model import Change, HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import handover, ledger, objects, process, protection
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import Api, ApiError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.drain import filters, guards, loop, outcome
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.drain.outcome import Outcome
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.ledger import Claim, Seeker, Standing

# Pods can be bound in the instant of the cordon, or pinned to the node by name; what keeps coming back after this many passes is reported, not fought.
PASSES = 3
RENEW_SECONDS = 60.0
SETTLE_SECONDS = 2.0
CONFLICTS = 20


@dataclass(frozen=True)
class Wish:
    """What the user asked for.

    :ivar timeout: seconds for the whole of it.
    :ivar grace_period: seconds each pod gets to end; None leaves it to the pod.
    :ivar pod_selector: label selector of the pods to evict; empty for all.
    :ivar own_pod: (namespace, name) of the pod this run is in; None outside a cluster.
    """

    node: str
    seeker: Seeker
    timeout: float
    grace_period: int | None = None
    rules: filters.Rules = field(default_factory=filters.Rules)
    pod_selector: str = ""
    protect: bool = False
    expect_kernel: str = ""
    expect_boot_id: str = ""
    own_pod: tuple[str, str] | None = None
    check_mode: bool = False


@dataclass
class Outturn:
    """What was found and done; `answer` is the form that the task returns."""

    msg: str
    before: dict[str, Any]
    after: dict[str, Any]
    plan: list[Change]
    node: objects.Object
    claim: Claim | None
    standing: Standing
    kept_by: str | None = None
    pods: list[dict[str, Any]] = field(default_factory=list)
    left: list[dict[str, Any]] = field(default_factory=list)
    blocked: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, seeker: Seeker) -> dict[str, Any]:
        """The task's result."""
        return {
            "changed": self.before != self.after,
            "msg": self.msg,
            "before": self.before,
            "after": self.after,
            "plan": [change.as_dict() for change in self.plan],
            "diff": {"before": self.before, "after": self.after},
            "node": objects.name(self.node),
            "run": self.claim.run if self.claim else seeker.run,
            "procedure": self.claim.procedure if self.claim else seeker.procedure,
            "adopted": self.standing in (Standing.ADOPTED, Standing.TAKEN_OVER),
            "schedulable": not self.after["unschedulable"],
            "cordon_owner": self.kept_by if self.kept_by else self.after["cordon_owner"],
            "boot_id": self.claim.boot_id if self.claim else objects.node_info(self.node, "bootID"),
            "pods": self.pods,
            "left": self.left,
            "blocked": self.blocked,
        }


class Maintenance:
    """Work on one node through one API server.

    :param progress: gets a short line in every round; it decides which are shown.
    """

    def __init__(self, api: Api, wish: Wish, progress: Callable[[str], None]) -> None:
        self.api = api
        self.wish = wish
        self.progress = progress
        self.path = f"/api/v1/nodes/{quote(wish.node, safe='')}"
        self.deadline = time.monotonic() + wish.timeout
        self._renewed = time.monotonic()

    def warnings(self) -> list[str]:
        """What may act on the node meanwhile and cannot be told off."""
        return protection.warnings(self._node())

    def cordoned(self) -> Outturn:
        """Claim the node and cordon it, in one patch."""
        node, claim, standing, step, fresh = self._take()
        name = self.wish.node
        before = handover.view(node, claim)
        after = handover.preview(node, step) if self.wish.check_mode else handover.view(fresh, step.claim)
        verb = "would be " if self.wish.check_mode else ""
        msg = f"Node {name} {verb or 'is '}cordoned and claimed by run {_run(step.claim)}."
        if not step.changes:
            msg = f"Node {name} was already cordoned and claimed by run {_run(step.claim)}."
        elif objects.is_unschedulable(node):
            msg = f"Node {name} was already cordoned by {objects.cordon_owner(node)}; it {verb or 'is '}claimed by run {_run(step.claim)}."
        return Outturn(msg, before, after, list(step.changes), fresh, step.claim, standing)

    def drained(self) -> Outturn:
        """Cordon the node, and evict its pods until they are gone, also when it was cordoned already."""
        verdicts = self._judge()
        self._demand_none_refused(verdicts, "Nothing was changed")
        self._guard(verdicts)
        found = [verdict for verdict in verdicts if verdict.action == filters.EVICT]
        out = self.cordoned()
        out.before["pods"] = [objects.path(verdict.pod) for verdict in found]
        if self.wish.check_mode:
            self._rehearse(out, verdicts)
        else:
            self._evict(out)
        out.plan += [_eviction(pod) for pod in out.pods]
        return out

    def uncordoned(self) -> Outturn:
        """Give back what the claim says was taken, once the node is as expected."""
        node, claim, standing = self._read()
        name = self.wish.node
        ours = claim is not None or (objects.is_unschedulable(node) and handover.cordon_kept_by(node, None) is None)
        if not ours:
            view = handover.view(node, None)
            state = f"stays cordoned by {view['cordon_owner']}" if view["unschedulable"] else "is schedulable"
            return Outturn(f"Node {name} was not claimed by this collection; nothing is given back, and it {state}.", view, view, [], node, None, standing)
        if not self.wish.check_mode:
            self._await_expected()
        node, claim, standing, step, fresh = self._write(lambda node, claim, _standing: handover.give_back(node, claim))
        before = handover.view(node, claim)
        after = handover.preview(node, step) if self.wish.check_mode else handover.view(fresh, None)
        msg = f"Node {name} {'would be' if self.wish.check_mode else 'is'} schedulable again."
        if step.kept_by:
            msg = f"Node {name} is given back and stays cordoned by {step.kept_by}."
        out = Outturn(msg, before, after, list(step.changes), fresh, claim, standing, step.kept_by)
        if not self.wish.check_mode and not step.kept_by and after["unschedulable"]:
            raise HygieneError(
                seen=f"Node {name} is still unschedulable after it was uncordoned (set by {after['cordon_owner']})",
                why="Somebody cordoned it at the same time",
                remedy=f"Ask them, or run `kubectl uncordon {name}`",
            )
        return out

    # Reading and writing the node

    def _node(self) -> dict[str, Any]:
        try:
            return self.api.get(self.path)
        except ApiError as error:
            if error.status != 404:
                raise
            raise HygieneError(
                seen=f"There is no Node {self.wish.node} in the cluster at {self.api.server}",
                why="Only a Node of this cluster can be cordoned",
                remedy="Correct the name, or choose the cluster with `kubeconfig` or `context`",
            ) from error

    def _read(self) -> tuple[dict[str, Any], Claim | None, Standing]:
        """The node, its claim, and what that means for us. :raises HygieneError: somebody else holds it."""
        node = self._node()
        claim = ledger.read(node)
        alive = None
        if claim is not None:
            seen = objects.moment(claim.renewed)
            alive = process.is_alive(claim.owner, self.wish.seeker.owner, seen) if seen else None
        return node, claim, ledger.stand(claim, self.wish.node, self.wish.seeker, alive, datetime.now(UTC))

    def _take(self) -> tuple[dict[str, Any], Claim | None, Standing, handover.Step, dict[str, Any]]:
        def step(node: objects.Object, claim: Claim | None, standing: Standing) -> handover.Step:
            held = ledger.held(claim, standing, self.wish.seeker, node, datetime.now(UTC))
            return handover.take(node, claim, held, self.wish.protect)

        return self._write(step)

    def _write(
        self, decide: Callable[[objects.Object, Claim | None, Standing], handover.Step]
    ) -> tuple[dict[str, Any], Claim | None, Standing, handover.Step, dict[str, Any]]:
        """Read, decide and patch; read and decide anew when the node changed in between. In check mode the server only rehearses the patch."""
        for _attempt in range(CONFLICTS):
            node, claim, standing = self._read()
            step = decide(node, claim, standing)
            if not step.patch:
                return node, claim, standing, step, node
            patch = {**step.patch, "metadata": {**step.patch.get("metadata", {}), "resourceVersion": objects.metadata(node)["resourceVersion"]}}
            try:
                fresh = self.api.patch(self.path, patch, {"dryRun": "All"} if self.wish.check_mode else None)
            except ApiError as error:
                if error.status != 409:
                    raise
            else:
                self._renewed = time.monotonic()
                return node, claim, standing, step, node if self.wish.check_mode else fresh
        raise HygieneError(
            seen=f"Node {self.wish.node} changed {CONFLICTS} times while it was to be patched",
            why="Something rewrites it all the time",
            remedy=f"Find out who with `kubectl get node {self.wish.node} -o yaml --show-managed-fields`",
        )

    def _await_expected(self) -> None:
        while True:
            reasons = handover.unmet(self._node(), self.wish.expect_kernel, self.wish.expect_boot_id)
            if not reasons:
                return
            if time.monotonic() >= self.deadline:
                raise HygieneError(
                    seen=f"Node {self.wish.node} cannot be given back after {self.wish.timeout:g} s: {'; '.join(reasons)}",
                    why="It stays cordoned and claimed, so that nothing is scheduled on a node that is not as expected",
                    remedy="Mend the node and run the same procedure again, or raise `timeout`",
                    facts={"unmet": reasons, "schedulable": False},
                )
            self.progress(f"{self.wish.node}: waiting: {'; '.join(reasons)}")
            time.sleep(SETTLE_SECONDS)

    # Pods

    def _pods(self, selector: str = "") -> list[dict[str, Any]]:
        query = {"fieldSelector": f"spec.nodeName={self.wish.node}"}
        if selector:
            query["labelSelector"] = selector
        return self.api.list("/api/v1/pods", query)

    def _judge(self) -> list[filters.Verdict]:
        daemonsets = {(objects.namespace(item), objects.name(item)) for item in self.api.list("/apis/apps/v1/daemonsets")}
        return filters.judge_all(self._pods(self.wish.pod_selector), self.wish.rules, daemonsets, datetime.now(UTC))

    def _demand_none_refused(self, verdicts: list[filters.Verdict], state: str) -> None:
        refused = [verdict for verdict in verdicts if verdict.action == filters.REFUSE]
        if refused:
            raise HygieneError(
                seen=f"Node {self.wish.node} has pods that must not be evicted unasked: "
                + "; ".join(f"{objects.path(verdict.pod)}: {verdict.reason}" for verdict in refused),
                why=f"Their work or data would be lost for good. {state}",
                remedy="Move or delete them yourself, or allow it with the option named (`gpunode_force=true`, `gpunode_delete_emptydir_data=true`)",
                facts={"refused": [_entry(verdict.pod, verdict.reason) for verdict in refused]},
            )

    def _guard(self, verdicts: list[filters.Verdict]) -> None:
        here = self._pods() if self.wish.pod_selector else [verdict.pod for verdict in verdicts]
        servers = self.api.list("/api/v1/namespaces/kube-system/pods", {"labelSelector": "component=kube-apiserver"})
        guards.demand_drainable(self._node(), self.api.list("/api/v1/nodes"), [*here, *servers], self.wish.own_pod)

    # loop.Evictor

    def evict(self, pod: objects.Object) -> Outcome:
        """Ask the server to evict the pod; in check mode it only says whether it would."""
        options: dict[str, Any] = {"preconditions": {"uid": objects.uid(pod)}}
        if self.wish.grace_period is not None:
            options["gracePeriodSeconds"] = self.wish.grace_period
        name, namespace = objects.name(pod), objects.namespace(pod)
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}, "deleteOptions": options}
        query = {"dryRun": "All"} if self.wish.check_mode else None
        try:
            self.api.post(f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", body, query, passing=frozenset())
        except ApiError as error:
            return outcome.of_error(error)
        return Outcome(outcome.ACCEPTED)

    def present(self) -> Mapping[str, objects.Object]:
        """All pods of the node by UID."""
        return {objects.uid(pod): pod for pod in self._pods()}

    def tick(self, rest: int) -> None:
        """Say how many pods are left, and give a sign of life in the claim every minute."""
        self.progress(f"{self.wish.node}: {rest} pods left")
        if time.monotonic() - self._renewed > RENEW_SECONDS:
            self._take()

    def _rehearse(self, out: Outturn, verdicts: list[filters.Verdict]) -> None:
        targets = [verdict for verdict in verdicts if verdict.action == filters.EVICT]
        with ThreadPoolExecutor(loop.PARALLEL) as pool:
            answers = list(pool.map(self.evict, (verdict.pod for verdict in targets)))
        self._demand_none_fatal([(verdict.pod, answer.text) for verdict, answer in zip(targets, answers, strict=True) if answer.kind == outcome.FATAL])
        out.pods = [_entry(verdict.pod, verdict.reason) for verdict in targets]
        out.left = [_entry(verdict.pod, verdict.reason) for verdict in verdicts if verdict.action == filters.LEAVE]
        out.blocked = [
            self._blocked(verdict.pod, answer.budget, answer.text)
            for verdict, answer in zip(targets, answers, strict=True)
            if answer.kind in (outcome.BLOCKED, outcome.RETRY)
        ]
        out.after["pods"] = []
        out.msg = f"{out.msg} {len(out.pods)} pods would be evicted."
        if out.blocked:
            out.msg += f" {len(out.blocked)} of them cannot be now: {_names(out.blocked)}."

    def _evict(self, out: Outturn) -> None:
        reasons: dict[str, str] = {}
        seen: set[str] = set()
        for attempt in range(PASSES):
            verdicts = self._judge()
            self._demand_none_refused(verdicts, f"They came while it was drained; node {self.wish.node} stays cordoned and claimed")
            out.left = [_entry(verdict.pod, verdict.reason) for verdict in verdicts if verdict.action == filters.LEAVE]
            targets = [
                verdict for verdict in verdicts
                if verdict.action == filters.EVICT and objects.uid(verdict.pod) not in seen and not (attempt and filters.tolerates_cordon(verdict.pod))
            ]
            if not targets:
                break
            seen.update(objects.uid(verdict.pod) for verdict in targets)
            reasons.update({objects.uid(verdict.pod): verdict.reason for verdict in targets})
            result = loop.evict_all([verdict.pod for verdict in targets], self, self.deadline, self._waits)
            out.pods += [
                {**_entry(target.pod, reasons[objects.uid(target.pod)]), "seconds": round(target.gone_after, 1)} for target in result.in_state(loop.GONE)
            ]
            self._demand_finished(result, out)
            self._recordon(out)
        out.left += [_entry(pod, "it came back after it was evicted") for pod in self._returned(seen)]
        out.after["pods"] = []
        evicted = f"{len(out.pods)} pods were evicted and are gone" if out.pods else "There were no pods to evict"
        out.msg = f"{out.msg} {evicted}."

    def _waits(self, pod: objects.Object) -> bool:
        """Whether a terminating pod is waited for."""
        return filters.judge(pod, self.wish.rules, (), datetime.now(UTC)).action != filters.LEAVE

    def _returned(self, seen: set[str]) -> list[objects.Object]:
        return [verdict.pod for verdict in self._judge() if verdict.action == filters.EVICT and objects.uid(verdict.pod) not in seen]

    def _recordon(self, out: Outturn) -> None:
        """The operator's driver manager uncordons nodes that it did not cordon (k8s-driver-manager cmd/driver-manager)."""
        if not objects.is_unschedulable(self._node()):
            self.progress(f"{self.wish.node}: somebody uncordoned it; cordoning again")
            _node, _claim, _standing, step, fresh = self._take()
            out.node, out.claim, pods = fresh, step.claim, out.after.get("pods")
            out.after = handover.view(fresh, step.claim)
            if pods is not None:
                out.after["pods"] = pods

    def _demand_finished(self, result: loop.Result, out: Outturn) -> None:
        self._demand_none_fatal([(target.pod, target.text) for target in result.in_state(loop.REFUSED)])
        if not result.expired:
            out.left += [_entry(target.pod, "still terminating; not waited for") for target in result.in_state(loop.TERMINATING)]
            return
        blocked = [self._blocked(target.pod, target.budget, target.text) for target in result.in_state(loop.WAITING)]
        slow = [_entry(target.pod, "still terminating") for target in result.in_state(loop.TERMINATING)]
        parts = []
        if blocked:
            parts.append(f"not evictable: {_names(blocked)}")
        if slow:
            parts.append("still terminating: " + ", ".join(f"{entry['namespace']}/{entry['name']}" for entry in slow))
        raise HygieneError(
            seen=f"Node {self.wish.node} is not drained after {self.wish.timeout:g} s; {'; '.join(parts)}",
            why="A reboot now would kill these pods. The node stays cordoned and claimed",
            remedy="Make room under the budget (more replicas, `kubectl get pdb -A`) or end the pods, then run it again; or raise `timeout`; "
            "for pods of a dead kubelet set `skip_wait_for_delete_timeout`",
            facts={"blocked": blocked, "terminating": slow, "pods": out.pods, "schedulable": False, "run": _run(out.claim)},
        )

    def _demand_none_fatal(self, failures: list[tuple[objects.Object, str]]) -> None:
        if not failures:
            return
        texts = []
        for pod, text in failures:
            budgets = ", ".join(self._budgets(pod)) if outcome.SEVERAL_BUDGETS in text else ""
            texts.append(f"{objects.path(pod)}: {text}" + (f" ({budgets})" if budgets else ""))
        raise HygieneError(
            seen=f"The API server refuses to evict {'; '.join(texts)}",
            why=f"Trying again would not change that. Node {self.wish.node} stays as it is now",
            remedy="Leave one PodDisruptionBudget for each pod, or grant `create` on `pods/eviction`, then run it again",
            facts={"refused": [_entry(pod, text) for pod, text in failures]},
        )

    def _blocked(self, pod: objects.Object, budget: str, text: str) -> dict[str, Any]:
        budgets = [budget] if budget else self._budgets(pod)
        return {**_entry(pod, text), "budgets": budgets}

    def _budgets(self, pod: objects.Object) -> list[str]:
        """Names of the PodDisruptionBudgets over the pod; empty when this user may not list them."""
        try:
            budgets = self.api.list(f"/apis/policy/v1/namespaces/{objects.namespace(pod)}/poddisruptionbudgets")
        except ApiError:
            return []
        return [objects.name(item) for item in budgets if objects.selects(objects.spec(item).get("selector"), objects.labels_of(pod))]


def _entry(pod: objects.Object, reason: str) -> dict[str, Any]:
    return {"namespace": objects.namespace(pod), "name": objects.name(pod), "uid": objects.uid(pod), "reason": reason}


def _eviction(pod: Mapping[str, Any]) -> Change:
    return Change("pod", f"{pod['namespace']}/{pod['name']}", pod["reason"], None)


def _names(blocked: list[dict[str, Any]]) -> str:
    parts = []
    for entry in blocked:
        budget = f"budget {', '.join(entry['budgets'])}: " if entry["budgets"] else ""
        parts.append(f"{entry['namespace']}/{entry['name']} ({budget}{entry['reason']})")
    return "; ".join(parts)


def _run(claim: Claim | None) -> str:
    return claim.run if claim else "none"
