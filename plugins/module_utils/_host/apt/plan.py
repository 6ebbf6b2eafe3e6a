# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From what is there and what was recorded to what shall change: pure, for both directions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..._model import Change, HygieneError

WHAT = "hold"


@dataclass(frozen=True)
class GiveBack:
    """What taking the pin away means.

    :param changes: the selections to give back.
    :param gone: packages of ours that are no longer installed; a removed package has no hold to give back.
    """

    changes: tuple[Change, ...]
    gone: tuple[str, ...]


def plan_present(names: Iterable[str], selections: Mapping[str, str]) -> list[Change]:
    """A Change for every package of the hold set, also for those held already: the record then says that this pin relies on them.

    Only those with another `before` than `after` are to be carried out.
    """
    return [Change(WHAT, name, selections[name], "hold", undo_command(name, selections[name])) for name in names]


def undo_command(name: str, before: str) -> str:
    """The command that gives a selection back."""
    return "" if before == "hold" else f"echo '{name} {before}' | dpkg --set-selections"


def vanished(records: Sequence[Sequence[Change]], selections: Mapping[str, str]) -> list[str]:
    """Packages whose hold a run relies on, and that are installed but not held: somebody or something took the hold away.

    :param records: the changes of each run.
    """
    relied = {change.where for changes in records for change in changes if change.after == "hold"}
    return sorted(name for name in relied if selections.get(name, "hold") != "hold")


def plan_absent(records: Sequence[tuple[str, Sequence[Change]]], chosen: Sequence[str], selections: Mapping[str, str]) -> GiveBack:
    """What to give back when the pins of the chosen runs are taken away.

    A record's `after` is "hold" while its pin is in force, and None once it was given back.

    :param records: (run, its changes), oldest run first.
    :param chosen: the runs to undo.
    :param selections: package name -> selection, for the packages that are installed.
    :raises HygieneError: where a later run relies on a hold that would go, or somebody chose another selection since.
    """
    before: dict[str, str] = {}
    relied_on: dict[str, str] = {}
    for run, changes in records:
        for change in changes:
            if change.after != "hold":
                continue
            if run in chosen:
                # Found held: the chain of runs goes on. Found otherwise: somebody took the hold away in between, and that is the new start.
                if change.before != "hold" or change.where not in before:
                    before[change.where] = change.before
                relied_on.pop(change.where, None)
            elif change.where in before:
                relied_on[change.where] = run
    installed = {name: first for name, first in before.items() if name in selections}
    wanted = {name: first for name, first in installed.items() if first not in ("hold", selections[name])}
    _refuse_relied(relied_on, wanted)
    _refuse_changed(wanted, selections)
    changes = tuple(Change(WHAT, name, "hold", first, f"apt-mark hold {name}") for name, first in sorted(wanted.items()))
    return GiveBack(changes, tuple(sorted(set(before) - set(installed))))


def _refuse_relied(relied_on: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    later = {name: run for name, run in relied_on.items() if name in wanted}
    if later:
        raise HygieneError(
            f"Holds of this run are also what a later one relies on: {_listed(later)}",
            "Giving them back would break the later pin",
            f"Undo the later run first ({', '.join(sorted(set(later.values())))}), or leave `run` out to undo all of them",
        )


def _refuse_changed(wanted: Mapping[str, str], selections: Mapping[str, str]) -> None:
    changed = {name: selections[name] for name in wanted if selections[name] != "hold"}
    if changed:
        raise HygieneError(
            f"The selections of these packages were changed since: {_listed(changed)}",
            "They are no longer the hold that was set, and not what was there before either; whoever changed them is not overruled",
            "Set them to hold or to what was there before (`dpkg --set-selections`), then start this again",
            {"were": {name: wanted[name] for name in changed}},
        )


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({value})" for name, value in sorted(values.items()))
