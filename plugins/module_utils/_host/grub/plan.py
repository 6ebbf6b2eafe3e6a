# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be done with a host's GRUB and what would be done: pure, refusals included."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence

from ..._model import Change, HygieneError
from . import deadman, trial
from .boots import boots, candidates, leaves
from .defaults import DROP_IN, Settings
from .facts import NEXT_ENTRY, Host, leads_to, resolve_default, why_unwritable
from .host import CUSTOM_SCRIPT
from .loader import GRUB
from .menu import CUSTOM_CFG, GRUB_CFG, GRUBENV, Entry, Menu
from .resolve import path_of, resolve

FILE, UNIT, DEFAULT = "file", "unit", "grub_default"
# Neither the shell nor GRUB's language sees syntax in these; `>` joins the ids.
_SAFE = re.compile(r"^[A-Za-z0-9._+:/@=~,>-]+$")
_DIRECTLY = "Set `mode: permanent`, in playbooks gpunode_trial_boot: false (the kernel is then not tried for one boot first)"


@dataclass(frozen=True)
class Wanted:
    """What `present` leads to.

    :param files: the text of each file of ours by path; None for one that shall not be there.
    :param next_entry: the value that grubenv shall have; None leaves it alone.
    :param state: what `before` and `after` show.
    """

    files: Mapping[str, Optional[str]]
    changes: tuple[Change, ...]
    before: dict[str, Any]
    after: dict[str, Any]


def drop_in(spec: str, release: str) -> str:
    """Our drop-in. The spec holds none but safe characters (`_SAFE`), so that neither the shell nor GRUB finds syntax in it."""
    return (
        "# Written by the Ansible module gpunode.hygiene.grub_default; `state: absent` takes it away.\n"
        f"# Boots kernel {release}. The ids are those of /boot/grub/grub.cfg.\n"
        f"GRUB_DEFAULT='{spec}'\n"
    )


# ---- what GRUB would not honour, or would stop at ----


def demand_grub(host: Host) -> Menu:
    """The menu of a host that GRUB boots.

    :raises HygieneError: when something else decides about the kernel, or grub.cfg cannot be followed.
    """
    if host.loader != GRUB:
        raise HygieneError(
            f"The boot loader is {host.loader}: {'; '.join(host.bypassed)}",
            "GRUB's default would not be honoured",
            "Choose the kernel with that boot loader's own means",
        )
    if host.kexec:
        raise HygieneError(
            f"GRUB would be passed by: {'; '.join(host.bypassed)}",
            "A reboot would start the kernel that kexec has, not GRUB's default",
            "Set LOAD_KEXEC=false in /etc/default/kexec, and run `kexec -u`",
        )
    if host.bypassed:
        raise HygieneError(f"Of GRUB, {'; '.join(host.bypassed)}", "Its configuration cannot be written", "Install the package grub2-common")
    if host.menu is None:
        raise HygieneError(str(host.menu_problem), "What GRUB would boot cannot be told", "Run `update-grub`, and correct what it complains about")
    if host.menu.problems:
        raise HygieneError("; ".join(host.menu.problems), "What GRUB would boot cannot be told", "Take that out of GRUB's configuration, and run `update-grub`")
    return host.menu


def demand_settings(settings: Settings) -> None:
    """:raises HygieneError: when update-grub would fail, or a file behind ours has the last word."""
    if settings.problem:
        raise HygieneError(
            settings.problem, "update-grub would fail on it, and so would every kernel package's installation", "Correct the file, then run `update-grub`"
        )
    if settings.later:
        raise HygieneError(
            f"{', '.join(settings.later)} sets GRUB_DEFAULT and is read after {DROP_IN}",
            "The last assignment wins, so ours would have no effect",
            "Take GRUB_DEFAULT out of that file, or rename the file so that it sorts earlier",
        )


def demand_no_pending(host: Host) -> None:
    """:raises HygieneError: when the next boot is spoken for."""
    if host.pending is None:
        return
    ours = host.pending == trial.ENTRY_ID
    raise HygieneError(
        f"{GRUBENV} has a one-shot entry for the next boot: {host.pending!r}",
        "It would win over the default" + ("" if ours else ", and somebody else has set it"),
        "Take the trial away with `state: absent, mode: once`" if ours else f"Run `grub-editenv {GRUBENV} unset next_entry prev_entry initrdfail`",
    )


