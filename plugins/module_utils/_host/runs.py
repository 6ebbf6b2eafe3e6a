# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A procedure's runs on a host: what started when, by whom, how the host was, how it ended.

`/var/lib/gpunode-hygiene/runs/<run>/run.json` describes a run; the undo records of its modules (_host/record.py) lie beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass, replace
from typing import Any, Iterable, Optional

from .._model import RUN_ID, HygieneError
from . import record
from .files import read_text, sync_folder, write_atomic

DESCRIPTION = "run"
VERSION = 1
STARTED, FINISHED = "started", "finished"


@dataclass(frozen=True)
class Run:
    """The description of one run.

    :param node: the Node's name; empty outside Kubernetes.
    :param started: UTC, ISO 8601; so is `finished`, which is None until then.
    :param boot_id: the boot that the run started in; `kernel` is the release that ran then.
    :param failed_units: the systemd units that were failed before the run.
    :param verdict: how it ended, in one word or sentence.
    """

    run: str
    procedure: str
    node: str
    controller: str
    started: str
    boot_id: str
    kernel: str
    failed_units: tuple[str, ...]
    state: str = STARTED
    finished: Optional[str] = None
    verdict: Optional[str] = None

    def as_dict(self) -> dict[str, Any]:
        """The plain form for the file and for answers."""
        return {"version": VERSION, **asdict(self), "failed_units": list(self.failed_units)}


def start(found: Optional[Run], wanted: Run) -> Run:
    """The description once a run is started: the first one stays, whatever a run that is started again sees; a finished run is open again."""
    return wanted if found is None else replace(found, state=STARTED, finished=None, verdict=None)


def finish(found: Run, now: str, verdict: Optional[str]) -> Run:
    """The description once a run is finished; a run that is finished already keeps its time, and its verdict when none is given."""
    return replace(found, state=FINISHED, finished=found.finished or now, verdict=verdict or found.verdict)


def load(run: str, runs: str = record.RUNS) -> Optional[Run]:
    """The description of a run; None when it has none.

    :raises HygieneError: when it is there but not readable as version 1.
    """
    path = _path(run, runs)
    text = read_text(path)
    if text is None:
        return None
    try:
        fields = json.loads(text)
        if fields.pop("version") != VERSION:
            raise ValueError("another version")
        return Run(**{**fields, "failed_units": tuple(fields["failed_units"])})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HygieneError(
            f"The description of a run, {path}, cannot be read ({error})",
            "How the host was before that run is not known without it",
            "Restore the file from a backup, or move it away",
        ) from error


def save(description: Run, runs: str = record.RUNS) -> None:
    """Write the description of a run.

    :raises HygieneError: when the run id is not safe as a folder name.
    """
    os.makedirs(os.path.join(runs, record.check_run_id(description.run)), mode=0o755, exist_ok=True)
    write_atomic(_path(description.run, runs), json.dumps(description.as_dict(), indent=1, sort_keys=True) + "\n")


def listing(runs: str = record.RUNS) -> list[dict[str, Any]]:
    """The `runs` part: every run on the host, newest first.

    Each has the fields of `Run` (None where a module was called by itself and nothing describes the run), `modules` (those that recorded changes),
    `changes` (all of theirs; None when a record cannot be read) and `problem` (why; None otherwise).

    :raises OSError: when the folder cannot be read.
    """
    rows = [_row(run, runs) for run in _ids(runs)]
    return sorted(rows, key=lambda row: (row["started"] or "", row["run"]), reverse=True)


def surplus(rows: Iterable[dict[str, Any]], keep: int, current: str) -> list[str]:
    """The runs beyond the newest `keep`, oldest first; never the current one, none that is not finished, and none with a damaged record.

    :param rows: as `listing` gives them, newest first.
    """
    ended = [row["run"] for row in rows if row["state"] != STARTED and row["problem"] is None and row["run"] != current]
    return ended[max(keep - 1, 0) :][::-1]


def in_use_by_others(rows: Iterable[dict[str, Any]], what: str, current: str) -> set[str]:
    """The things of one kind that another run, which is not finished, has changed."""
    others = [row for row in rows if row["state"] == STARTED and row["run"] != current]
    return {change["where"] for row in others for change in row["changes"] or [] if change["what"] == what}


def prune(run: str, runs: str = record.RUNS) -> None:
    """Remove one run's folder for good."""
    shutil.rmtree(os.path.join(runs, record.check_run_id(run)))
    sync_folder(runs)


def _row(run: str, runs: str) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(Run.__dataclass_fields__)
    modules = _modules(os.path.join(runs, run))
    try:
        described = load(run, runs)
        changes = [change.as_dict() for module in modules for change in record.load(run, module, runs)]
    except HygieneError as error:
        # One damaged record must not hide the others, nor keep a run from being closed.
        return {**empty, "run": run, "started": _oldest(run, modules, runs), "modules": modules, "changes": None, "problem": str(error)}
    fields = {name: value for name, value in described.as_dict().items() if name != "version"} if described else empty
    return {**fields, "run": run, "started": fields["started"] or _oldest(run, modules, runs), "modules": modules, "changes": changes, "problem": None}


def _modules(folder: str) -> list[str]:
    names = [name[: -len(".json")] for name in sorted(os.listdir(folder)) if name.endswith(".json") and not name.startswith(".")]
    return [name for name in names if name != DESCRIPTION]


def _oldest(run: str, modules: list[str], runs: str) -> Optional[str]:
    """When an undescribed run recorded its changes."""
    times = [os.stat(os.path.join(runs, run, f"{module}.json")).st_mtime for module in modules]
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(min(times))) if times else None


def _ids(runs: str) -> list[str]:
    try:
        names = os.listdir(runs)
    except FileNotFoundError:
        return []
    return sorted(name for name in names if RUN_ID.match(name) and os.path.isdir(os.path.join(runs, name)))


def _path(run: str, runs: str) -> str:
    return os.path.join(runs, run, f"{DESCRIPTION}.json")
