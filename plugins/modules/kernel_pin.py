#!/usr/bin/python
# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pin a host to a kernel release by holding every package that would move it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_pin
short_description: Hold every package that would move a host off one kernel release
version_added: 0.1.0
author:
  - gpunode.hygiene contributors (@gpunode)
description:
  - Holds the packages of one installed kernel release, what of the kernel those need, and the metapackages of every installed flavour and track,
    so that neither an upgrade nor autoremove changes which kernels the host has.
  - The names are found in the host's own package database by following dependencies. No list of flavours is used, and names are never patterns.
  - Before anything is held, C(apt-get) itself simulates C(dist-upgrade) and C(autoremove) on private copies with the holds in place. When a kernel
    package would still come, change or go, the module fails and names it with what pulls it.
  - Other installed releases stay apt's business. They may be updated in place or removed by autoremove, unless O(keep) names them.
  - A hold does not stop C(dpkg -i), an explicit C(apt-get install linux-image-...), or C(--allow-change-held-packages).
options:
  state:
    description:
      - V(present) holds the packages.
      - V(absent) gives back the selections that were there before, from the undo records on the host. A hold that somebody else had placed stays.
      - V(absent) refuses when a later run relies on a hold that would go, or when somebody gave one of the packages another selection since.
    type: str
    choices: [present, absent]
    default: present
  kernel_release:
    description:
      - The kernel release to pin, as C(uname -r) prints it.
      - Needed when O(state=present). Its packages must be completely installed, and its image, initrd and modules on disk.
    type: str
  keep:
    description:
      - Further installed releases to hold, so that they stay as fallbacks.
      - Not used when O(state=absent).
    type: list
    elements: str
    default: []
  lock_timeout:
    description:
      - Seconds to wait for other programs that work on the packages.
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
  - Needs root on the host, C(dpkg) and C(apt-get).
  - In check mode nothing is written, locks and apt's caches included; the simulations run all the same.
"""

EXAMPLES = r"""
- name: Stay on a kernel that the driver images support, with one fallback
  gpunode.hygiene.kernel_pin:
    kernel_release: 6.8.0-117-generic
    keep:
      - 6.8.0-110-generic

- name: Take the pin away again
  gpunode.hygiene.kernel_pin:
    state: absent
"""

RETURN = r"""
before:
  description: Selections as found, of the packages that this is about.
  returned: success
  type: dict
  contains:
    selections:
      description: Package name to selection.
      type: dict
      sample: {linux-image-generic: install}
after:
  description: Selections as they are now, or would be in check mode.
  returned: success
  type: dict
  contains:
    selections:
      description: Package name to selection.
      type: dict
      sample: {linux-image-generic: hold}
plan:
  description: What was changed, or would be in check mode.
  returned: success
  type: list
  elements: dict
  contains:
    what:
      description: Always V(hold).
      type: str
    where:
      description: The package.
      type: str
    before:
      description: Its selection as found.
      type: str
    after:
      description: Its selection as wanted.
      type: str
    undo:
      description: A command that gives the selection back.
      type: str
run:
  description: The run in which the change is recorded; empty when nothing changed, in check mode, and for all runs.
  returned: success
  type: str
  sample: 20260101T120000Z-3f2a1c
metas:
  description: The metapackages among the held ones.
  returned: success and O(state=present)
  type: list
  elements: str
  sample: [linux-generic, linux-image-generic]
dependants:
  description: Packages that need a held one and were not held themselves.
  returned: success and O(state=present)
  type: list
  elements: str
  sample: [nvidia-driver-550]
vanished:
  description: Packages that an earlier run had held and whose hold was gone; they are held again.
  returned: success and O(state=present)
  type: list
  elements: str
  sample: []
gone:
  description: Packages that a run had held and that are no longer installed, so that there is nothing to give back.
  returned: success and O(state=absent)
  type: list
  elements: str
  sample: []
violations:
  description: What the simulations would still change.
  returned: when the proof fails
  type: list
  elements: dict
  sample:
    - {package: linux-image-6.8.0-124-generic, action: install, before: "", after: 6.8.0-124.124, command: apt-get dist-upgrade, pulled_by: [some-meta]}
diff:
  description: The same as RV(before) and RV(after).
  returned: success
  type: dict
  sample: {before: {selections: {linux-image-generic: install}}, after: {selections: {linux-image-generic: hold}}}
msg:
  description: One sentence that says what happened.
  returned: always
  type: str
  sample: Kernel 6.8.0-117-generic is pinned by holds on 7 packages, 7 of them new.
