# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A report as text that reads well in a terminal and as Markdown. Pure; the shape is docs/report.schema.json."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ...module_utils._model import HygieneError

SCHEMA_VERSION = 1
_VERDICTS = {
    "done": "done",
    "nothing_to_do": "nothing to do",
    "planned": "planned, nothing changed",
    "failed": "FAILED",
}


def text(report: Mapping[str, Any]) -> str:
    """The whole report, ending with a new line.

    :raises HygieneError: for a report of another schema version, or one that lacks a field.
    """
    if report.get("schema_version") != SCHEMA_VERSION:
        raise HygieneError(
            f"The report has schema_version {report.get('schema_version')!r}",
            f"Only version {SCHEMA_VERSION} can be rendered",
            "Render it with the version of the collection that wrote it",
        )
    try:
        return "\n".join([*_head(report), *(line for node in report["nodes"] for line in _node(node, report["verdict"]))]) + "\n"
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise HygieneError(
            f"The report lacks a field or has one of another type: {error!r}",
            "A text with gaps would hide what happened",
            "Compare it with docs/report.schema.json",
        ) from error


def duration(seconds: float) -> str:
    """`14 min 31 s`; with tenths below a minute."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"


def _head(report: Mapping[str, Any]) -> list[str]:
    took = (datetime.fromisoformat(report["finished"]) - datetime.fromisoformat(report["started"])).total_seconds()
    return [
        f"# {report['procedure']}: {_VERDICTS[report['verdict']]}",
        "",
        f"Run {report['run']}, {report['started']} to {report['finished']} ({duration(took)})",
    ]


def _node(node: Mapping[str, Any], verdict: str) -> Iterable[str]:
    host = "" if node["host"] == node["node"] else f" (host {node['host']})"
    yield from ("", f"## {node['node']}{host}", "")
    yield from _facts(node)
    yield from _section("Found", [_finding(finding) for finding in node["findings"]] or ["nothing"])
    yield from _section("Steps", _steps(node["steps"]))
    yield from _section("Would be changed" if verdict == "planned" else "Changed", [_change(change) for change in node["changes"]] or ["nothing"])
    yield from _section("Would be evicted" if verdict == "planned" else "Evicted", node["pods_evicted"])
    yield from _section("Not covered", node["not_covered"])
    yield from _section("Undo", [f"`{node['undo']}`"] if node["undo"] else [])


def _facts(node: Mapping[str, Any]) -> Iterable[str]:
    for name, pair in (("kernel", node["kernel"]), ("GPUs", node["gpu_capacity"])):
        before, after = (_value(pair[key]) for key in ("before", "after"))
        yield f"- {name}: {before}" + (f" -> {after}" if after != before else "")
    yield f"- reboots: {node['reboots']}"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    items = [f"- {line}" for line in lines]
    return ["", f"### {title}", "", *items] if items else []


def _finding(finding: Mapping[str, Any]) -> str:
    missing = f" To be certain, collect: {', '.join(finding['missing'])}." if finding["missing"] else ""
    return f"{finding['severity']}, {finding['confidence']}: **{finding['id']}** {finding['summary']}{missing}"


def _steps(steps: Iterable[Mapping[str, Any]]) -> list[str]:
    return [f"{step['name']}: {step['result']} in {duration(step['seconds'])}" + (f": {step['msg']}" if step["msg"] else "") for step in steps]


def _change(change: Mapping[str, Any]) -> str:
    return f"{change['what']} {change['where']}: {_value(change['before'])} -> {_value(change['after'])}"


def _value(value: Any) -> str:
    """On one line; files and menus are too long for a report, and are in the undo record."""
    if value is None:
        return "none"
    plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    first, newline, _rest = plain.partition("\n")
    return f"{first[:77]}..." if newline or len(first) > 80 else first or '""'
