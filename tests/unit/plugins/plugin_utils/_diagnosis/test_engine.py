# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine: three-valued logic, one look-up per path, and no evidence that upsets it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis import engine
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.engine import diagnose
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.load import load_rules
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.paths import look_up
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.schema import Rule, parse_rules
from ansible_collections.gpunode.hygiene.tests.unit.plugins.plugin_utils._diagnosis.evidence import healthy, incident
from hypothesis import given, settings
from hypothesis import strategies as st

RULES = load_rules()
PARTS = ("host", "cluster", "images")


def rule(**fields: Any) -> list[Rule]:
    """A rule with these fields, and the least of the others."""
    least = {"id": "x", "severity": "info", "summary": "s", "signs": [{"path": "a", "op": "equals", "value": 1}], "remedy": {"kind": "manual", "name": "m"}}
    return parse_rules({**least, **fields}, "test")


def outcome(evidence: dict[str, Any], **fields: Any) -> str | None:
    """The confidence of the finding, or None."""
    found = diagnose({"node": "n", **evidence}, rule(**fields))
    return found[0].confidence if found else None


def sign(path: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "op": "equals", "value": 1, **more}


@pytest.mark.parametrize(
    ("signs", "evidence", "expected"),
    [
        ([sign("a"), sign("b")], {"a": 1, "b": 1}, "certain"),
        ([sign("a"), sign("b")], {"a": 1, "b": 2}, None),
        ([sign("a"), sign("b")], {"a": 1}, None),
        ([sign("a", suggests=True), sign("b")], {"a": 1}, "possible"),
        ([sign("a", suggests=True), sign("b")], {"a": 1, "b": 2}, None),
        ([sign("a", suggests=True), sign("b")], {}, None),
        ([{"any": [sign("a"), sign("b")]}], {"b": 1}, "certain"),
        ([{"any": [sign("a"), sign("b")]}], {"b": 2}, None),
        ([{"any": [sign("a"), sign("b")]}], {"a": 2, "b": 2}, None),
        ([{"any": [sign("a"), {"all": [sign("b"), sign("c")]}]}], {"a": 2, "b": 1, "c": 1}, "certain"),
        ([{"any": [sign("a"), sign("b")]}, sign("c", suggests=True)], {"c": 1}, "possible"),
        ([sign("a", complete="whole", suggests=True)], {"a": 2, "whole": True}, None),
        ([sign("c", suggests=True), sign("a", complete="whole")], {"a": 2, "c": 1}, "possible"),
        ([sign("c", suggests=True), sign("a", complete="whole")], {"a": 2, "c": 1, "whole": False}, "possible"),
        ([sign("c", suggests=True), sign("a", complete="whole")], {"a": 2, "c": 1, "whole": True}, None),
        ([sign("a", complete="whole")], {"a": 1}, "certain"),
        ([{"path": "a", "op": "equals", "value_from": "b"}], {"a": 1, "b": 1}, "certain"),
        ([{"path": "a", "op": "equals", "value_from": "b", "suggests": True}], {"a": 1}, None),
        ([{"path": "a", "op": "matches", "value": "x"}], {"a": 7}, None),
        ([sign("c", suggests=True), {"path": "a", "op": "matches", "value": "x"}], {"a": 7, "c": 1}, "possible"),
    ],
)
def test_signs_are_true_false_or_unknown(signs: list[dict[str, Any]], evidence: dict[str, Any], expected: str | None) -> None:
    assert outcome(evidence, signs=signs) == expected


@pytest.mark.parametrize(("evidence", "expected"), [({"b": 2}, "certain"), ({"b": 1}, None), ({}, "possible")])
def test_a_look_alike_excludes_when_it_holds_and_casts_doubt_when_it_is_unknown(evidence: dict[str, Any], expected: str | None) -> None:
    assert outcome({"a": 1, **evidence}, look_alikes=[{"id": "other", "signs": [sign("b")]}]) == expected


@pytest.mark.parametrize(
    ("more", "evidence", "said"),
    [
        ({"otherwise": "b is something else"}, {"b": 2}, "b is something else"),
        ({}, {"b": 2}, "b is 2, not: equals 1"),
        ({}, {}, "not excluded: it cannot be told without b"),
    ],
)
def test_a_finding_says_what_excluded_a_look_alike(more: dict[str, Any], evidence: dict[str, Any], said: str) -> None:
    [found] = diagnose({"node": "n", "a": 1, **evidence}, rule(look_alikes=[{"id": "other", "signs": [sign("b", **more)]}]))
    assert list(found.considered) == [{"id": "other", "excluded_by": said}]


