#!/usr/bin/python
# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Set the kernel that GRUB boots: by default, or for one trial."""

from __future__ import annotations

DOCUMENTATION = r"""
module: grub_default
short_description: Set the kernel that GRUB boots, by default or for one trial boot
version_added: 0.1.0
author:
  - gpunode.hygiene contributors (@gpunode)
description:
  - Makes GRUB boot one installed kernel release, and proves it. The result is resolved by the rules of GRUB's own menu code, and the module fails
    and puts everything back when that is not the asked kernel's normal entry.
  - A kernel's menu entry is found in C(/boot/grub/grub.cfg) by the kernel that it loads. Titles and ids are never composed.
  - O(mode=permanent) writes the drop-in C(/etc/default/grub.d/zz-gpunode-hygiene.cfg) and runs C(update-grub). No other file is edited.
  - O(mode=once) adds a copy of the kernel's entry to C(/boot/grub/custom.cfg) and has GRUB boot it a single time. C(update-grub) is not run and the
    default stays what it is. The trial reboots into the default by itself when the kernel or its initrd cannot be loaded, when the kernel panics,
    when the root file system cannot be mounted, and when nobody confirms it in time.
  - It refuses where GRUB would not honour the setting or would stop at it. These are hosts with another boot loader or kexec, a file that sets
    C(GRUB_DEFAULT) after this module's, a pending one-shot entry of somebody else, entries that need a password, a menu that waits for ever, and for
    O(mode=once) an environment block that GRUB cannot write (LVM, md, btrfs, zfs).
options:
  state:
    description:
      - V(present) sets the kernel.
      - V(absent) with O(mode=permanent) gives the drop-in of before back from the undo records on the host, and runs C(update-grub). It refuses what
        a later run or a person changed since.
      - V(absent) with O(mode=once) takes the trial away, its timer included. On a host that runs the trial, this is its confirmation.
    type: str
    choices: [present, absent]
    default: present
  kernel_release:
    description:
      - The kernel release to boot, as C(uname -r) prints it. Its image, initrd and modules must be complete on disk.
      - Needed when O(state=present).
    type: str
  mode:
    description:
      - V(permanent) is for every boot, V(once) for the next one only.
    type: str
    choices: [permanent, once]
    default: permanent
  confirm_within:
    description:
      - Seconds after the trial kernel's start within which the trial must be confirmed by O(state=absent) with O(mode=once). The host reboots otherwise.
      - V(0) means that it need not be confirmed.
      - Used with O(state=present) and O(mode=once).
    type: int
    default: 900
  lock_timeout:
    description:
      - Seconds to wait for other programs that install packages, since those run C(update-grub) too.
    type: int
    default: 300
  run:
    description:
      - Id of the run in which the change is recorded, or whose change is given back.
      - Without it, V(present) makes an id of its own (C(adhoc-<time>)), and V(absent) gives back what all runs did.
    type: str
attributes:
  check_mode:
    description: Can run in check mode and return what would change without changing it.
    support: full
  diff_mode:
    description: Returns what changed, or would change in check mode.
    support: full
notes:
  - Needs root on the host, and GRUB 2 as Debian and Ubuntu package it.
  - The default holds as long as the kernel is installed. M(gpunode.hygiene.kernel_pin) keeps it installed.
  - In a trial systemd arms the hardware watchdog, where the host has one. When the kernel hangs without a panic before that, only a power cycle helps.
"""

EXAMPLES = r"""
- name: Try a kernel for one boot
  gpunode.hygiene.grub_default:
    kernel_release: 6.8.0-117-generic
    mode: once
    confirm_within: 1200

- name: Confirm the trial, once the host is known to work
  gpunode.hygiene.grub_default:
    state: absent
    mode: once

- name: Boot that kernel from now on
  gpunode.hygiene.grub_default:
    kernel_release: 6.8.0-117-generic

- name: Give the default of before back
  gpunode.hygiene.grub_default:
    state: absent
"""

