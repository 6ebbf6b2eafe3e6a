# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The few types that both sides share: what a change is, what a finding is, and the one exception of the collection."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Iterable, Optional

RUN_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")


class HygieneError(Exception):
    """A refusal or failure that a person can act on.

    :param seen: what was observed, with the values.
    :param why: why the work stops here.
    :param remedy: the command or option that gets past it.
    :param facts: JSON-serialisable details for the module's answer (not part of the sentence).
    """

    def __init__(self, seen: str, why: str, remedy: str, facts: Optional[dict[str, Any]] = None) -> None:
        self.seen = seen
        self.why = why
        self.remedy = remedy
        self.facts = facts or {}
        super().__init__(f"{_sentence(seen)} {_sentence(why)} {_sentence(remedy)}")


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


@dataclass(frozen=True)
class Change:
    """One thing that is, or would be, changed; plan, diff, report and undo are renderings of it.

    :param what: the kind of thing (`hold`, `file`, `next_entry`, `cordon`, `annotation`, ...).
    :param where: which one (a package name, a path, a node name).
    :param before: its JSON-serialisable value as found; None when it was absent.
    :param after: the value wanted; None when it shall be absent.
    :param undo: the command or playbook call that gives `before` back.
    """

    what: str
    where: str
    before: Any
    after: Any
    undo: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What identifies the thing across runs."""
        return (self.what, self.where)

    def as_dict(self) -> dict[str, Any]:
        """The plain form for answers, records and reports."""
        return asdict(self)


def merge(earlier: Iterable[Change], later: Iterable[Change]) -> list[Change]:
    """Both in one: the first `before` of a thing stays, its `after` is the newest.

    A run that was killed and started again finds its own work in place; what was there before the run is what counts.
    """
    merged: dict[tuple[str, str], Change] = {}
    for change in (*earlier, *later):
        first = merged.get(change.key)
        merged[change.key] = replace(change, before=first.before) if first else change
    return list(merged.values())


@dataclass(frozen=True)
class Evidence:
    """Where a finding's sign was seen. `source` is a path in the evidence, `text` the value or log line."""

    source: str
    text: str


@dataclass(frozen=True)
class Remedy:
    """What to do about a finding. `kind` is playbook, command or manual."""

    kind: str
    name: str
    vars: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """One classified condition of one node. `severity` is info, warning or critical; `confidence` is certain or possible."""

    id: str
    severity: str
    confidence: str
    node: str
    summary: str
    evidence: tuple[Evidence, ...]
    considered: tuple[dict[str, str], ...]
    missing: tuple[str, ...]
    remedy: Remedy
    docs: str

    def as_dict(self) -> dict[str, Any]:
        """The plain form: dicts and lists only."""
        plain = asdict(self)
        for name in ("evidence", "considered", "missing"):
            plain[name] = list(plain[name])
        return plain