def test_texts_are_filled_from_facts_and_unknown_variables_left_out() -> None:
    [found] = diagnose(
        {"node": "n", "a": 1, "names": ["x", "y"]},
        rule(
            summary="{names} and {none}",
            facts={"names": "names", "none": "nothing.here"},
            remedy={"kind": "playbook", "name": "p", "vars": {"given": "{names}", "left_out": "{none}"}},
        ),
    )
    assert found.summary == "x, y and unknown"
    assert dict(found.remedy.vars) == {"given": "x, y"}


def test_the_first_remedy_whose_signs_hold_is_taken() -> None:
    remedies = [
        {"kind": "command", "name": "first", "when": [sign("b")]},
        {"kind": "command", "name": "second", "when": [sign("c")]},
        {"kind": "manual", "name": "last"},
    ]
    names = [diagnose({"node": "n", "a": 1, **evidence}, rule(remedy=remedies))[0].remedy.name for evidence in ({"b": 1, "c": 1}, {"c": 1}, {"b": 2})]
    assert names == ["first", "second", "last"]


def test_a_long_value_is_quoted_in_part_and_of_a_log_the_line_that_matched() -> None:
    [found] = diagnose({"node": "n", "a": "x" * 500}, rule(signs=[{"path": "a", "op": "matches", "value": "x"}]))
    assert found.evidence[0].text == "x" * 299 + "…"
    [found] = diagnose({"node": "n", "a": ["one", "two"]}, rule(signs=[{"path": "a", "op": "matches", "value": "w"}]))
    assert found.evidence[0].text == "two"


def test_each_distinct_path_is_looked_up_once_per_node(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(path: str, evidence: Any) -> Any:
        asked.append(path)
        return look_up(path, evidence)

    monkeypatch.setattr(engine, "look_up", counted)
    diagnose(incident(), RULES)
    assert len(asked) == len(set(asked)) > 20


def test_a_list_gives_each_node_s_findings_most_severe_first() -> None:
    found = diagnose([{**incident(), "node": "b"}, {**incident(), "node": "a"}], RULES)
    severities = [(finding.node, finding.severity) for finding in found]
    order = ["critical", "warning", "info"]
    assert severities == sorted(severities, key=lambda entry: (entry[0] != "b", order.index(entry[1])))
    assert {node for node, _severity in severities} == {"a", "b"}


@pytest.mark.parametrize("evidence", [None, "x", 1, {}, {"node": ""}, {"node": 3}, [["x"]]])
def test_evidence_without_a_node_is_refused(evidence: Any) -> None:
    with pytest.raises(HygieneError, match="A finding must say which node it is about"):
        diagnose(evidence, RULES)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, item in items for place in places(item, (*path, key))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with what is at the place replaced."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


NODES = [incident(), healthy()]
PLACES = [(index, path) for index, node in enumerate(NODES) for path in places(node) if path != ("node",)]


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from([*PARTS, "target", "policy", "unreachable", "derived"]), json_values))
def test_no_evidence_makes_it_raise(parts: dict[str, Any]) -> None:
    for finding in diagnose({"node": "n", **parts}, RULES):
        assert json.loads(json.dumps(finding.as_dict())) == finding.as_dict()


@settings(derandomize=True, max_examples=250, deadline=None)
@given(st.sampled_from(PLACES), json_values)
def test_no_single_spoilt_value_makes_it_raise(place: tuple[int, tuple[Any, ...]], value: Any) -> None:
    index, path = place
    for finding in diagnose(replaced(NODES[index], path, value), RULES):
        assert finding.confidence == ("possible" if finding.missing else "certain")


@pytest.mark.parametrize("node", NODES, ids=["incident", "healthy"])
def test_what_is_missing_is_never_held_against_the_node(node: dict[str, Any]) -> None:
    """No value at all, when it is unknown, makes a finding certain that was not there before."""
    before = {finding.id for finding in diagnose(node, RULES)} | {"evidence-incomplete"}
    new = {
        (path, finding.id)
        for path in places(node)
        if path != ("node",)
        for finding in diagnose(replaced(node, path, None), RULES)
        if finding.confidence == "certain" and finding.id not in before
    }
    assert new == set()


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_was_not_gathered_is_reported(part: str) -> None:
    [found] = [finding for finding in diagnose({**healthy(), part: None}, RULES) if finding.id == "evidence-incomplete"]
    assert found.summary == f"Not everything could be read: {part}: {'not looked up' if part == 'images' else 'not gathered'}."