def demand_timeout(menu: Menu) -> None:
    """:raises HygieneError: when GRUB would wait in its menu for ever."""
    if menu.timeout_known and (menu.timeout is None or menu.timeout < 0):
        raise HygieneError(
            f"GRUB's timeout is {'not set' if menu.timeout is None else menu.timeout}",
            "It would wait in its menu until somebody presses a key",
            "Set GRUB_TIMEOUT (and GRUB_RECORDFAIL_TIMEOUT) to 0 or more in /etc/default/grub, and run `update-grub`",
        )


def demand_no_password(menu: Menu, chain: Sequence[Entry]) -> None:
    """:raises HygieneError: when GRUB would ask for a password on the way."""
    restricted = [entry.title for entry in chain if entry.users is not None]
    if menu.superusers and restricted:
        raise HygieneError(
            f"GRUB has superusers ({menu.superusers}), and only they may boot {' > '.join(repr(title) for title in restricted)}",
            "It would ask for a password and wait",
            "Add --unrestricted to CLASS and to the submenu line in /etc/grub.d/10_linux, and run `update-grub`",
        )


def demand_own_default(menu: Menu) -> None:
    """:raises HygieneError: when a sourced file sets `default` after grub.cfg has."""
    if menu.default_origin != GRUB_CFG:
        raise HygieneError(
            f"{menu.default_origin} sets `default`",
            "It is read at boot and wins over grub.cfg and over a one-shot entry",
            f"Take `default` out of {menu.default_origin}",
        )


def once_obstacles(host: Host) -> list[HygieneError]:
    """Why this host cannot try a kernel for one boot; empty when it can."""
    found: list[HygieneError] = []
    for demand in (_demand_menu, _demand_grubenv, _demand_custom, _demand_finite):
        if found and host.loader != GRUB:
            break
        try:
            demand(host)
        except HygieneError as error:
            found.append(error)
    return found


def _demand_menu(host: Host) -> None:
    demand_grub(host)


def _demand_grubenv(host: Host) -> None:
    if host.grubenv_problem:
        raise HygieneError(
            host.grubenv_problem,
            "GRUB could not take the one-shot entry away, so it would boot it for ever",
            f"Run `rm -f {GRUBENV}; grub-editenv {GRUBENV} create`",
        )
    why = why_unwritable(host.probe)
    if why:
        raise HygieneError(f"GRUB cannot write {GRUBENV}: {why}", "It could not take the one-shot entry away, so it would boot it for ever", _DIRECTLY)


def _demand_custom(host: Host) -> None:
    if host.custom_script:
        raise HygieneError(
            host.custom_script,
            f"It makes GRUB read {CUSTOM_CFG}, where the trial entry stands",
            f"Reinstall grub-common, `chmod +x {CUSTOM_SCRIPT}`, and run `update-grub`",
        )
    if host.menu is None:
        return
    if CUSTOM_CFG not in host.menu_with(host.custom or "\n", host.grubenv or {}).read:
        raise HygieneError(f"{GRUB_CFG} does not source {CUSTOM_CFG}", "The trial entry stands there and would not be found", "Run `update-grub`")
    if host.menu.invalid:
        raise HygieneError(
            "; ".join(host.menu.invalid), "A file with a syntax error defines no entry, so the trial would not be found", f"Correct {CUSTOM_CFG}"
        )
    demand_own_default(host.menu)


def _demand_finite(host: Host) -> None:
    for menu in (host.menu, host.following):
        if menu:
            demand_timeout(menu)


