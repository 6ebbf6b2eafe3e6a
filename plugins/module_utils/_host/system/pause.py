# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Units that are kept from running for a while: stopped and disabled, so that a reboot in between does not start them, and given back as found."""

from __future__ import annotations

from typing import Any, Collection, Iterable, Mapping, Sequence

from ..._model import Change, HygieneError
from ..run import run
from .units import read_unit_states

WHAT = "unit"
# What starts apt by itself on Ubuntu and Debian. The services behind the timers are left to end: a dpkg that is cut short is worse than a wait.
APT_UNITS = ("apt-daily.timer", "apt-daily-upgrade.timer", "unattended-upgrades.service")
# Stopping unattended-upgrades.service waits for the package it is at.
_TIMEOUT = 300.0

States = Mapping[str, Mapping[str, Any]]


def paused(state: Mapping[str, Any]) -> dict[str, Any]:
    """How a paused unit is: not active, and disabled when it was enabled. Masked, static and generated units stay what they are."""
    return {"active": False, "enabled": "disabled" if state["enabled"] == "enabled" else state["enabled"]}


def plan_pause(states: States) -> list[Change]:
    """What pausing changes, of units as they are now."""
    return [_change(unit, state, paused(state)) for unit, state in states.items() if state != paused(state)]


def plan_return(recorded: Iterable[Change], states: States, in_use: Collection[str] = ()) -> tuple[list[Change], list[str]]:
    """What giving back changes, and the units that are left alone because somebody else changed them since.

    Each of a unit's two properties is given back where it still is as the pause left it.

    :param recorded: the pause, from the undo record.
    :param states: the units as they are now.
    :param in_use: units that another run wants paused still.
    """
    changes, left = [], []
    for change in recorded:
        if change.what != WHAT or change.where not in states:
            continue
        now = dict(states[change.where])
        back = {name: change.before[name] if now[name] == change.after[name] else now[name] for name in now}
        foreign = any(now[name] not in (change.before[name], change.after[name]) for name in now)
        if foreign or (back != now and change.where in in_use):
            left.append(change.where)
        elif back != now:
            changes.append(_change(change.where, now, back))
    return changes, left


def commands(changes: Iterable[Change]) -> list[list[str]]:
    """The systemctl calls that make the changes, in an order in which no timer fires in between."""
    calls = []
    for change in changes:
        was, becomes = change.before, change.after
        if was["active"] and not becomes["active"]:
            calls.append(["systemctl", "stop", change.where])
        if was["enabled"] != becomes["enabled"]:
            calls.append(["systemctl", "enable" if becomes["enabled"] == "enabled" else "disable", change.where])
        if becomes["active"] and not was["active"]:
            calls.append(["systemctl", "start", change.where])
    return calls


def apply(changes: Sequence[Change]) -> None:
    """Make the changes, and read back that they are made.

    :raises HygieneError: when systemd refuses, does not end in time, or a unit is not as wanted afterwards.
    """
    for call in commands(changes):
        ended = run(call, timeout=_TIMEOUT)
        if not ended.ok:
            raise HygieneError(
                ended.summary,
                "The unit is not as wanted, and apt could start by itself, or stay off",
                f"Look at `systemctl status {call[-1]}` on the host, then start again; what was done so far is recorded",
            )
    after = read_unit_states([change.where for change in changes]) if changes else {}
    for change in changes:
        if after.get(change.where) != change.after:
            raise HygieneError(
                f"{change.where} is {after.get(change.where)} after systemctl was to make it {change.after}",
                "Something else on the host works on the unit at the same time",
                f"Find it with `journalctl -u {change.where}`, then start again",
            )


def _change(unit: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Change:
    undo = commands([Change(WHAT, unit, after, before)])
    return Change(WHAT, unit, dict(before), dict(after), " && ".join(" ".join(call) for call in undo))
