# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who may work under a claim, and what is taken and given back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import handover, ledger, process, protection
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.ledger import Claim, Seeker, Standing
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.process import Owner
from hypothesis import given, settings
from hypothesis import strategies as st

NOW = datetime(2026, 10, 1, 12, 0, 0, tzinfo=UTC)
ME = Owner("here", 100)


def claim(minutes: float = 0, **fields: Any) -> Claim:
    """A claim of process 7 on this controller, renewed so many minutes ago."""
    stamp = (NOW - timedelta(minutes=minutes)).strftime(ledger.TIME)
    values = {"run": "run-0", "procedure": "recover", "controller": "here", "pid": 7, "started": stamp, "renewed": stamp, "cordoned": True, **fields}
    return Claim(**values)


def seeker(**fields: Any) -> Seeker:
    return Seeker(**{"run": "run-1", "procedure": "recover", "owner": ME, "ttl": timedelta(minutes=30), **fields})


Marks = dict[str, str] | None


def node(*, unschedulable: bool = False, manager: str = "gpunode-hygiene", annotations: Marks = None, labels: Marks = None) -> Any:
    fields = [{"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}] if unschedulable and manager else []
    return {
        "metadata": {"name": "n", "annotations": annotations or {}, "labels": labels or {}, "managedFields": fields},
        "spec": {"unschedulable": True} if unschedulable else {},
        "status": {"nodeInfo": {"bootID": "boot-1"}},
    }


@pytest.mark.parametrize(
    ("found", "asks", "alive", "standing"),
    [
        (None, seeker(), None, Standing.FREE),
        (claim(pid=100), seeker(), True, Standing.OURS),
        (claim(pid=100, procedure="other", run="run-9"), seeker(), True, Standing.OURS),
        (claim(), seeker(), False, Standing.ADOPTED),
        (claim(), seeker(procedure="other", run="run-0"), False, Standing.ADOPTED),
        (claim(31, controller="there"), seeker(), None, Standing.ADOPTED),
        (claim(5, controller="there"), seeker(take_over=True), None, Standing.ADOPTED),
        (claim(5, controller="there"), seeker(take_over=True, procedure="other"), None, Standing.TAKEN_OVER),
        (claim(), seeker(take_over=True, procedure="other"), False, Standing.TAKEN_OVER),
    ],
)
def test_standing(found: Claim | None, asks: Seeker, alive: bool | None, standing: Standing) -> None:
    assert ledger.stand(found, "n", asks, alive, NOW) is standing


@pytest.mark.parametrize(
    ("found", "asks", "alive", "text"),
    [
        (claim(), seeker(), True, "Wait for it, or stop process 7 first"),
        (claim(90), seeker(), True, "Its process is at work on this controller"),
        (claim(), seeker(take_over=True), True, "Its process is at work on this controller"),
        (claim(30, controller="there"), seeker(), None, "Wait 1 min"),
        (claim(5, controller="there"), seeker(), None, r"last sign 5 min ago.*Wait 26 min"),
        (claim(-5, controller="there"), seeker(), None, r"last sign 0 min ago.*Wait 31 min"),  # the other controller's clock is ahead
        (claim(), seeker(procedure="other"), False, "Run recover again to finish it, or set `take_over: true`"),
        (claim(99, controller="there"), seeker(procedure="other"), None, "It was left by another procedure than other"),
    ],
)
def test_refusal(found: Claim, asks: Seeker, alive: bool | None, text: str) -> None:
    with pytest.raises(HygieneError, match=text) as caught:
        ledger.stand(found, "n", asks, alive, NOW)
    assert caught.value.facts["claim"]["run"] == "run-0"


def test_a_claim_survives_its_annotation() -> None:
    full = claim(labels={"a": None, "b": "x"}, annotations={"c": ""}, boot_id="boot-0")
    assert ledger.parse(full.render(), "n") == full
    assert "\n" not in full.render()
    assert ": " not in full.render()
    assert set(json.loads(full.render())) == {
        "run", "procedure", "controller", "pid", "started", "renewed", "cordoned", "labels", "annotations", "boot_id",
    }


SCALARS = st.none() | st.booleans() | st.integers() | st.text()


@settings(derandomize=True, max_examples=200)
@given(st.text() | st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_no_annotation_breaks_the_reader(value: Any) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    with pytest.raises(HygieneError, match="is not a claim that this version can read"):
        ledger.parse(text, "n")


@pytest.mark.parametrize("change", [{"renewed": "yesterday"}, {"pid": "7"}, {"labels": None}, {"started": ""}, {"colour": "red"}])
def test_a_claim_with_a_wrong_field_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(HygieneError, match=r"kubectl annotate node n gpunode\.hygiene/maintenance-"):
        ledger.parse(json.dumps({**json.loads(claim().render()), **change}), "n")


def test_a_new_claim_records_the_boot_and_who_cordoned() -> None:
    new = ledger.held(None, Standing.FREE, seeker(), node(), NOW)
    assert (new.run, new.cordoned, new.boot_id, new.started, new.owner) == ("run-1", True, "boot-1", "2026-10-01T12:00:00Z", ME)
    assert ledger.held(None, Standing.FREE, seeker(), node(unschedulable=True, manager="kubectl"), NOW).cordoned is False


def test_an_adopted_claim_keeps_its_run_and_start_and_a_taken_over_one_does_not() -> None:
    old = claim(60, labels={"a": "b"}, boot_id="boot-0")
    adopted = ledger.held(old, Standing.ADOPTED, seeker(), node(unschedulable=True), NOW)
    assert adopted == replace(old, controller="here", pid=100, renewed="2026-10-01T12:00:00Z")
    taken = ledger.held(old, Standing.TAKEN_OVER, seeker(procedure="other"), node(unschedulable=True), NOW)
    assert (taken.run, taken.procedure, taken.boot_id, taken.cordoned, taken.labels) == ("run-1", "other", "boot-1", True, {"a": "b"})


def take(found: Any, before: Claim | None = None, protect: bool = True) -> handover.Step:
    return handover.take(found, before, ledger.held(before, Standing.OURS if before else Standing.FREE, seeker(), found, NOW), protect)


def test_what_is_protected_already_is_not_taken() -> None:
    key = "karpenter.sh/do-not-disrupt"
    step = take(node(annotations={key: "true"}))
    assert step.claim is not None
    assert step.claim.annotations == {"cluster-autoscaler.kubernetes.io/scale-down-disabled": None}
    assert key not in step.patch["metadata"]["annotations"]


def test_what_was_recorded_first_is_kept_when_it_was_changed_meanwhile() -> None:
    key = "karpenter.sh/do-not-disrupt"
    step = take(node(unschedulable=True, annotations={key: "false"}), claim(annotations={key: None}))
    assert step.claim is not None
    assert step.claim.annotations[key] is None
    assert step.patch["metadata"]["annotations"][key] == "true"
    assert "spec" not in step.patch


def test_a_node_that_somebody_uncordoned_becomes_our_cordon() -> None:
    step = take(node(), claim(cordoned=False), protect=False)
    assert step.claim is not None
    assert step.claim.cordoned is True
    assert step.patch["spec"] == {"unschedulable": True}


@pytest.mark.parametrize(
    ("found", "held", "kept_by"),
    [
        (node(), None, None),
        (node(unschedulable=True), claim(), None),
        (node(unschedulable=True), None, None),
        (node(unschedulable=True, manager="kubectl"), claim(), "kubectl"),
        (node(unschedulable=True, manager="kubectl"), claim(cordoned=False), "kubectl"),
        (node(unschedulable=True, manager="kubectl"), None, "kubectl"),
        (node(unschedulable=True, manager=""), claim(), None),
        (node(unschedulable=True, manager=""), claim(cordoned=False), "unknown"),
        (node(unschedulable=True, manager=""), None, "unknown"),
        (node(unschedulable=True, annotations={ledger.KEEP_CORDONED: "fan"}), claim(), f"{ledger.KEEP_CORDONED}: fan"),
        (node(annotations={ledger.KEEP_CORDONED: "fan"}), claim(), None),
    ],
)
def test_whose_cordon_stays(found: Any, held: Claim | None, kept_by: str | None) -> None:
    assert handover.cordon_kept_by(found, held) == kept_by


MARKS = st.dictionaries(st.sampled_from([*protection.ANNOTATIONS, "other"]), st.sampled_from(["true", "false", ""]))
LABELS = st.dictionaries(st.sampled_from([*protection.LABELS, "other"]), st.sampled_from(["true", "false", ""]))


def merged(document: dict[str, Any], patch: Any) -> dict[str, Any]:
    """RFC 7386."""
    result = dict(document)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key, {}), value) if isinstance(value, dict) else value
    return result


@settings(derandomize=True, max_examples=200)
@given(st.booleans(), MARKS, LABELS, st.booleans())
def test_giving_back_is_the_inverse_of_taking(cordoned: bool, annotations: dict[str, str], labels: dict[str, str], protect: bool) -> None:
    before = node(unschedulable=cordoned, manager="kubectl", annotations=annotations, labels=labels)
    step = take(before, protect=protect)
    during = merged(before, step.patch)
    if not cordoned:
        during["metadata"]["managedFields"] = node(unschedulable=True)["metadata"]["managedFields"]
    back = merged(during, handover.give_back(during, step.claim).patch)
    back["metadata"]["managedFields"] = before["metadata"]["managedFields"]
    assert back == before
    assert handover.preview(before, step)["protection"] == handover.view(during, step.claim)["protection"]


@pytest.mark.parametrize("state", sorted(handover.UPGRADING))
def test_the_upgrade_controller_s_node_is_not_given_back(state: str) -> None:
    found = node(labels={handover.UPGRADE_STATE: state})
    found["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    assert handover.unmet(found, "", "") == [f"the operator's driver upgrade is in state {state}"]


@pytest.mark.parametrize("state", ["", "upgrade-done", "upgrade-failed", "upgrade-required"])
def test_a_settled_node_is(state: str) -> None:
    found = node(labels={handover.UPGRADE_STATE: state})
    found["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    assert handover.unmet(found, "", "boot-1") == []


def test_a_process_is_alive_dead_reused_or_unknown() -> None:
    me = process.this_owner()
    assert me.pid == os.getppid()
    now = datetime.now(UTC)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        other = Owner(me.controller, child.pid)
        assert process.is_alive(other, me, now) is True
        assert process.is_alive(other, me, now - timedelta(hours=1)) is False  # the number was another process's then
        assert process.is_alive(Owner("elsewhere", child.pid), me, now) is None
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process.is_alive(other, me, now) is False  # a zombie
    assert process.is_alive(other, me, now) is False