RETURN = r"""
before:
  description: What was set before.
  returned: success
  type: dict
  contains:
    drop_in:
      description: The text of the drop-in; null when there is none.
      returned: when O(mode=permanent)
      type: str
    default:
      description: What grub.cfg boots by default, as C(spec), C(path) (of ids) and C(kernel_release).
      returned: when O(mode=permanent)
      type: dict
    custom_cfg:
      description: The text of C(/boot/grub/custom.cfg); null when there is none.
      returned: when O(mode=once)
      type: str
    deadman:
      description: The text of the unit that reboots out of an unconfirmed trial; null when there is none.
      returned: when O(mode=once)
      type: str
    next_entry:
      description: The one-shot entry of the next boot; null when none is set.
      returned: when O(mode=once)
      type: str
  sample:
    drop_in: null
    default: {spec: "0", path: gnulinux-simple-4f6a, kernel_release: 7.0.0-15-generic}
after:
  description: What is set now, or would be in check mode. It has the keys of RV(before).
  returned: success
  type: dict
  sample:
    drop_in: "GRUB_DEFAULT='gnulinux-advanced-4f6a>gnulinux-6.8.0-117-generic-advanced-4f6a'\n"
    default:
      spec: gnulinux-advanced-4f6a>gnulinux-6.8.0-117-generic-advanced-4f6a
      path: gnulinux-advanced-4f6a>gnulinux-6.8.0-117-generic-advanced-4f6a
      kernel_release: 6.8.0-117-generic
plan:
  description: What was changed, or would be in check mode.
  returned: success
  type: list
  elements: dict
  contains:
    what:
      description: V(file), V(grub_default), V(unit) or V(next_entry).
      type: str
    where:
      description: The path or the unit.
      type: str
    before:
      description: Its value as found; null when it was not there.
      type: str
    after:
      description: Its value as wanted; null when it shall not be there.
      type: str
    undo:
      description: What gives the value of before back.
      type: str
run:
  description: The run in which the change is recorded; empty when nothing changed, in check mode, and for all runs.
  returned: success
  type: str
  sample: 20260101T120000Z-3f2a1c
diff:
  description: The texts of each file that changed, before and after.
  returned: success
  type: list
  elements: dict
  sample: [{before_header: /etc/default/grub.d/zz-gpunode-hygiene.cfg, after_header: /etc/default/grub.d/zz-gpunode-hygiene.cfg, before: "", after: "..."}]
msg:
  description: One sentence that says what happened.
  returned: always
  type: str
  sample: Kernel 6.8.0-117-generic is GRUB's default.
"""

from dataclasses import replace
from typing import Any, Optional

from ansible_collections.gpunode.hygiene.plugins.module_utils._host import record
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.answer import Answer, serve
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.closure import KERNEL_RELEASE
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub import deadman, defaults, plan, trial, writer
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.facts import Host
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.host import MODULE, read_host
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.menu import CUSTOM_CFG, GRUB_CFG, GRUBENV
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.kernel import installed
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import Change, HygieneError

ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "kernel_release": {"type": "str"},
    "mode": {"type": "str", "choices": ["permanent", "once"], "default": "permanent"},
    "confirm_within": {"type": "int", "default": 900},
    "lock_timeout": {"type": "int", "default": 300},
    "run": {"type": "str"},
}


def work(parameters: dict[str, Any], check_mode: bool) -> Answer:
    """Read, decide, act, read back; packages are kept out while files are written."""
    if parameters["run"]:
        record.check_run_id(parameters["run"])
    act = {
        ("present", "permanent"): present_permanent,
        ("absent", "permanent"): absent_permanent,
        ("present", "once"): present_once,
        ("absent", "once"): absent_once,
    }[(parameters["state"], parameters["mode"])]
    try:
        if check_mode:
            return act(parameters, True)
        with writer.alone(parameters["lock_timeout"]):
            return act(parameters, False)
    except OSError as error:
        raise HygieneError(
            f"{error.strerror or error}: {error.filename or 'no file named'}",
            "GRUB's files could not be read or written; what had been written was put back as it was",
            "Make room on that file system (`df -h /boot /etc`) or make it writable, then run the task again",
        ) from error


