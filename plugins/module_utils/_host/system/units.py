# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of systemd and of its units, never waited for past a deadline."""

from __future__ import annotations

from typing import Any, Sequence

from ..._model import HygieneError
from ..run import Completed, run

_TIMEOUT = 5.0
_STATES = ("initializing", "starting", "running", "degraded", "maintenance", "stopping")
_CAUSE = "Without it nobody can tell which services run on the host"
_LOOK = "Run `systemctl status` on the host: systemd must be process 1 and answer"


def parse_failed(text: str) -> list[str]:
    """The unit names in `systemctl list-units --failed --plain --no-legend`, sorted."""
    return sorted({line.split()[0] for line in text.splitlines() if line.strip()})


def parse_show(text: str) -> list[dict[str, str]]:
    """The properties in `systemctl show` of several units: one dict per unit, in the order asked for."""
    blocks = [block for block in text.strip().split("\n\n") if block.strip()]
    return [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in blocks]


def read_units() -> dict[str, Any]:
    """The `units` part: state (of the whole system, as `systemctl is-system-running` says) and failed (unit names).

    :raises HygieneError: when systemd gives no answer in time, or is not there.
    """
    running = run(["systemctl", "is-system-running"], timeout=_TIMEOUT)
    state = running.out.strip()
    if state not in _STATES:
        raise HygieneError(running.summary, _CAUSE, _LOOK)
    failed = demand(run(["systemctl", "list-units", "--failed", "--plain", "--no-legend", "--no-pager"], timeout=_TIMEOUT))
    return {"state": state, "failed": parse_failed(failed.out)}


def read_unit_states(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """For each unit that exists: active (bool) and enabled (systemd's word: `enabled`, `disabled`, `static`, `masked`, ...).

    :raises HygieneError: when systemd gives no answer in time, or is not there.
    """
    shown = demand(run(["systemctl", "show", "--no-pager", "--property=Id,LoadState,ActiveState,UnitFileState", *names], timeout=_TIMEOUT))
    return {
        unit["Id"]: {"active": unit["ActiveState"] not in ("inactive", "failed"), "enabled": unit["UnitFileState"]}
        for unit in parse_show(shown.out)
        if unit.get("LoadState") != "not-found"
    }


def demand(ended: Completed) -> Completed:
    """What ended well.

    :raises HygieneError: when it did not.
    """
    if not ended.ok:
        raise HygieneError(ended.summary, _CAUSE, _LOOK)
    return ended
