# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Units are paused and given back exactly as they were, by whoever still owns them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.run import Completed
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.system import pause
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from hypothesis import given, settings
from hypothesis import strategies as st

ON = {"active": True, "enabled": "enabled"}
OFF = {"active": False, "enabled": "disabled"}
STATE = st.fixed_dictionaries({"active": st.booleans(), "enabled": st.sampled_from(["enabled", "disabled", "static", "masked", "generated", ""])})
STATES = st.dictionaries(st.sampled_from(pause.APT_UNITS), STATE)


class Systemd:
    """Units that obey systemctl."""

    def __init__(self, states: dict[str, dict[str, Any]]) -> None:
        self.states = {unit: dict(state) for unit, state in states.items()}
        self.calls: list[str] = []

    def run(self, argv: list[str], timeout: float) -> Completed:
        """Carry one call out."""
        _systemctl, verb, unit = argv
        self.calls.append(f"{verb} {unit}")
        if verb in ("start", "stop"):
            self.states[unit]["active"] = verb == "start"
        else:
            self.states[unit]["enabled"] = f"{verb}d"
        return Completed(tuple(argv), 0, "", "")

    def read(self, names: list[str]) -> dict[str, dict[str, Any]]:
        """The states of some units."""
        return {unit: dict(self.states[unit]) for unit in names if unit in self.states}


@pytest.fixture(name="systemd")
def _systemd(monkeypatch: Any) -> Systemd:
    systemd = Systemd({"apt-daily.timer": ON, "apt-daily-upgrade.timer": {"active": False, "enabled": "enabled"}, "unattended-upgrades.service": OFF})
    monkeypatch.setattr(pause, "run", systemd.run)
    monkeypatch.setattr(pause, "read_unit_states", systemd.read)
    return systemd


def test_pausing_stops_before_it_disables_and_leaves_what_is_off(systemd: Systemd) -> None:
    changes = pause.plan_pause(systemd.states)
    pause.apply(changes)
    assert systemd.calls == ["stop apt-daily.timer", "disable apt-daily.timer", "disable apt-daily-upgrade.timer"]
    assert set(map(str, systemd.states.values())) == {str(OFF)}
    assert changes[0].undo == "systemctl enable apt-daily.timer && systemctl start apt-daily.timer"


def test_giving_back_restores_each_as_it_was(systemd: Systemd) -> None:
    before = systemd.read(list(systemd.states))
    changes = pause.plan_pause(systemd.states)
    pause.apply(changes)
    returned, left = pause.plan_return(changes, systemd.states)
    pause.apply(returned)
    assert (systemd.states, left) == (before, [])


@given(STATES)
@settings(derandomize=True, deadline=None)
def test_pause_and_return_are_inverse_for_any_states(states: dict[str, dict[str, Any]]) -> None:
    systemd = Systemd(states)
    changes = pause.plan_pause(systemd.states)
    for call in pause.commands(changes):
        systemd.run(call, 1)
    assert pause.plan_pause(systemd.states) == []
    returned, left = pause.plan_return(changes, systemd.states)
    for call in pause.commands(returned):
        systemd.run(call, 1)
    assert (systemd.states, left) == (states, [])


def test_what_is_back_already_needs_nothing() -> None:
    changes = pause.plan_pause({"apt-daily.timer": ON})
    assert pause.plan_return(changes, {"apt-daily.timer": ON}) == ([], [])


def test_a_unit_that_somebody_masked_since_is_left_alone() -> None:
    changes = pause.plan_pause({"apt-daily.timer": ON})
    assert pause.plan_return(changes, {"apt-daily.timer": {"active": False, "enabled": "masked"}}) == ([], ["apt-daily.timer"])


def test_a_unit_that_another_run_wants_paused_stays_so() -> None:
    changes = pause.plan_pause({"apt-daily.timer": ON})
    assert pause.plan_return(changes, {"apt-daily.timer": OFF}, {"apt-daily.timer"}) == ([], ["apt-daily.timer"])


def test_a_unit_that_was_uninstalled_since_is_forgotten() -> None:
    changes = pause.plan_pause({"apt-daily.timer": ON})
    assert pause.plan_return(changes, {}) == ([], [])


def test_a_unit_that_does_not_obey_is_an_error(systemd: Systemd, monkeypatch: Any) -> None:
    changes = pause.plan_pause(systemd.states)
    monkeypatch.setattr(pause, "run", lambda argv, timeout: Completed(tuple(argv), 0, "", ""))
    with pytest.raises(HygieneError, match="Something else on the host works on the unit"):
        pause.apply(changes)


@pytest.mark.parametrize("rc", [None, 1])
def test_a_systemctl_that_fails_or_hangs_is_an_error(systemd: Systemd, monkeypatch: Any, rc: Any) -> None:
    changes = pause.plan_pause(systemd.states)
    monkeypatch.setattr(pause, "run", lambda argv, timeout: Completed(tuple(argv), rc, "", "no"))
    with pytest.raises(HygieneError, match="systemctl stop apt-daily.timer"):
        pause.apply(changes)