"""

from dataclasses import replace
from typing import Any

from ansible_collections.gpunode.hygiene.plugins.module_utils._host import record
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.answer import Answer, serve
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt import evidence, holds, plan
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.closure import KERNEL_RELEASE, closure, demand_kernel
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.lock import package_lock
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.simulate import prove
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.status import read_status
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.kernel.installed import describe, find
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import Change, HygieneError

ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "kernel_release": {"type": "str"},
    "keep": {"type": "list", "elements": "str", "default": []},
    "lock_timeout": {"type": "int", "default": 300},
    "run": {"type": "str"},
}


def work(parameters: dict[str, Any], check_mode: bool) -> Answer:
    """Read, decide, act, read back, while nobody else works on the packages."""
    if parameters["run"]:
        record.check_run_id(parameters["run"])
    act = present if parameters["state"] == "present" else absent
    with package_lock(parameters["lock_timeout"], write=not check_mode):
        holds.demand_finished()
        return act(parameters, check_mode)


def present(parameters: dict[str, Any], check_mode: bool) -> Answer:
    """Hold the closure once apt has shown that it keeps the kernels."""
    releases = list(dict.fromkeys([parameters["kernel_release"], *parameters["keep"]]))
    for release in releases:
        _demand_release(release)
    holds.demand_sound()
    packages = read_status()
    for release in releases:
        demand_kernel(packages, release)
        _demand_bootable(release)
    wanted = closure(packages, releases)
    prove(packages, wanted)
    found = evidence.selections(packages)
    claims = plan.plan_present(wanted.names, found)
    changes = [change for change in claims if change.before != change.after]
    run = parameters["run"] or record.adhoc_run()
    # Not of this run: it may have been killed after it recorded its holds and before it set them.
    vanished = plan.vanished([recorded for other, recorded in _records() if other != run], found)
    written = bool(changes) and not check_mode
    if written:
        record.save(run, evidence.MODULE, claims)
        holds.write_selections({change.where: change.after for change in changes})
    verb = "would be" if check_mode and changes else "is"
    again = f" The holds of {', '.join(vanished)} had vanished." if vanished else ""
    return Answer(
        msg=f"Kernel {releases[0]} {verb} pinned by holds on {len(claims)} packages, {len(changes)} of them new.{again}",
        before={"selections": {change.where: change.before for change in claims}},
        after={"selections": {change.where: change.after for change in claims}},
        plan=changes,
        extra={"run": run if written else "", "metas": list(wanted.metas), "dependants": list(wanted.dependants), "vanished": vanished},
    )


def absent(parameters: dict[str, Any], check_mode: bool) -> Answer:
    """Give back what the records say was there before."""
    records = _records()
    chosen = [run for run, _changes in records if parameters["run"] in (None, "", run)]
    found = evidence.selections(read_status())
    back = plan.plan_absent(records, chosen, found)
    if not check_mode:
        if back.changes:
            holds.write_selections({change.where: change.after for change in back.changes})
        for run, changes in records:
            if run in chosen and any(change.after == "hold" for change in changes):
                record.save(run, evidence.MODULE, [replace(change, after=None) for change in changes])
    return Answer(
        msg=f"{len(back.changes)} selections {'would be' if check_mode and back.changes else 'were'} given back.",
        before={"selections": {change.where: change.before for change in back.changes}},
        after={"selections": {change.where: change.after for change in back.changes}},
        plan=back.changes,
        extra={"run": parameters["run"] or "", "gone": list(back.gone)},
    )


def _records() -> list[tuple[str, list[Change]]]:
    """What each run recorded, oldest first."""
    return [(run, record.load(run, evidence.MODULE)) for run in record.runs_with(evidence.MODULE)]


def _demand_release(release: str) -> None:
    if not KERNEL_RELEASE.match(release):
        raise HygieneError(f"The kernel release is {release!r}", "That is no kernel release", "Give one as `uname -r` prints it")


def _demand_bootable(release: str) -> None:
    """A pin, or a fallback, on a kernel that does not boot is worse than none."""
    problems = describe(find(release), None)["problems"]
    if problems:
        raise HygieneError(
            f"Kernel {release} is not complete on disk: {'; '.join(problems)}",
            "A host that is kept on it would not boot",
            f"Repair it (`update-initramfs -u -k {release}`, or `apt-get install --reinstall linux-image-{release}`), or choose another kernel",
        )


def main() -> None:
    """Run the module."""
    serve(ARGUMENTS, work, required_if=[("state", "present", ["kernel_release"])])


if __name__ == "__main__":
    main()
