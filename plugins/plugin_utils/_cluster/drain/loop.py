# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The eviction loop: all pods at once, retried where a budget refuses, until each one is gone or the one deadline has passed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import objects
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.drain import outcome
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.drain.outcome import Outcome

POLL = 0.5
FIRST_RETRY = 0.5
LONGEST_RETRY = 5.0
PARALLEL = 10

WAITING, TERMINATING, GONE, REFUSED = "waiting", "terminating", "gone", "refused"


class Evictor(Protocol):
    """What the loop needs of the cluster."""

    def evict(self, pod: objects.Object) -> Outcome:
        """Ask for the eviction of one pod (its UID as precondition)."""

    def present(self) -> Mapping[str, objects.Object]:
        """All pods that are on the node now, by UID."""

    def tick(self, rest: int) -> None:
        """Called once in every round, for progress lines and the claim."""


@dataclass
class Target:
    """One pod on its way out."""

    pod: objects.Object
    state: str = WAITING
    text: str = ""
    budget: str = ""
    not_before: float = 0.0
    next_try: float = 0.0
    delay: float = FIRST_RETRY
    gone_after: float = 0.0

    @property
    def where(self) -> str:
        """`namespace/name`."""
        return objects.path(self.pod)


@dataclass
class Result:
    """How the loop ended; `expired` when the deadline passed before all targets were gone."""

    targets: list[Target] = field(default_factory=list)
    expired: bool = False

    def in_state(self, *states: str) -> list[Target]:
        """The targets in one of these states."""
        return [target for target in self.targets if target.state in states]


def evict_all(
    pods: Iterable[objects.Object],
    cluster: Evictor,
    deadline: float,
    waits: Callable[[objects.Object], bool],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Result:
    """Evict the pods and wait until their objects are gone; a pod of the same name with another UID is another pod.

    A pod that the server refuses for good (state `refused`) ends the loop, once all others have been asked for.

    :param deadline: on `clock`'s scale.
    :param waits: whether a terminating pod is still waited for.
    """
    started = clock()
    result = Result([Target(pod) for pod in pods])
    with ThreadPoolExecutor(PARALLEL) as pool:
        while True:
            now = clock()
            due = [target for target in result.in_state(WAITING) if target.next_try <= now]
            for target, answer in zip(due, pool.map(cluster.evict, (target.pod for target in due)), strict=True):
                _apply(target, answer, clock())
            present = cluster.present()
            _look(result, present, clock() - started)
            left = result.in_state(WAITING) + [target for target in result.in_state(TERMINATING) if waits(present[objects.uid(target.pod)])]
            if result.in_state(REFUSED) or not left:
                return result
            if clock() >= deadline:
                result.expired = True
                return result
            cluster.tick(len(left))
            sleep(min(POLL, max(deadline - clock(), 0.0)))


def _apply(target: Target, answer: Outcome, now: float) -> None:
    target.text, target.budget = answer.text, answer.budget
    if answer.kind in (outcome.ACCEPTED, outcome.GONE):
        target.state = TERMINATING  # gone is what the list of pods says
    elif answer.kind == outcome.FATAL:
        target.state = REFUSED
    else:
        target.not_before = now + answer.wait
        target.next_try = max(now + target.delay, target.not_before)
        target.delay = min(target.delay * 1.5, LONGEST_RETRY)


def _look(result: Result, present: Mapping[str, objects.Object], seconds: float) -> None:
    """Mark what is gone; where a pod went away a budget may have room again, so the refused ones of its namespace are tried at once."""
    freed: set[str] = set()
    for target in result.in_state(WAITING, TERMINATING):
        if objects.uid(target.pod) not in present:
            target.state, target.gone_after = GONE, seconds
            freed.add(objects.namespace(target.pod))
    for target in result.in_state(WAITING):
        if objects.namespace(target.pod) in freed:
            target.delay, target.next_try = FIRST_RETRY, target.not_before
