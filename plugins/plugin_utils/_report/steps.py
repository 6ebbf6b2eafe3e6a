# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a report, from the marks that a playbook sets when each begins. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ...module_utils._model import HygieneError

TIME = "%Y-%m-%dT%H:%M:%SZ"


def timestamp(seconds: float) -> str:
    """Seconds since the epoch as UTC, ISO 8601, as reports write times."""
    return datetime.fromtimestamp(seconds, UTC).strftime(TIME)


def steps(marks: Sequence[Mapping[str, Any]], finished: float, failure: str = "") -> list[dict[str, Any]]:
    """One step per mark: it lasts until the next mark, the last one until `finished`.

    :param marks: `{name, at}` in order of time; `at` and `finished` in seconds since the epoch.
    :param failure: why the last step failed; empty when it did not.
    :returns: `{name, started, seconds, result: ok | failed, msg}` each.
    :raises HygieneError: for a mark without name or time.
    """
    try:
        begins = [float(mark["at"]) for mark in marks]
        names = [str(mark["name"]) for mark in marks]
    except (KeyError, TypeError, ValueError) as error:
        raise HygieneError(f"A mark is not {{name, at}}: {error}", "How long the steps took is not known", "Give each mark a name and a time") from error
    return [
        {
            "name": name,
            "started": timestamp(begin),
            "seconds": round(max(end - begin, 0.0), 1),
            "result": "failed" if failure and place == len(begins) - 1 else "ok",
            "msg": failure if place == len(begins) - 1 else "",
        }
        for place, (name, begin, end) in enumerate(zip(names, begins, [*begins, float(finished)][1:], strict=True))
    ]
