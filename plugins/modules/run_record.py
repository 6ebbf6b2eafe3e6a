#!/usr/bin/python
# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Open and close a procedure's run on the host it works on."""

from __future__ import annotations

DOCUMENTATION = r"""
module: run_record
short_description: Record on a host that a procedure's run starts or ends there
version_added: 0.1.0
author:
  - gpunode.hygiene contributors (@gpunode)
description:
  - Writes C(/var/lib/gpunode-hygiene/runs/<run>/run.json), beside the undo records of the modules that work in the same run.
  - What a run saw when it started is kept when the run is started again, so that the host can be compared with how it was before.
  - Can keep apt from starting by itself between start and end, reboots included.
options:
  run:
    description:
      - Id of the run.
    type: str
    required: true
  state:
    description:
      - V(started) writes the description when there is none, and opens a finished run again.
      - V(finished) closes it and removes the oldest finished runs beyond O(keep_runs). Nothing is closed where nothing describes the run.
    type: str
    choices: [started, finished]
    default: started
  procedure:
    description:
      - What runs, as the name of a playbook. Needed to describe a run.
    type: str
  node:
    description:
      - The name of the Node that the host is; empty outside Kubernetes.
    type: str
    default: ""
  controller:
    description:
      - From where it runs.
    type: str
    default: ""
  verdict:
    description:
      - How the run ended.
      - Not used when O(state=started).
    type: str
  apt_timers:
    description:
      - V(stopped) stops and disables C(apt-daily.timer), C(apt-daily-upgrade.timer) and C(unattended-upgrades.service), as far as the host has them.
        How they were is recorded first.
      - V(restored) gives them back as recorded in this run. A unit that somebody else changed since, or that another unfinished run has stopped too,
        is left alone and named in RV(left).
      - Without it, they are not touched.
    type: str
    choices: [stopped, restored]
  keep_runs:
    description:
      - How many runs to keep on the host. Runs that are not finished are never removed.
      - Not used when O(state=started).
    type: int
    default: 20
attributes:
  check_mode:
    description: Can run in check mode and return what would change without changing it.
    support: full
  diff_mode:
    description: Returns what changed, or would change in check mode.
    support: full
notes:
  - Needs root on the host, and systemd.
"""

EXAMPLES = r"""
- name: Open the run, and keep apt quiet
  gpunode.hygiene.run_record:
    run: 20260101T120000Z-3f2a1c
    procedure: recover_kernel_mismatch
    node: gpu-17
    apt_timers: stopped

- name: Close it
  gpunode.hygiene.run_record:
    run: 20260101T120000Z-3f2a1c
    state: finished
    verdict: recovered
    apt_timers: restored
"""

RETURN = r"""
record:
  description: The description of the run; V(null) where there is none.
  returned: success
  type: dict
  contains:
    version:
      description: Version of the format.
      type: int
      sample: 1
    run:
      description: The run's id.
      type: str
      sample: 20260101T120000Z-3f2a1c
    procedure:
      description: What runs.
      type: str
      sample: recover_kernel_mismatch
    node:
      description: The Node's name; empty outside Kubernetes.
      type: str
      sample: gpu-17
    controller:
      description: From where it runs.
      type: str
      sample: bastion-1
    state:
      description: V(started) or V(finished).
      type: str
      sample: started
    started:
      description: When it started first, UTC.
      type: str
      sample: '2026-01-01T12:00:00Z'
    finished:
      description: When it finished, UTC; V(null) until then.
      type: str
    verdict:
      description: How it ended; V(null) when not said.
      type: str
    boot_id:
      description: The boot in which it started.
      type: str
      sample: 0c2a1c2e-9a51-4b1d-8f0e-1c9d5a4f7b11
    kernel:
      description: The kernel release that ran when it started.
      type: str
      sample: 7.0.0-15-generic
    failed_units:
      description: The units that were failed when it started.
      type: list
      elements: str
      sample: []
before:
  description: The description and the units as found.
  returned: success
  type: dict
  contains:
    record:
      description: As RV(record), before.
      type: dict
    units:
      description: Unit to C(active) and C(enabled), of the units that were changed.
      type: dict
      sample: {apt-daily.timer: {active: true, enabled: enabled}}
    pruned:
      description: The runs that were removed.
      type: list
      elements: str
      sample: []
after:
  description: The same as they are now, or would be in check mode.
  returned: success
  type: dict
  contains:
    record:
      description: As RV(record).
      type: dict
    units:
      description: Unit to C(active) and C(enabled), of the units that were changed.
      type: dict
      sample: {apt-daily.timer: {active: false, enabled: disabled}}
    pruned:
      description: Always empty.
      type: list
      elements: str
      sample: []
plan:
  description: The changes to units, done or to be done.
  returned: success
  type: list
  elements: dict
  contains:
    what:
      description: Always V(unit).
      type: str
    where:
      description: The unit.
      type: str
    before:
      description: Its C(active) and C(enabled) as found.
      type: dict
    after:
      description: The same as wanted.
      type: dict
    undo:
      description: A command that gives the earlier state back.
      type: str
left:
  description: Units that were not given back because somebody else changed them since, or another run needs them stopped.
  returned: success
  type: list
  elements: str
  sample: []
"""

