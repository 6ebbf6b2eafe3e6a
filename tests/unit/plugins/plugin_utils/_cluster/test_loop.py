# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The eviction loop on a clock of its own, with a cluster that follows a script."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import ApiError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.drain import loop, outcome
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.drain.outcome import Outcome, of_error
from hypothesis import given, settings
from hypothesis import strategies as st


def pod(name: str, uid: str = "", namespace: str = "ml") -> dict[str, Any]:
    return {"metadata": {"namespace": namespace, "name": name, "uid": uid or name}}


@dataclass
class Script:
    """A cluster: `refuse(name, now)` says which answer an eviction gets; an accepted pod is gone after its grace period."""

    pods: list[dict[str, Any]]
    refuse: Callable[[str, float], Outcome | None] = lambda _name, _now: None
    grace: dict[str, float] = field(default_factory=dict)
    now: float = 0.0
    ends: dict[str, float] = field(default_factory=dict)
    asked: list[tuple[float, str]] = field(default_factory=list)
    newcomers: list[dict[str, Any]] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def evict(self, item: Any) -> Outcome:
        name = item["metadata"]["name"]
        self.asked.append((self.now, name))
        refused = self.refuse(name, self.now)
        if refused is None:
            self.ends.setdefault(item["metadata"]["uid"], self.now + self.grace.get(name, 0.0))
        return refused or Outcome(outcome.ACCEPTED)

    def present(self) -> dict[str, Any]:
        here = [item for item in self.pods if self.ends.get(item["metadata"]["uid"], float("inf")) > self.now]
        return {item["metadata"]["uid"]: item for item in [*here, *self.newcomers]}

    def tick(self, rest: int) -> None:
        assert rest > 0

    def run(self, deadline: float = 100.0, waits: Callable[[Any], bool] = lambda _pod: True) -> loop.Result:
        return loop.evict_all(self.pods, self, deadline, waits, self.clock, self.sleep)


BLOCKED = Outcome(outcome.BLOCKED, "The disruption budget b needs 1 healthy pods and has 1 currently", "b")


def test_one_pod_is_waited_for_until_it_is_gone() -> None:
    script = Script([pod("a")], grace={"a": 60.0})
    result = script.run()
    assert (result.expired, [target.state for target in result.targets], script.asked) == (False, [loop.GONE], [(0.0, "a")])
    assert 60.0 <= script.now < 61.0


def test_no_pods_need_no_time() -> None:
    script = Script([])
    assert (script.run().targets, script.now) == ([], 0.0)


def test_a_blocked_pod_first_in_the_list_stops_nobody() -> None:
    script = Script([pod("a"), pod("b")])
    script.refuse = lambda name, now: BLOCKED if name == "a" and "b" in script.present() else None
    result = script.run()
    assert [target.state for target in result.targets] == [loop.GONE, loop.GONE]
    assert script.now <= 1.5


def test_the_deadline_is_one_for_all_and_tells_who_is_where() -> None:
    script = Script([pod("blocked"), pod("slow"), pod("quick")], grace={"slow": 99.0})
    script.refuse = lambda name, now: BLOCKED if name == "blocked" else None
    result = script.run(deadline=10.0)
    assert result.expired
    assert {target.where: target.state for target in result.targets} == {"ml/blocked": loop.WAITING, "ml/slow": loop.TERMINATING, "ml/quick": loop.GONE}
    assert result.in_state(loop.WAITING)[0].budget == "b"
    assert script.now == pytest.approx(10.0)


def test_refusals_are_repeated_at_growing_distances() -> None:
    script = Script([pod("a")])
    script.refuse = lambda name, now: BLOCKED
    script.run(deadline=30.0)
    times = [when for when, _name in script.asked]
    distances = [after - before for before, after in itertools.pairwise(times)]
    assert distances == sorted(distances)
    assert distances[0] == 0.5
    assert 4.5 <= distances[-1] <= 5.5


def test_a_wait_that_the_server_asks_for_is_kept_even_when_room_is_made() -> None:
    script = Script([pod("a"), pod("b")], grace={"b": 2.0})
    script.refuse = lambda name, now: Outcome(outcome.BLOCKED, "still being processed", "b", wait=10.0) if name == "a" and now < 5.0 else None
    script.run()
    assert [when for when, name in script.asked if name == "a"] == [0.0, 10.0]


