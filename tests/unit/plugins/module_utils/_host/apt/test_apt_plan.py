# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which selections change when a pin comes or goes, over several runs and with people in between."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.plan import plan_absent, plan_present, undo_command, vanished
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import Change, HygieneError
from hypothesis import given
from hypothesis import strategies as st


def claim(name: str, before: str, after: Optional[str] = "hold") -> Change:
    """A recorded hold."""
    return Change("hold", name, before, after, undo_command(name, before))


def given_back(changes: tuple[Change, ...]) -> dict[str, tuple[str, str]]:
    return {change.where: (change.before, change.after) for change in changes}


def test_every_package_of_the_set_is_claimed_and_the_undo_is_a_command() -> None:
    found = plan_present(["a", "b"], {"a": "install", "b": "hold", "c": "install"})
    assert found == [Change("hold", "a", "install", "hold", "echo 'a install' | dpkg --set-selections"), Change("hold", "b", "hold", "hold", "")]


@pytest.mark.parametrize(
    ("records", "chosen", "now", "expected", "gone"),
    [
        pytest.param([("r1", [claim("a", "install")])], ["r1"], {"a": "hold"}, {"a": ("hold", "install")}, (), id="ours goes back"),
        pytest.param([("r1", [claim("a", "deinstall")])], ["r1"], {"a": "hold"}, {"a": ("hold", "deinstall")}, (), id="to exactly what it was"),
        pytest.param([("r1", [claim("a", "hold")])], ["r1"], {"a": "hold"}, {}, (), id="a person's hold stays"),
        pytest.param([("r1", [claim("a", "hold")])], ["r1"], {"a": "install"}, {}, (), id="a person's hold that the person took away is not set again"),
        pytest.param([("r1", [claim("a", "install")])], ["r1"], {"a": "install"}, {}, (), id="already given back by hand"),
        pytest.param([("r1", [claim("a", "install", None)])], ["r1"], {"a": "hold"}, {}, (), id="given back before; the hold is somebody's since"),
        pytest.param([("r1", [claim("a", "install")])], ["r1"], {}, {}, ("a",), id="the package is gone"),
        pytest.param([("r1", [claim("a", "install")])], [], {"a": "hold"}, {}, (), id="another run is undone"),
        pytest.param(
            [("r1", [claim("a", "install")]), ("r2", [claim("a", "hold")])], ["r2"], {"a": "hold"}, {}, (), id="an earlier run still holds it",
        ),
        pytest.param(
            [("r1", [claim("a", "install")]), ("r2", [claim("a", "hold")])], ["r1", "r2"], {"a": "hold"}, {"a": ("hold", "install")}, (),
            id="all runs: the first start",
        ),
        pytest.param(
            [("r1", [claim("a", "hold")]), ("r2", [claim("a", "install")])], ["r1", "r2"], {"a": "hold"}, {"a": ("hold", "install")}, (),
            id="all runs: a person took the hold away in between",
        ),
        pytest.param(
            [("r1", [claim("a", "install")]), ("r2", [claim("a", "hold", None)])], ["r1"], {"a": "hold"}, {"a": ("hold", "install")}, (),
            id="a later run that was undone relies on nothing",
        ),
    ],
)
def test_what_is_given_back(
    records: list[tuple[str, list[Change]]], chosen: list[str], now: dict[str, str], expected: dict[str, tuple[str, Any]], gone: tuple[str, ...]
) -> None:
    found = plan_absent(records, chosen, now)
    assert given_back(found.changes) == expected
    assert found.gone == gone


def test_a_later_run_that_relies_on_the_hold_is_a_refusal() -> None:
    records = [("r1", [claim("a", "install"), claim("b", "install")]), ("r2", [claim("a", "hold")])]
    with pytest.raises(HygieneError) as refusal:
        plan_absent(records, ["r1"], {"a": "hold", "b": "hold"})
    assert refusal.value.seen == "Holds of this run are also what a later one relies on: a (r2)"
    assert "Undo the later run first (r2)" in refusal.value.remedy


def test_a_selection_that_a_person_changed_is_a_refusal() -> None:
    with pytest.raises(HygieneError) as refusal:
        plan_absent([("r1", [claim("a", "install")])], ["r1"], {"a": "purge"})
    assert refusal.value.seen == "The selections of these packages were changed since: a (purge)"
    assert refusal.value.facts == {"were": {"a": "install"}}


def test_vanished_holds_are_those_that_a_pin_in_force_relies_on() -> None:
    records = [[claim("a", "install"), claim("b", "install"), claim("c", "install", None)], [claim("a", "hold"), claim("gone", "install")]]
    assert vanished(records, {"a": "install", "b": "hold", "c": "install"}) == ["a"]


WANTS = st.sampled_from(["install", "hold", "deinstall", "purge"])


@given(st.dictionaries(st.sampled_from("abcdef"), WANTS), st.lists(st.sets(st.sampled_from("abcdef")), min_size=1, max_size=4))
def test_pins_taken_away_in_any_number_leave_what_was_there(original: dict[str, str], pins: list[set[str]]) -> None:
    now = dict(original)
    records = []
    for number, names in enumerate(pins):
        claims = plan_present(sorted(names & set(now)), now)
        now.update({change.where: change.after for change in claims})
        records.append((f"r{number}", claims))
    runs = [run for run, _changes in records]
    at_once = {**now, **{change.where: change.after for change in plan_absent(records, runs, now).changes}}
    assert at_once == original
    for index in reversed(range(len(records))):  # or newest first, each marked as given back
        run, claims = records[index]
        now.update({change.where: change.after for change in plan_absent(records, [run], now).changes})
        records[index] = (run, [replace(change, after=None) for change in claims])
    assert now == original