def present_permanent(parameters: dict[str, Any], check_mode: bool) -> Answer:
    """Write the drop-in and have update-grub carry it into grub.cfg."""
    release = parameters["kernel_release"]
    _demand_kernel(release)
    spec, wanted = plan.plan_permanent(read_host(), release)
    written = bool(wanted.changes) and not check_mode
    run = parameters["run"] or record.adhoc_run()
    if written:
        record.save(run, MODULE, wanted.changes)
        with writer.restoring([defaults.DROP_IN, GRUB_CFG]):
            writer.write_files(wanted.files)
            writer.update_grub()
            plan.demand_result(read_host(), spec, release)
    verb = "would be" if check_mode and wanted.changes else "is"
    return _answer(f"Kernel {release} {verb} GRUB's default.", wanted, run if written else "")


def absent_permanent(parameters: dict[str, Any], check_mode: bool) -> Answer:
    """Give the drop-in of before back."""
    host = read_host()
    records = _records()
    chosen = [run for run, _changes in records if parameters["run"] in (None, "", run)]
    back = plan.given_back(records, chosen, defaults.DROP_IN, host.drop_in)
    if back is None and host.drop_in is not None and not parameters["run"]:
        raise HygieneError(
            f"{defaults.DROP_IN} is there, and no run on this host has a record of it",
            "What was there before is not known",
            f"Run `rm {defaults.DROP_IN} && update-grub` when it is not wanted",
        )
    text = back.after if back else host.drop_in
    settings = defaults.read(instead={defaults.DROP_IN: text})
    wanted = plan.plan_permanent_absent(host, text, settings) if back else plan.nothing(plan.permanent_state(host))
    if wanted.changes and not check_mode:
        with writer.restoring([defaults.DROP_IN, GRUB_CFG]):
            writer.write_files(wanted.files)
            writer.update_grub()
            after = plan.permanent_state(read_host())
            wanted = replace(wanted, after=after)
    if not check_mode:
        _mark_given_back(records, chosen, [defaults.DROP_IN, GRUB_CFG])
    verb = "would be" if check_mode else "was"
    msg = f"GRUB's default of before {verb} given back." if wanted.changes else "There is no default of ours to give back."
    return _answer(msg, wanted, parameters["run"] or "")


def present_once(parameters: dict[str, Any], check_mode: bool) -> Answer:
    """Write the trial entry and its timer, then have GRUB boot it once."""
    release, confirm_within = parameters["kernel_release"], parameters["confirm_within"]
    if confirm_within < 0:
        raise HygieneError(f"confirm_within is {confirm_within}", "It is a time in seconds", "Set it to 0 (never) or more")
    _demand_kernel(release)
    host = read_host()
    run = parameters["run"] or _run_of_trial(host, release) or record.adhoc_run()
    wanted = plan.plan_once(host, release, run, confirm_within, writer.runs_systemd())
    writer.check_script(wanted.files[CUSTOM_CFG] or "")
    written = bool(wanted.changes) and not check_mode
    if written:
        record.save(run, MODULE, wanted.changes)
        with writer.restoring(writer.trial_paths(CUSTOM_CFG)):
            writer.write_files(wanted.files)
            if wanted.files[deadman.UNIT_PATH]:
                writer.enable_deadman()
            else:
                writer.disable_deadman()
            writer.set_next_entry(trial.ENTRY_ID)
            plan.demand_once_result(read_host(), wanted, release)
    verb = "would be" if check_mode and wanted.changes else "is"
    limit = f", and must be confirmed within {confirm_within} s of that boot" if confirm_within else ""
    return _answer(f"Kernel {release} {verb} tried at the next boot{limit}.", wanted, run if written else "")