def choose(host: Host, menu: Menu, release: str) -> tuple[Entry, ...]:
    """The chain of the normal entry of this installation for a kernel.

    :raises HygieneError: when there is none.
    """
    if host.probe.folder is None:
        raise HygieneError(
            f"Where GRUB finds /boot cannot be told ({'; '.join(host.probe.problems)})",
            "Whether a menu entry is this installation's cannot be checked",
            "Run `grub-mkrelpath /boot` and `grub-probe /boot`, and correct what they complain about",
        )
    found = candidates(menu, release, host.probe.folder, host.probe.uuid, exclude=(trial.ENTRY_ID,))
    if found:
        return found[0]
    releases = sorted({boots(chain[-1]).kernel_release or "" for chain in leaves(menu.entries)} - {""})
    raise HygieneError(
        f"{GRUB_CFG} has no normal entry of this installation for kernel {release}; its kernels are {', '.join(releases) or 'none'}",
        "Without an entry GRUB cannot boot it",
        "Install the kernel's image package, or run `update-grub` when it is installed",
    )


# ---- the permanent default ----


def spec_for(menu: Menu, chain: Sequence[Entry], release: str) -> str:
    """The value of GRUB_DEFAULT for a chain.

    :raises HygieneError: when no value leads there for sure.
    """
    spec = path_of(chain)
    if release not in chain[-1].id:
        raise HygieneError(
            f"The only entry for kernel {release} has the id {chain[-1].id!r}",
            "It does not name the release, so it would boot another kernel once one is installed",
            "Run `update-grub` with GRUB's own /etc/grub.d/10_linux",
        )
    if not _SAFE.match(spec):
        raise HygieneError(
            f"The entry's path of ids is {spec!r}",
            "It holds characters that the shell or GRUB would read as syntax",
            "Rename the entry's id, or the device that it names",
        )
    demand_spec(menu, spec, release)
    return spec


def demand_spec(menu: Menu, spec: Optional[str], release: str) -> None:
    """:raises HygieneError: when a spec does not lead to the normal entry of a kernel without any fallback."""
    booted, problems = leads_to(resolve(menu.entries, spec))
    if problems or booted != release:
        raise HygieneError(
            f"GRUB resolves {spec!r} to kernel {booted or 'none'}" + (f" ({'; '.join(problems)})" if problems else ""),
            f"Kernel {release} was asked for",
            "Look at the entries in /boot/grub/grub.cfg; `update-grub` writes them anew",
        )


def demand_result(host: Host, spec: str, release: str) -> None:
    """Check what update-grub has written.

    :raises HygieneError: when the default is not the asked kernel.
    """
    menu = demand_grub(host)
    demand_own_default(menu)
    resolution = resolve_default(menu)
    booted, problems = leads_to(resolution)
    if menu.default != spec or booted != release or problems:
        raise HygieneError(
            f"After update-grub the default is {menu.default!r}, which boots {booted or 'no kernel'}" + (f" ({'; '.join(problems)})" if problems else ""),
            f"{spec!r} with kernel {release} was asked for",
            "Look in /etc/grub.d for a script that sets `default` or writes other entries",
        )
    demand_no_password(menu, resolution.chain)
    demand_timeout(menu)


def plan_permanent(host: Host, release: str) -> tuple[str, Wanted]:
    """The spec, and what setting it as the default means.

    :raises HygieneError: for everything that GRUB would not honour or would stop at.
    """
    menu = demand_grub(host)
    demand_settings(host.settings)
    demand_own_default(menu)
    demand_no_pending(host)
    demand_timeout(menu)
    chain = choose(host, menu, release)
    demand_no_password(menu, chain)
    spec = spec_for(menu, chain, release)
    text = drop_in(spec, release)
    changes = []
    if host.drop_in != text:
        changes.append(Change(FILE, DROP_IN, host.drop_in, text, "the task with `state: absent`"))
    if menu.default != spec:
        changes.append(Change(DEFAULT, GRUB_CFG, menu.default, spec, "update-grub"))
    after = {"drop_in": text, "default": {"spec": spec, "path": spec, "kernel_release": release}}
    return spec, Wanted({DROP_IN: text}, tuple(changes), permanent_state(host), after)


def permanent_state(host: Host) -> dict[str, Any]:
    """What `before` and `after` show of the permanent default."""
    if host.menu is None:
        return {"drop_in": host.drop_in, "default": None}
    resolution = resolve_default(host.menu)
    return {
        "drop_in": host.drop_in,
        "default": {"spec": host.menu.default, "path": resolution.path, "kernel_release": leads_to(resolution)[0]},
    }


