# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The undo record keeps what was there before the run, however often the run is started again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host import record
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import Change, HygieneError, merge
from hypothesis import given, settings
from hypothesis import strategies as st

HOLD = Change("hold", "linux-generic", "install", "hold", "apt-mark unhold linux-generic")


def test_a_saved_record_is_read_back(tmp_path: Path) -> None:
    record.save("r1", "kernel_pin", [HOLD], str(tmp_path))
    assert record.load("r1", "kernel_pin", str(tmp_path)) == [HOLD]
    assert record.load("r1", "grub_default", str(tmp_path)) == []
    written = json.loads((tmp_path / "r1" / "kernel_pin.json").read_text())
    assert (written["version"], written["run"], written["module"]) == (1, "r1", "kernel_pin")


def test_a_second_pass_of_the_same_run_keeps_the_first_before(tmp_path: Path) -> None:
    record.save("r1", "kernel_pin", [HOLD], str(tmp_path))
    record.save("r1", "kernel_pin", [Change("hold", "linux-generic", "hold", "hold"), Change("hold", "linux-image-generic", "install", "hold")], str(tmp_path))
    kept = record.load("r1", "kernel_pin", str(tmp_path))
    assert [(change.where, change.before, change.after) for change in kept] == [
        ("linux-generic", "install", "hold"),
        ("linux-image-generic", "install", "hold"),
    ]


changes = st.lists(st.builds(Change, st.just("hold"), st.sampled_from("abc"), st.sampled_from("xyz"), st.sampled_from("xyz"), st.just("")))


@settings(derandomize=True)
@given(st.lists(changes, min_size=1, max_size=4))
def test_merging_passes_keeps_the_first_before_and_the_last_after_of_each_thing(passes: list[list[Change]]) -> None:
    merged: list[Change] = []
    for planned in passes:
        merged = merge(merged, planned)
    flat = [change for planned in passes for change in planned]
    assert {change.key for change in merged} == {change.key for change in flat}
    for change in merged:
        same = [other for other in flat if other.key == change.key]
        assert (change.before, change.after) == (same[0].before, same[-1].after)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2, "changes": []}', '{"version": 1, "changes": [{"what": 1}]}'])
def test_an_unreadable_record_is_a_refusal_that_names_the_file(tmp_path: Path, text: str) -> None:
    os.makedirs(tmp_path / "r1")
    (tmp_path / "r1" / "kernel_pin.json").write_text(text)
    with pytest.raises(HygieneError, match="kernel_pin.json cannot be read"):
        record.load("r1", "kernel_pin", str(tmp_path))


@pytest.mark.parametrize("run", ["", "../x", "a/b", ".hidden", "-x", "x" * 65, "a b"])
def test_a_run_id_that_is_no_safe_folder_name_is_refused(tmp_path: Path, run: str) -> None:
    with pytest.raises(HygieneError, match="run id"):
        record.save(run, "kernel_pin", [HOLD], str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_runs_are_listed_oldest_first(tmp_path: Path) -> None:
    for order, run in enumerate(["b", "a", "c"]):
        record.save(run, "kernel_pin", [HOLD], str(tmp_path))
        os.utime(tmp_path / run / "kernel_pin.json", ns=(order, order))
    os.makedirs(tmp_path / "empty")
    assert record.runs_with("kernel_pin", str(tmp_path)) == ["b", "a", "c"]
    assert record.runs_with("kernel_pin", str(tmp_path / "none")) == []
