# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run is opened and closed on the host, with apt kept quiet in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host import record, runs
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.run import Completed
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.system import pause
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.modules import run_record

RUN = "20260101T120000Z-3f2a1c"
ON = {"active": True, "enabled": "enabled"}
OFF = {"active": False, "enabled": "disabled"}


class Machine:
    """A host whose systemd obeys, whose records lie in a temporary folder, and whose clock is set by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.units = {"apt-daily.timer": dict(ON), "apt-daily-upgrade.timer": dict(ON)}
        self.failed = ["nvidia-persistenced.service"]
        self.now = "2026-01-01T12:00:00Z"
        self.dies = False

    def systemctl(self, argv: list[str], timeout: float) -> Completed:
        """Start, stop, enable and disable."""
        assert timeout > 0
        if self.dies:
            raise KeyboardInterrupt
        _program, verb, unit = argv
        name, value = {"start": ("active", True), "stop": ("active", False), "enable": ("enabled", "enabled"), "disable": ("enabled", "disabled")}[verb]
        self.units[unit][name] = value
        return Completed(tuple(argv), 0, "", "")

    def states(self, names: list[str]) -> dict[str, dict[str, Any]]:
        """The units that the host has, of those named."""
        return {unit: dict(self.units[unit]) for unit in names if unit in self.units}

    def call(self, check_mode: bool = False, **parameters: Any) -> Any:
        """The module, with its defaults."""
        defaults = {name: option.get("default") for name, option in run_record.ARGUMENTS.items()}
        return run_record.work({**defaults, "run": RUN, **parameters}, check_mode, str(self.folder))


@pytest.fixture(name="machine")
def _machine(monkeypatch: Any, tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "runs")
    monkeypatch.setattr(pause, "run", machine.systemctl)
    monkeypatch.setattr(pause, "read_unit_states", machine.states)
    monkeypatch.setattr(run_record, "read_unit_states", machine.states)
    monkeypatch.setattr(run_record, "read_units", lambda: {"state": "degraded", "failed": machine.failed})
    monkeypatch.setattr(run_record, "read_boot_id", lambda: "0c2a1c2e")
    monkeypatch.setattr(run_record, "_now", lambda: machine.now)
    return machine


def test_starting_records_how_the_host_was_and_keeps_apt_quiet(machine: Machine) -> None:
    answer = machine.call(procedure="recover_kernel_mismatch", node="gpu-17", apt_timers="stopped")
    assert answer.extra["record"] == {
        "version": 1,
        "run": RUN,
        "procedure": "recover_kernel_mismatch",
        "node": "gpu-17",
        "controller": "",
        "state": "started",
        "started": "2026-01-01T12:00:00Z",
        "finished": None,
        "verdict": None,
        "boot_id": "0c2a1c2e",
        "kernel": run_record.os.uname().release,
        "failed_units": ["nvidia-persistenced.service"],
    }
    assert machine.units == {"apt-daily.timer": OFF, "apt-daily-upgrade.timer": OFF}
    assert [change.where for change in answer.plan] == ["apt-daily.timer", "apt-daily-upgrade.timer"]
    assert answer.before == {"record": None, "units": {"apt-daily.timer": ON, "apt-daily-upgrade.timer": ON}, "pruned": []}
    assert answer.after["units"] == {"apt-daily.timer": OFF, "apt-daily-upgrade.timer": OFF}


def test_starting_again_changes_nothing_and_keeps_the_first_view(machine: Machine) -> None:
    first = machine.call(procedure="p", apt_timers="stopped")
    machine.failed, machine.now = ["other.service"], "2026-01-01T12:30:00Z"
    again = machine.call(procedure="p", apt_timers="stopped")
    assert again.before == again.after
    assert again.extra["record"] == first.extra["record"]


def test_finishing_gives_the_units_back_and_closes_the_run(machine: Machine) -> None:
    machine.units["apt-daily-upgrade.timer"] = dict(OFF)
    machine.call(procedure="p", apt_timers="stopped")
    machine.now = "2026-01-01T12:20:00Z"
    answer = machine.call(state="finished", verdict="recovered", apt_timers="restored")
    assert machine.units == {"apt-daily.timer": ON, "apt-daily-upgrade.timer": OFF}
    assert [answer.extra["record"][name] for name in ("state", "finished", "verdict")] == ["finished", "2026-01-01T12:20:00Z", "recovered"]
    assert answer.extra["left"] == []
    again = machine.call(state="finished", apt_timers="restored")
    assert again.before == again.after


def test_check_mode_says_all_of_it_and_does_none(machine: Machine) -> None:
    answer = machine.call(check_mode=True, procedure="p", apt_timers="stopped")
    assert answer.after["units"] == {"apt-daily.timer": OFF, "apt-daily-upgrade.timer": OFF}
    assert answer.extra["record"]["failed_units"] == ["nvidia-persistenced.service"]
    assert machine.units == {"apt-daily.timer": ON, "apt-daily-upgrade.timer": ON}
    assert answer.msg == f"Run {RUN} would be started; would change apt-daily.timer, apt-daily-upgrade.timer."
    assert not machine.folder.exists()
    machine.call(procedure="p", apt_timers="stopped")
    kept = sorted(machine.folder.rglob("*.json"))
    machine.call(check_mode=True, state="finished", apt_timers="restored", keep_runs=0)
    assert machine.units == {"apt-daily.timer": OFF, "apt-daily-upgrade.timer": OFF}
    assert sorted(machine.folder.rglob("*.json")) == kept
    assert runs.load(RUN, str(machine.folder)) == runs.Run(
        RUN, "p", "", "", "2026-01-01T12:00:00Z", "0c2a1c2e", run_record.os.uname().release, ("nvidia-persistenced.service",)
    )


def test_a_start_that_dies_at_the_first_unit_is_finished_by_the_next(machine: Machine) -> None:
    machine.dies = True
    with pytest.raises(KeyboardInterrupt):
        machine.call(procedure="p", apt_timers="stopped")
    machine.dies = False
    assert [change.before for change in record.load(RUN, "run_record", str(machine.folder))] == [ON, ON]
    machine.call(procedure="p", apt_timers="stopped")
    machine.call(state="finished", apt_timers="restored")
    assert machine.units == {"apt-daily.timer": ON, "apt-daily-upgrade.timer": ON}


def test_a_unit_that_somebody_masked_meanwhile_is_named_and_left(machine: Machine) -> None:
    machine.call(procedure="p", apt_timers="stopped")
    machine.units["apt-daily.timer"]["enabled"] = "masked"
    answer = machine.call(state="finished", apt_timers="restored")
    assert answer.extra["left"] == ["apt-daily.timer"]
    assert machine.units == {"apt-daily.timer": {"active": False, "enabled": "masked"}, "apt-daily-upgrade.timer": ON}
    assert answer.msg == f"Run {RUN} is finished; changed apt-daily-upgrade.timer; left alone, since it is not ours any more: apt-daily.timer."


def test_undoing_an_old_run_leaves_what_an_open_run_has_stopped(machine: Machine) -> None:
    machine.call(procedure="p", apt_timers="stopped")
    machine.call(state="finished", apt_timers="restored")
    machine.call(run="newer", procedure="p", apt_timers="stopped")
    answer = machine.call(state="finished", apt_timers="restored")
    assert answer.extra["left"] == ["apt-daily.timer", "apt-daily-upgrade.timer"]
    assert machine.units["apt-daily.timer"] == OFF


def test_units_are_left_alone_unless_asked_for(machine: Machine) -> None:
    machine.call(procedure="p")
    machine.call(state="finished")
    assert machine.units == {"apt-daily.timer": ON, "apt-daily-upgrade.timer": ON}


def test_finishing_prunes_the_oldest_finished_runs(machine: Machine) -> None:
    for number in range(4):
        machine.now = f"2026-01-0{number + 1}T00:00:00Z"
        machine.call(run=f"run-{number}", procedure="p")
        machine.call(run=f"run-{number}", state="finished")
    machine.call(run="open", procedure="p")
    answer = machine.call(run="run-3", state="finished", keep_runs=2)
    assert (answer.before["pruned"], answer.after["pruned"]) == (["run-0", "run-1"], [])
    assert sorted(folder.name for folder in machine.folder.iterdir()) == ["open", "run-2", "run-3"]


def test_a_run_that_nothing_describes_has_nothing_to_close(machine: Machine) -> None:
    answer = machine.call(state="finished", apt_timers="restored")
    assert answer.before == answer.after
    assert (answer.extra["record"], answer.msg) == (None, f"Nothing on the host describes run {RUN}.")


def test_a_first_start_needs_the_procedure(machine: Machine) -> None:
    with pytest.raises(HygieneError, match="Give `procedure`"):
        machine.call()
    assert not machine.folder.exists()


def test_a_run_id_that_is_no_folder_name_is_refused(machine: Machine) -> None:
    with pytest.raises(HygieneError, match="names a folder"):
        machine.call(run="../etc", procedure="p")