def nothing(state: dict[str, Any]) -> Wanted:
    """Everything stays as it is."""
    return Wanted({}, (), state, state)


def plan_permanent_absent(host: Host, wanted: Optional[str], settings: Settings) -> Wanted:
    """What giving the drop-in back means.

    :param wanted: the drop-in's text of before; None when there was none.
    :param settings: the effective settings with that.
    :raises HygieneError: when update-grub would fail.
    """
    menu = demand_grub(host)
    if settings.problem:
        demand_settings(settings)
    spec = (host.grubenv or {}).get("saved_entry", "") if settings.spec == "saved" else settings.spec
    resolution = resolve(menu.entries, spec)
    after = {"drop_in": wanted, "default": {"spec": spec, "path": resolution.path, "kernel_release": leads_to(resolution)[0]}}
    changes = []
    if host.drop_in != wanted:
        changes.append(Change(FILE, DROP_IN, host.drop_in, wanted, "the task with `state: present`"))
    if menu.default != spec:
        changes.append(Change(DEFAULT, GRUB_CFG, menu.default, spec, "update-grub"))
    return Wanted({DROP_IN: wanted}, tuple(changes), permanent_state(host), after)


def given_back(records: Sequence[tuple[str, Sequence[Change]]], chosen: Sequence[str], where: str, current: Optional[str]) -> Optional[Change]:
    """How to give a file back: a Change from what is there to what was there before the chosen runs; None when there is nothing to give back.

    A record whose `before` and `after` are the same was given back already.

    :param records: (run, its changes), oldest run first.
    :raises HygieneError: when a later run or a person changed the file since.
    """
    history = [
        (run, change) for run, changes in records for change in changes if change.where == where and change.what == FILE and change.before != change.after
    ]
    ours = [place for place, (run, _change) in enumerate(history) if run in chosen]
    if not ours:
        return None
    first = last = ours[-1]
    while first - 1 in ours and history[first - 1][1].after == history[first][1].before:
        first -= 1
    before, after = history[first][1].before, history[last][1].after
    if current == before:
        return None
    if last + 1 < len(history):
        later = history[last + 1][0]
        raise HygieneError(
            f"Run {later} changed {where} later",
            "Giving the older state back would undo that run too",
            f"Undo run {later} first, or leave `run` out to undo them all",
        )
    if current != after:
        raise HygieneError(
            f"{where} is not as run {history[last][0]} left it" + ("" if current else ": it is gone"),
            "Somebody changed it since, and what they want is theirs to decide",
            f"Edit or remove {where} by hand, then run `update-grub`",
        )
    return Change(FILE, where, current, before)


# ---- the trial ----


def plan_once(host: Host, release: str, run: str, confirm_within: int, systemd: bool) -> Wanted:
    """What trying a kernel for one boot means.

    :param confirm_within: seconds of uptime after which an unconfirmed trial reboots; 0 for never.
    :param systemd: whether systemd runs the host.
    :raises HygieneError: for everything that GRUB would not honour or would stop at.
    """
    menu = demand_grub(host)
    for obstacle in once_obstacles(host):
        raise obstacle
    if host.pending is not None and host.pending != trial.ENTRY_ID:
        demand_no_pending(host)
    trial.find(host.custom)
    chain = choose(host, menu, release)
    demand_no_password(menu, chain)
    if confirm_within and not systemd:
        raise HygieneError("systemd does not run this host", "The timer that reboots out of an unconfirmed trial is a systemd unit", "Set `confirm_within: 0`")
    custom = trial.with_block(host.custom or "", trial.block(chain[-1], release, run))
    unit = deadman.unit(release, run, confirm_within) if confirm_within else None
    _demand_trial(host, custom, release)
    changes = []
    if host.custom != custom:
        changes.append(Change(FILE, CUSTOM_CFG, original_custom(host.custom), custom, "the task with `state: absent, mode: once`"))
    if host.unit != unit or set(host.links) != set(deadman.LINKS if unit else ()):
        changes.append(Change(UNIT, deadman.UNIT, None, unit, "the task with `state: absent, mode: once`"))
    if host.pending != trial.ENTRY_ID:
        changes.append(Change(NEXT_ENTRY, GRUBENV, None, trial.ENTRY_ID, f"grub-editenv {GRUBENV} unset next_entry"))
    after = {"custom_cfg": custom, "deadman": unit, "next_entry": trial.ENTRY_ID}
    return Wanted({CUSTOM_CFG: custom, deadman.UNIT_PATH: unit}, tuple(changes), once_state(host), after)


