# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rule files: every way to break the schema is named, and folders are read anew when they change."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis import paths
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.derive import derive
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.load import load_rules
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.operations import OPERATIONS
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.schema import parse_rules
from hypothesis import given, settings
from hypothesis import strategies as st

SIGN = {"path": "a", "op": "equals", "value": 1}
GOOD: dict[str, Any] = {"id": "x-1", "severity": "info", "summary": "s", "signs": [SIGN], "remedy": {"kind": "manual", "name": "m"}}
GUIDE = Path(__file__).parents[5] / "docs/rules.md"


def test_a_rule_gets_its_defaults() -> None:
    [rule] = parse_rules(GOOD, "file.yml")
    assert (rule.id, rule.docs, rule.origin, rule.look_alikes) == ("x-1", "docs/findings/x-1.md", "file.yml", ())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "Upper"}, "id is 'Upper', wanted are small letters and digits with single dashes between"),
        ({"id": 7}, "id is 7, wanted"),
        ({"severity": "fatal"}, "severity is 'fatal', wanted is one of critical, warning, info"),
        ({"summary": " "}, "summary is empty, wanted is a text"),
        ({"summary": 3}, "summary is a number, wanted is a text"),
        ({"summary": "{name}"}, "{name} is used in a text, but facts does not define it"),
        ({"sumary": "s"}, "the rule has sumary, which is not known there; known are docs, facts, id"),
        ({"facts": []}, "facts is a list, wanted is a mapping"),
        ({"facts": {"Name": "a"}}, "facts has the name 'Name'"),
        ({"facts": {"name": "a["}}, "facts.name is not a JMESPath"),
        ({"signs": []}, "signs is empty, wanted is a list of signs"),
        ({"signs": SIGN}, "signs is a mapping, wanted is a list of signs"),
        ({"signs": ["a"]}, "signs[0] is a text, wanted is a mapping"),
        ({"signs": [{"path": "a"}]}, "signs[0] lacks op"),
        ({"signs": [SIGN | {"op": "is"}]}, "signs[0].op is 'is', wanted is one of equals"),
        ({"signs": [SIGN | {"path": "a."}]}, "signs[0].path is not a JMESPath"),
        ({"signs": [SIGN | {"value": None}]}, "signs[0].value is null"),
        ({"signs": [SIGN | {"value_from": "b"}]}, "signs[0] needs either value or value_from for equals"),
        ({"signs": [{"path": "a", "op": "equals"}]}, "signs[0] needs either value or value_from for equals"),
        ({"signs": [SIGN | {"op": "empty"}]}, "signs[0] has value, but empty takes none"),
        ({"signs": [SIGN | {"op": "matches", "value": "("}]}, "signs[0].value is not a regular expression"),
        ({"signs": [{"path": "a", "op": "matches", "value_from": "b"}]}, "the pattern of matches must be written in the rule"),
        ({"signs": [SIGN | {"suggests": "yes"}]}, "signs[0].suggests is a text, wanted is true or false"),
        ({"signs": [{"any": []}]}, "signs[0].any is empty"),
        ({"signs": [{"all": [SIGN, {"any": [{}]}]}]}, "signs[0].all[1].any[0] lacks op, path"),
        ({"look_alikes": {}}, "look_alikes is a mapping, wanted is a list"),
        ({"look_alikes": [{"id": "y"}]}, "look_alikes[0] lacks signs"),
        ({"remedy": []}, "remedy is an empty list"),
        ({"remedy": {"kind": "magic", "name": "m"}}, "remedy.kind is 'magic', wanted is one of playbook, command, manual"),
        ({"remedy": {"kind": "manual", "name": "m", "vars": {"a": 1}}}, "remedy.vars is not a mapping from names to texts"),
        ({"remedy": {"kind": "manual", "name": "m", "when": [SIGN]}}, "remedy is the last and must not have `when`"),
        ({"remedy": [{"kind": "manual", "name": "m"}] * 2}, "remedy[0] is not the last and must have `when`"),
        ({"docs": None}, "docs is null, wanted is a text"),
    ],
)
def test_a_broken_rule_is_refused_with_its_place(change: dict[str, Any], said: str) -> None:
    with pytest.raises(HygieneError) as refusal:
        parse_rules([GOOD, GOOD | change], "file.yml")
    name = change["id"] if isinstance(change.get("id"), str) else "number 2" if "id" in change else "x-1"
    assert refusal.value.seen.startswith(f"Rule {name} in file.yml: ")
    assert said in refusal.value.seen


@pytest.mark.parametrize("document", [None, "x", 3, [None]])
def test_a_file_without_a_mapping_is_refused(document: Any) -> None:
    with pytest.raises(HygieneError, match=r"Rule number 1 in f: the rule is .*, wanted is a mapping"):
        parse_rules(document, "f")


@settings(derandomize=True, max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*GOOD, "path", "op", "any", "when", "value"]), inner, max_size=5),
        max_leaves=10,
    )
)
def test_no_document_makes_it_raise_anything_else(document: Any) -> None:
    with contextlib.suppress(HygieneError):
        parse_rules(document, "f")


def test_folders_of_one_s_own_are_added_and_read_anew_when_they_change(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump(GOOD))
    (tmp_path / "README.md").write_text("not a rule")
    built_in = {rule.id for rule in load_rules()}
    assert {rule.id for rule in load_rules([tmp_path])} == built_in | {"x-1"}
    file.write_text(yaml.safe_dump([GOOD, GOOD | {"id": "x-2"}]))
    os.utime(file, ns=(1, 1))
    assert {rule.id for rule in load_rules([str(tmp_path)])} == built_in | {"x-1", "x-2"}


def test_an_id_used_twice_is_refused_and_both_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "own.yml").write_text(yaml.safe_dump(GOOD | {"id": "kernel-not-pinned"}))
    with pytest.raises(HygieneError, match=rf"Two rules have the id kernel-not-pinned: one in \S+/packages.yml, one in {tmp_path}/own.yml"):
        load_rules([tmp_path])


def test_a_folder_that_is_not_there_and_a_file_that_is_no_yaml_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HygieneError, match="is not a directory"):
        load_rules([tmp_path / "nowhere"])
    (tmp_path / "own.yml").write_text("a: [")
    with pytest.raises(HygieneError, match=r"The rule file \S+/own.yml cannot be read"):
        load_rules([tmp_path])


def test_the_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "jmespath", None)
    with pytest.raises(HygieneError, match="Install it there: `python3 -m pip install jmespath`"):
        paths.compile_path("never.compiled.before")


def test_the_guide_s_example_is_a_rule_and_its_tables_are_complete() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    [example] = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    [rule] = parse_rules(yaml.safe_load(example), str(GUIDE))
    assert rule.id == "example-kernel-tainted"
    operations, _rest, derived = guide.partition("## Unknown is not healthy")
    assert {name for row in re.findall(r"^\| (`.*?) \|", operations, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)} == set(OPERATIONS)
    facts = derived.partition("### `derived`")[2]
    assert {name for row in re.findall(r"^\| (`.*?) \|", facts, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)} == set(derive({}))