def test_room_made_in_the_namespace_is_used_at_once() -> None:
    """A budget over five pods of which one may be down at a time: each eviction follows the end of the one before, not a fixed pause."""
    script = Script([pod(f"p{number}") for number in range(5)], grace={f"p{number}": 1.0 for number in range(5)})
    script.refuse = lambda name, now: BLOCKED if any(now < end for end in script.ends.values()) else None
    result = script.run()
    assert len(result.in_state(loop.GONE)) == 5
    assert script.now <= 8.0  # with kubectl's fixed 5 s it takes 21 s


def test_a_pod_of_the_same_name_with_another_uid_is_not_the_one_evicted() -> None:
    script = Script([pod("db-0", "old")], newcomers=[pod("db-0", "new")])
    result = script.run()
    assert [target.state for target in result.targets] == [loop.GONE]
    assert script.asked == [(0.0, "db-0")]


def test_a_final_refusal_ends_the_loop_after_all_were_asked() -> None:
    script = Script([pod("a"), pod("b"), pod("c")], grace={"c": 50.0})
    script.refuse = lambda name, now: Outcome(outcome.FATAL, "no") if name == "a" else None
    result = script.run()
    assert [target.state for target in result.targets] == [loop.REFUSED, loop.GONE, loop.TERMINATING]
    assert sorted(name for _when, name in script.asked) == ["a", "b", "c"]


def test_a_terminating_pod_that_is_not_waited_for_ends_the_wait() -> None:
    script = Script([pod("wedged")], grace={"wedged": 1e9})
    result = script.run(waits=lambda item: script.now < 7.0)
    assert (result.expired, [target.state for target in result.targets]) == (False, [loop.TERMINATING])
    assert 7.0 <= script.now < 8.0


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 20), st.floats(0, 20)), max_size=8),
    st.floats(1, 40),
)
def test_every_pod_ends_gone_or_named_and_the_deadline_holds(plan: list[tuple[float, float]], deadline: float) -> None:
    script = Script([pod(f"p{number}") for number in range(len(plan))], grace={f"p{number}": grace for number, (_free, grace) in enumerate(plan)})
    script.refuse = lambda name, now: BLOCKED if now < plan[int(name[1:])][0] else None
    result = script.run(deadline=deadline)
    gone = {target.where for target in result.in_state(loop.GONE)}
    assert len(result.targets) == len(plan)
    assert result.expired == (len(gone) < len(plan))
    assert script.now <= deadline + loop.POLL
    for (_free, grace), target in zip(plan, result.targets, strict=True):
        assert target.state != loop.GONE or target.gone_after >= grace


def error(status: int, message: str, reason: str = "", cause: str = "", retry_after: float | None = None) -> ApiError:
    body: dict[str, Any] = {"message": message}
    if reason:
        body["details"] = {"causes": [{"reason": reason, "message": cause}]}
    return ApiError(status, "POST eviction", body, retry_after)


VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (error(404, 'pods "a" not found'), Outcome(outcome.GONE)),
        (error(409, "the UID in the precondition (a) does not match the UID in record (b)."), Outcome(outcome.GONE)),
        (error(409, "the object has been modified"), Outcome(outcome.RETRY, "the object has been modified")),
        (
            error(429, VIOLATES, "DisruptionBudget", "The disruption budget web needs 2 healthy pods and has 2 currently"),
            Outcome(outcome.BLOCKED, "The disruption budget web needs 2 healthy pods and has 2 currently", "web"),
        ),
        (
            error(429, VIOLATES, "DisruptionBudget", "The disruption budget web is still being processed by the server.", 10.0),
            Outcome(outcome.BLOCKED, "The disruption budget web is still being processed by the server.", "web", 10.0),
        ),
        (error(429, VIOLATES), Outcome(outcome.BLOCKED, VIOLATES)),
        (error(429, "too many requests", retry_after=1.0), Outcome(outcome.RETRY, "too many requests", wait=1.0)),
        (error(403, "forbidden", "NamespaceTerminating", "being terminated"), Outcome(outcome.RETRY, "its namespace is being deleted")),
        (error(403, "forbidden"), Outcome(outcome.FATAL, "forbidden")),
        (error(500, "etcdserver: leader changed"), Outcome(outcome.RETRY, "etcdserver: leader changed")),
        (
            error(500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."),
            Outcome(outcome.FATAL, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."),
        ),
        (error(422, "invalid"), Outcome(outcome.FATAL, "invalid")),
    ],
)
def test_what_a_refused_eviction_means(refusal: ApiError, expected: Outcome) -> None:
    assert of_error(refusal) == expected