def absent_once(parameters: dict[str, Any], check_mode: bool) -> Answer:
    """Take the trial away: its timer first, since that reboots the host."""
    host = read_host()
    records = _records()
    wanted = plan.plan_once_absent(host, parameters["run"], _recorded_custom(records, host))
    if wanted.changes and not check_mode:
        kinds = {change.what for change in wanted.changes}
        if plan.UNIT in kinds:
            writer.disable_deadman()
        if plan.NEXT_ENTRY in kinds:
            writer.set_next_entry(None)
        writer.write_files({CUSTOM_CFG: wanted.files[CUSTOM_CFG]})
        left = plan.once_state(read_host())
        if left["custom_cfg"] != wanted.after["custom_cfg"] or left["next_entry"] != wanted.after["next_entry"]:
            raise HygieneError("The trial is still there after it was taken away", "Something else writes the same files", "Run the task again")
    if not check_mode:
        chosen = [run for run, _changes in records if parameters["run"] in (None, "", run)]
        _mark_given_back(records, chosen, [CUSTOM_CFG, deadman.UNIT, GRUBENV])
    verb = "would be" if check_mode else "was"
    return _answer(f"The trial {verb} taken away." if wanted.changes else "There is no trial to take away.", wanted, parameters["run"] or "")


def _demand_kernel(release: str) -> None:
    """:raises HygieneError: when the release is not complete on disk."""
    if not KERNEL_RELEASE.match(release):
        raise HygieneError(f"The kernel release is {release!r}", "That is no kernel release", "Give one as `uname -r` prints it")
    row = installed.describe(installed.find(release), None)
    if row["complete"]:
        return
    complete = [other for other in installed.releases_on_disk() if installed.describe(installed.find(other), None)["complete"]]
    raise HygieneError(
        f"Kernel {release} is not complete on disk: {'; '.join(row['problems'])}",
        "It would not boot",
        f"Install its packages again, or choose one that is complete: {', '.join(complete) or 'there is none'}",
        {"problems": row["problems"], "complete": complete},
    )


def _run_of_trial(host: Host, release: str) -> Optional[str]:
    """The run of a trial of the same kernel that already stands there, so that a run without an id of its own changes nothing."""
    found = trial.find(host.custom)
    return found.run if found and found.kernel_release == release else None


def _recorded_custom(records: list[tuple[str, list[Change]]], host: Host) -> Optional[str]:
    """custom.cfg as it was before the trial that stands there."""
    found = trial.find(host.custom)
    for run, changes in records:
        for change in changes:
            if found and run == found.run and change.where == CUSTOM_CFG:
                before: Optional[str] = change.before
                return before
    return plan.original_custom(host.custom)


def _records() -> list[tuple[str, list[Change]]]:
    """What each run recorded, oldest first."""
    return [(run, record.load(run, MODULE)) for run in record.runs_with(MODULE)]


def _mark_given_back(records: list[tuple[str, list[Change]]], chosen: list[str], places: list[str]) -> None:
    """Note in the chosen runs' records that these places are as they were before them."""
    for run, changes in records:
        done = [replace(change, after=change.before) for change in changes if change.where in places and change.after != change.before]
        if run in chosen and done:
            record.save(run, MODULE, done)


def _answer(msg: str, wanted: plan.Wanted, run: str) -> Answer:
    files = [change for change in wanted.changes if isinstance(change.before, str) or isinstance(change.after, str)]
    diff = [{"before_header": change.where, "after_header": change.where, "before": change.before or "", "after": change.after or ""} for change in files]
    return Answer(msg=msg, before=wanted.before, after=wanted.after, plan=wanted.changes, diff=diff, extra={"run": run})


def main() -> None:
    """Run the module."""
    serve(ARGUMENTS, work, required_if=[("state", "present", ["kernel_release"])])


if __name__ == "__main__":
    main()