def once_state(host: Host) -> dict[str, Any]:
    """What `before` and `after` show of the trial; a dead-man unit counts only when it is enabled everywhere."""
    enabled = set(host.links) == set(deadman.LINKS)
    return {"custom_cfg": host.custom, "deadman": host.unit if enabled else None, "next_entry": (host.grubenv or {}).get(NEXT_ENTRY) or None}


def original_custom(custom: Optional[str]) -> Optional[str]:
    """custom.cfg without a trial of ours; None when there is none, or nothing but ours in it."""
    if custom is None:
        return None
    rest = trial.without(custom)
    return None if not rest and custom else rest


def _demand_trial(host: Host, custom: str, release: str) -> None:
    """Boot the wanted state in mind: the one-shot entry must lead to the trial, and GRUB must not wait on the way."""
    menu = host.menu_with(custom, {**(host.grubenv or {}), NEXT_ENTRY: trial.ENTRY_ID})
    resolution = resolve_default(menu)
    booted, problems = leads_to(resolution)
    if resolution.leaf is None or resolution.leaf.id != trial.ENTRY_ID or booted != release or problems:
        raise HygieneError(
            f"With next_entry={trial.ENTRY_ID} GRUB would boot {resolution.path!r}" + (f" ({'; '.join(problems)})" if problems else ""),
            f"The trial entry of kernel {release} was to be booted",
            f"Look in {GRUB_CFG} and {CUSTOM_CFG} for an entry with the same id, or for what handles next_entry in another way",
        )
    demand_no_password(menu, resolution.chain)
    demand_timeout(menu)


def demand_once_result(host: Host, wanted: Wanted, release: str) -> None:
    """Check what was written.

    :raises HygieneError: when the next boot is not the trial.
    """
    state = once_state(host)
    if state != wanted.after:
        different = sorted(name for name in state if state[name] != wanted.after[name])
        raise HygieneError(
            f"After writing them, {', '.join(different)} are not as they were written",
            "Something else writes the same files; all was put back as it was",
            f"Find out what writes {CUSTOM_CFG} or {GRUBENV}, then run the task again",
        )
    _demand_trial(host, host.custom or "", release)


def plan_once_absent(host: Host, run: Optional[str], recorded: Optional[str]) -> Wanted:
    """What taking a trial away means; only what is of the given run, or of any run when none is given.

    :param recorded: custom.cfg as it was before the trial, from the record; None when there was none.
    """
    found = trial.find(host.custom)
    of_run = found is None or run in (None, "", found.run)
    custom, unit, pending = host.custom, host.unit, host.pending
    if found and of_run:
        rest = trial.without(host.custom or "")
        same = rest.rstrip("\n") == (recorded or "").rstrip("\n")
        custom = recorded if same else rest
    if unit is not None and (run in (None, "") or f"(run {run})" in unit):
        unit = None
    if pending == trial.ENTRY_ID and of_run:
        pending = None
    changes = []
    if custom != host.custom:
        changes.append(Change(FILE, CUSTOM_CFG, host.custom, custom))
    if unit != host.unit or (unit is None and host.links):
        changes.append(Change(UNIT, deadman.UNIT, host.unit, unit))
    if pending != host.pending:
        changes.append(Change(NEXT_ENTRY, GRUBENV, host.pending, pending))
    before = {"custom_cfg": host.custom, "deadman": host.unit or (list(host.links) or None), "next_entry": (host.grubenv or {}).get(NEXT_ENTRY) or None}
    after = {"custom_cfg": custom, "deadman": unit, "next_entry": None if NEXT_ENTRY in {c.what for c in changes} else before["next_entry"]}
    return Wanted({CUSTOM_CFG: custom, deadman.UNIT_PATH: unit}, tuple(changes), before, after)