import os
import time
from typing import Any, Optional

from ansible_collections.gpunode.hygiene.plugins.module_utils._host import record, runs
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.answer import Answer, serve
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.system.identity import read_boot_id
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.system.pause import APT_UNITS, WHAT, apply, plan_pause, plan_return
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.system.units import read_unit_states, read_units
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import Change, HygieneError

MODULE = "run_record"
ARGUMENTS: dict[str, dict[str, Any]] = {
    "run": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["started", "finished"], "default": "started"},
    "procedure": {"type": "str"},
    "node": {"type": "str", "default": ""},
    "controller": {"type": "str", "default": ""},
    "verdict": {"type": "str"},
    "apt_timers": {"type": "str", "choices": ["stopped", "restored"]},
    "keep_runs": {"type": "int", "default": 20},
}


def work(parameters: dict[str, Any], check_mode: bool, folder: str = record.RUNS) -> Answer:
    """Open or close the run whose records lie below `folder`, and stop or restore the units."""
    run = record.check_run_id(parameters["run"])
    found = runs.load(run, folder)
    wanted = _opened(found, parameters) if parameters["state"] == runs.STARTED else _closed(found, parameters)
    known = runs.listing(folder)
    changes, left = _plan(parameters["apt_timers"], record.load(run, MODULE, folder), runs.in_use_by_others(known, WHAT, run))
    surplus = runs.surplus(known, parameters["keep_runs"], run) if parameters["state"] == runs.FINISHED else []
    if not check_mode:
        # The description first: a run that dies while units are stopped is known to the next one.
        if wanted is not None and wanted != found and parameters["state"] == runs.STARTED:
            runs.save(wanted, folder)
        if parameters["apt_timers"] == "stopped" and changes:
            record.save(run, MODULE, changes, folder)
        apply(changes)
        if wanted is not None and wanted != found and parameters["state"] == runs.FINISHED:
            runs.save(wanted, folder)
        for old in surplus:
            runs.prune(old, folder)
    return Answer(
        msg=_sentence(run, found, wanted, changes, left, check_mode),
        before=_state(found, {change.where: change.before for change in changes}, surplus),
        after=_state(wanted, {change.where: change.after for change in changes}, []),
        plan=changes,
        extra={"record": wanted.as_dict() if wanted else None, "left": left},
    )


def _opened(found: Optional[runs.Run], parameters: dict[str, Any]) -> runs.Run:
    if found is not None:
        return runs.start(found, found)
    if not parameters["procedure"]:
        raise HygieneError(f"Nothing describes run {parameters['run']} yet", "What runs has to be recorded with it", "Give `procedure`")
    return runs.Run(
        run=parameters["run"],
        procedure=parameters["procedure"],
        node=parameters["node"],
        controller=parameters["controller"],
        started=_now(),
        boot_id=read_boot_id(),
        kernel=os.uname().release,
        failed_units=tuple(read_units()["failed"]),
    )


def _closed(found: Optional[runs.Run], parameters: dict[str, Any]) -> Optional[runs.Run]:
    return None if found is None else runs.finish(found, _now(), parameters["verdict"])


def _plan(apt_timers: Optional[str], recorded: list[Change], in_use: set[str]) -> tuple[list[Change], list[str]]:
    if apt_timers == "stopped":
        return plan_pause(read_unit_states(APT_UNITS)), []
    if apt_timers == "restored" and recorded:
        return plan_return(recorded, read_unit_states([change.where for change in recorded]), in_use)
    return [], []


def _state(description: Optional[runs.Run], units: dict[str, Any], pruned: list[str]) -> dict[str, Any]:
    return {"record": description.as_dict() if description else None, "units": units, "pruned": pruned}


def _sentence(run: str, found: Optional[runs.Run], wanted: Optional[runs.Run], changes: list[Change], left: list[str], check_mode: bool) -> str:
    would = check_mode and wanted != found
    state = f"Run {run} {'would be' if would else 'is'} {wanted.state}" if wanted else f"Nothing on the host describes run {run}"
    units = ", ".join(change.where for change in changes)
    did = f"; {'would change' if check_mode else 'changed'} {units}" if units else ""
    kept = f"; left alone, since it is not ours any more: {', '.join(left)}" if left else ""
    return f"{state}{did}{kept}."


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def main() -> None:
    """Run the module."""
    serve(ARGUMENTS, work)


if __name__ == "__main__":
    main()
