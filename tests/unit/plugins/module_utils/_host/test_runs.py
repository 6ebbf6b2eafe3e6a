# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs are described once, listed newest first, and pruned without losing what is still open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host import record, runs
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import Change, HygieneError
from hypothesis import given, settings
from hypothesis import strategies as st

FIRST = runs.Run(
    run="20260101T120000Z-3f2a1c",
    procedure="recover_kernel_mismatch",
    node="gpu-17",
    controller="bastion-1",
    started="2026-01-01T12:00:00Z",
    boot_id="0c2a1c2e",
    kernel="7.0.0-15-generic",
    failed_units=("nvidia-persistenced.service",),
)
HOLD = Change("hold", "linux-generic", "install", "hold", "apt-mark unhold linux-generic")


def described(run: str, started: str, state: str = runs.FINISHED) -> runs.Run:
    return runs.Run(run=run, procedure="p", node="", controller="", started=started, boot_id="b", kernel="k", failed_units=(), state=state)


def test_a_description_comes_back_as_it_was_written(tmp_path: Path) -> None:
    runs.save(FIRST, str(tmp_path))
    assert runs.load(FIRST.run, str(tmp_path)) == FIRST
    assert json.loads((tmp_path / FIRST.run / "run.json").read_text())["version"] == 1


def test_what_the_first_start_saw_is_kept() -> None:
    again = described(FIRST.run, "2026-01-01T12:30:00Z")
    assert runs.start(FIRST, again) == FIRST
    assert runs.start(None, FIRST) == FIRST


def test_a_finished_run_is_open_again_when_started_again() -> None:
    finished = runs.finish(FIRST, "2026-01-01T12:20:00Z", "recovered")
    assert (finished.state, finished.finished, finished.verdict) == ("finished", "2026-01-01T12:20:00Z", "recovered")
    assert runs.start(finished, finished) == FIRST


def test_finishing_twice_keeps_the_first_time() -> None:
    finished = runs.finish(FIRST, "2026-01-01T12:20:00Z", "recovered")
    assert runs.finish(finished, "2026-01-01T13:00:00Z", None) == finished


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2, "failed_units": []}', '{"version": 1}', '{"version": 1, "failed_units": [], "other": 1}'])
def test_a_damaged_description_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.json").write_text(text)
    with pytest.raises(HygieneError, match=r"a/run.json, cannot be read"):
        runs.load("a", str(tmp_path))


def test_a_run_id_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HygieneError, match="names a folder"):
        runs.save(described("../x", "2026"), str(tmp_path))
    with pytest.raises(HygieneError, match="names a folder"):
        runs.prune("..", str(tmp_path))


def test_the_listing_is_newest_first_and_joins_description_and_changes(tmp_path: Path) -> None:
    folder = str(tmp_path)
    runs.save(described("zz-older", "2025-01-01T00:00:00Z"), folder)
    runs.save(FIRST, folder)
    record.save(FIRST.run, "kernel_pin", [HOLD], folder)
    rows = runs.listing(folder)
    assert [row["run"] for row in rows] == [FIRST.run, "zz-older"]
    assert rows[0] == {
        **{name: value for name, value in FIRST.as_dict().items() if name != "version"},
        "modules": ["kernel_pin"],
        "changes": [HOLD.as_dict()],
        "problem": None,
    }


def test_a_module_called_by_itself_is_listed_without_description(tmp_path: Path) -> None:
    record.save("adhoc-20260101T000000Z", "kernel_pin", [HOLD], str(tmp_path))
    (row,) = runs.listing(str(tmp_path))
    assert (row["run"], row["state"], row["modules"], row["changes"]) == ("adhoc-20260101T000000Z", None, ["kernel_pin"], [HOLD.as_dict()])
    assert row["started"] is not None


def test_one_damaged_record_does_not_hide_the_others(tmp_path: Path) -> None:
    runs.save(FIRST, str(tmp_path))
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "kernel_pin.json").write_text("{")
    rows = {row["run"]: row for row in runs.listing(str(tmp_path))}
    assert rows[FIRST.run]["problem"] is None
    assert (rows["bad"]["changes"], "kernel_pin.json" in rows["bad"]["problem"]) == (None, True)


def test_no_folder_lists_no_runs(tmp_path: Path) -> None:
    assert runs.listing(str(tmp_path / "none")) == []


def test_other_things_in_the_folder_are_no_runs(tmp_path: Path) -> None:
    (tmp_path / ".tmp").mkdir()
    (tmp_path / "file").write_text("")
    assert runs.listing(str(tmp_path)) == []


def rows(*pairs: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"run": run, "state": state, "problem": None, "changes": []} for run, state in pairs]


def test_the_oldest_finished_runs_are_surplus() -> None:
    known = rows(("5", "started"), ("4", "finished"), ("3", "finished"), ("2", None), ("1", "started"), ("0", "finished"))
    assert runs.surplus(known, 3, "5") == ["0", "2"]
    assert runs.surplus(known, 20, "5") == []
    assert runs.surplus(known, 0, "5") == ["0", "2", "3", "4"]


@given(st.lists(st.sampled_from(["started", "finished", None]), max_size=30), st.integers(0, 30), st.integers(0, 29))
@settings(derandomize=True, deadline=None)
def test_pruning_never_takes_an_open_run_the_current_one_or_one_of_the_newest(states: list[Any], keep: int, current: int) -> None:
    known = rows(*((str(place), state) for place, state in enumerate(states)))
    gone = runs.surplus(known, keep, str(current))
    assert str(current) not in gone
    assert all(states[int(run)] != "started" for run in gone)
    assert not {int(run) for run in gone} & set(range(keep - 1))


def test_pruning_removes_the_whole_run(tmp_path: Path) -> None:
    runs.save(FIRST, str(tmp_path))
    record.save(FIRST.run, "kernel_pin", [HOLD], str(tmp_path))
    runs.prune(FIRST.run, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_what_an_open_run_has_changed_is_in_use_for_the_others() -> None:
    known = rows(("new", "started"), ("old", "finished"), ("broken", "started"))
    known[0]["changes"] = [HOLD.as_dict()]
    known[1]["changes"] = [{**HOLD.as_dict(), "where": "linux-image-generic"}]
    known[2]["changes"] = None
    assert runs.in_use_by_others(known, "hold", "old") == {"linux-generic"}
    assert runs.in_use_by_others(known, "hold", "new") == set()
    assert runs.in_use_by_others(known, "unit", "old") == set()
