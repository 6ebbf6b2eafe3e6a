# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Evidence in, findings out: three-valued logic over the signs of every rule."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...module_utils._model import Evidence, Finding, HygieneError, Remedy
from .derive import collect_hint, derive
from .operations import OPERATIONS, NotComparable
from .paths import look_up
from .plain import plain
from .schema import SEVERITIES, Group, LookAlike, Node, Rule, Sign, fill, placeholders

TEXT_LIMIT = 300
"""Characters of one value that a finding quotes."""


def diagnose(evidence: Any, rules: Sequence[Rule]) -> list[Finding]:
    """The findings about one node or, of a list, about each in turn; a node's most severe first.

    :param evidence: `{node, host: gpu_host, cluster: node_slice, images: [...], target: {kernel_release}, policy: {supported_kernels}, unreachable}`;
        every part but `node` may be missing or null.
    :raises HygieneError: when one is not a mapping with the node's name.
    """
    records = plain(evidence)
    return [finding for record in (records if isinstance(records, list) else [records]) for finding in _of_node(record, rules)]


def _of_node(record: Any, rules: Sequence[Rule]) -> list[Finding]:
    name = record.get("node") if isinstance(record, dict) else None
    if not isinstance(name, str) or not name:
        raise HygieneError(
            f"The evidence is {'a mapping without `node`' if isinstance(record, dict) else f'a {type(record).__name__}'}",
            "A finding must say which node it is about",
            "Give one mapping per node: {node: NAME, host: gpu_host, cluster: ..., images: ...}",
        )
    reader = _Reader({**record, "derived": derive(record)})
    findings = [finding for rule in rules if (finding := _apply(rule, reader, name)) is not None]
    return sorted(findings, key=lambda finding: (SEVERITIES.index(finding.severity), finding.id))


class _Reader:
    """The evidence of one node; each distinct path is looked up once."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record = record
        self._seen: dict[str, Any] = {}

    def __call__(self, path: str) -> Any:
        if path not in self._seen:
            self._seen[path] = look_up(path, self._record)
        return self._seen[path]


@dataclass(frozen=True)
class _Verdict:
    """Whether signs hold (None: cannot be told), and what says so."""

    holds: bool | None
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()
    otherwise: str = ""
    suggested: bool = False


def _apply(rule: Rule, reader: _Reader, node: str) -> Finding | None:
    required = _judge(rule.signs, reader)
    if required.holds is False or (required.holds is None and not required.suggested):
        return None
    considered, missing = [], list(required.missing)
    for look_alike in rule.look_alikes:
        other = _judge(look_alike.signs, reader)
        if other.holds:
            return None
        missing.extend(other.missing if other.holds is None else ())
        considered.append(_considered(look_alike, other))
    facts = {name: _quote(reader(path)) for name, path in rule.facts.items()}
    missing = list(dict.fromkeys(missing))
    return Finding(
        id=rule.id,
        severity=rule.severity,
        confidence="possible" if missing else "certain",
        node=node,
        summary=fill(rule.summary, facts),
        evidence=required.evidence,
        considered=tuple(considered),
        missing=tuple(missing),
        remedy=_remedy(rule, reader, facts),
        docs=rule.docs,
    )


def _considered(look_alike: LookAlike, verdict: _Verdict) -> dict[str, str]:
    if verdict.holds is None:
        return {"id": look_alike.id, "excluded_by": f"not excluded: it cannot be told without {', '.join(verdict.missing)}"}
    return {"id": look_alike.id, "excluded_by": verdict.otherwise}


def _remedy(rule: Rule, reader: _Reader, facts: Mapping[str, str]) -> Remedy:
    """The first whose signs hold; the last has none and always does."""
    choice = next(choice for choice in rule.remedies if _judge(choice.when, reader).holds)
    # A variable whose fact is unknown is left out: the playbook's own default is better than the word "unknown".
    variables = {
        name: fill(text, facts) for name, text in choice.vars.items() if all(reader(rule.facts[used]) is not None for used in placeholders(text))
    }
    return Remedy(choice.kind, fill(choice.name, facts), variables)


def _judge(node: Node, reader: _Reader) -> _Verdict:
    if isinstance(node, Sign):
        return _judge_sign(node, reader)
    verdicts = []
    decisive = node.kind == "any"
    for member in node.signs:
        verdict = _judge(member, reader)
        if verdict.holds is decisive:
            return verdict
        verdicts.append(verdict)
    return _combine(node, verdicts)


def _combine(group: Group, verdicts: Iterable[_Verdict]) -> _Verdict:
    """No member decides the group: it is unknown when one of them is, otherwise what they all are."""
    members = list(verdicts)
    unknown = [member for member in members if member.holds is None]
    return _Verdict(
        holds=None if unknown else group.kind == "all",
        evidence=tuple(item for member in members for item in member.evidence),
        missing=tuple(dict.fromkeys(item for member in unknown for item in member.missing)),
        otherwise="; ".join(member.otherwise for member in members if member.holds is False),
        suggested=any(member.suggested for member in members),
    )


def _judge_sign(sign: Sign, reader: _Reader) -> _Verdict:
    seen = reader(sign.path)
    wanted = reader(sign.value_from) if sign.value_from else sign.value
    if seen is None:
        return _Verdict(None, missing=(collect_hint(sign.path),))
    if wanted is None and sign.value_from:
        return _Verdict(None, missing=(collect_hint(sign.value_from),))
    try:
        holds = OPERATIONS[sign.op](seen, wanted)
    except NotComparable as trouble:
        return _Verdict(None, missing=(f"{collect_hint(sign.path)} (its value {trouble})",))
    if holds:
        return _Verdict(True, evidence=(Evidence(sign.path, _text(sign, seen)),), suggested=sign.suggests)
    if sign.complete and reader(sign.complete) is not True:
        return _Verdict(None, missing=(collect_hint(sign.complete),))
    return _Verdict(False, otherwise=sign.otherwise or f"{sign.path} is {_quote(seen)}, not: {sign.op}{'' if wanted is None else ' ' + _quote(wanted)}")


def _text(sign: Sign, seen: Any) -> str:
    """What a finding quotes: of a log, the line that matched."""
    if sign.op == "matches" and isinstance(seen, list):
        return _quote(next(text for text in seen if OPERATIONS["matches"](text, sign.value)))
    return _quote(seen)


def _quote(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, str):
        text = value.strip()
    elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        text = ", ".join(value)
    else:
        text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= TEXT_LIMIT else f"{text[: TEXT_LIMIT - 1]}…"
