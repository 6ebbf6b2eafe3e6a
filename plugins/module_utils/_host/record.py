# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The undo record: what was there before a run changed it.

One file per run and module, `/var/lib/gpunode-hygiene/runs/<run>/<module>.json`:
`{"version": 1, "run": str, "module": str, "written": "<UTC, ISO 8601>", "changes": [Change, ...]}`.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Iterable, Optional

from .._model import RUN_ID, Change, HygieneError, merge
from .files import read_text, write_atomic

RUNS = "/var/lib/gpunode-hygiene/runs"
VERSION = 1


def adhoc_run() -> str:
    """The id of a run that nobody named: one module called by itself."""
    return time.strftime("adhoc-%Y%m%dT%H%M%SZ", time.gmtime())


def check_run_id(run: str) -> str:
    """The id itself, once it is safe as a folder name.

    :raises HygieneError: when it is not.
    """
    if not RUN_ID.match(run):
        raise HygieneError(
            f"The run id is {run!r}",
            "It names a folder, so only letters, digits, dot, underscore and hyphen are allowed, 64 at most, and the first is a letter or digit",
            "Give `run` another value, or leave it out",
        )
    return run


def load(run: str, module: str, runs: str = RUNS) -> list[Change]:
    """What a module recorded in a run; empty when it recorded nothing.

    :raises HygieneError: when the record is there but not readable as version 1.
    """
    path = os.path.join(runs, run, f"{module}.json")
    text = read_text(path)
    if text is None:
        return []
    try:
        record = json.loads(text)
        if record["version"] != VERSION:
            raise ValueError(f"version {record['version']}")
        return [Change(**change) for change in record["changes"]]
    except (ValueError, KeyError, TypeError) as error:
        raise HygieneError(
            f"The undo record {path} cannot be read ({error})",
            "What to give back is not known without it",
            "Restore the file from a backup, or move it away and undo by hand",
        ) from error


def save(run: str, module: str, planned: Iterable[Change], runs: str = RUNS) -> None:
    """Record planned changes before they are made."""
    folder = os.path.join(runs, check_run_id(run))
    os.makedirs(folder, mode=0o755, exist_ok=True)
    changes = merge(load(run, module, runs), planned)
    record = {
        "version": VERSION,
        "run": run,
        "module": module,
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "changes": [change.as_dict() for change in changes],
    }
    write_atomic(os.path.join(folder, f"{module}.json"), json.dumps(record, indent=1, sort_keys=True) + "\n")


def runs_with(module: str, runs: str = RUNS) -> list[str]:
    """The ids of the runs in which a module recorded something, oldest first."""
    found = []
    for run in _entries(runs):
        written = _written(os.path.join(runs, run, f"{module}.json"))
        if written is not None:
            found.append((written, run))
    return [run for written, run in sorted(found)]


def _entries(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _written(path: str) -> Optional[Any]:
    try:
        return os.stat(path).st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return None
