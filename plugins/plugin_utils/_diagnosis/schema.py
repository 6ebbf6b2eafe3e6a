# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rule schema: what a rule file may say, checked key by key, and the typed rule that comes out of it.

A rule file holds one mapping, or a list of them:

    id: kernel-headers-unavailable      # public name of the finding
    severity: critical                  # info | warning | critical
    summary: "... {kernel} ..."         # one sentence; names in braces come from `facts`
    facts: {kernel: host.kernel.running}
    signs: [SIGN, ...]                  # all of them must hold
    look_alikes:                        # conditions with the same symptoms; one that holds keeps the rule from firing
      - {id: driver-install-slow, signs: [SIGN, ...]}
    remedy: REMEDY, or a list of them whose `when: [SIGN, ...]` are tried in turn (the last has none)
    docs: docs/findings/kernel-headers-unavailable.md   # this is the default

    SIGN   = {path: JMESPath, op: name, value: any | value_from: JMESPath, complete: JMESPath, suggests: bool, otherwise: text}
             or {any: [SIGN, ...]} or {all: [SIGN, ...]}
    REMEDY = {kind: playbook | command | manual, name: text, vars: {NAME: text}}

A path that gives null is unknown, never false. `complete` names a path that must be true before "does not hold" is believed: absence of a
line in a log that could not be read whole proves nothing. `suggests` marks a sign that, when others are unknown, is enough for a possible
finding. `otherwise` says in words what is seen when the sign does not hold; findings quote it for the look-alikes that it excludes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils._model import HygieneError
from .operations import OPERATIONS, PATTERN, WITHOUT_VALUE
from .paths import PathError, compile_path

SEVERITIES = ("critical", "warning", "info")
REMEDY_KINDS = ("playbook", "command", "manual")
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


@dataclass(frozen=True)
class Sign:
    """One comparison of a value in the evidence. `value` is used as it is; `value_from` is a path to it."""

    path: str
    op: str
    value: Any = None
    value_from: str = ""
    complete: str = ""
    suggests: bool = False
    otherwise: str = ""


@dataclass(frozen=True)
class Group:
    """Signs of which one (`any`) or each (`all`) must hold."""

    kind: str
    signs: tuple[Node, ...]


Node = Sign | Group


@dataclass(frozen=True)
class LookAlike:
    """A condition that shows the same symptoms."""

    id: str
    signs: Group


@dataclass(frozen=True)
class RemedyChoice:
    """A remedy and when it is the right one; texts may hold placeholders."""

    when: Group
    kind: str
    name: str
    vars: Mapping[str, str]


@dataclass(frozen=True)
class Rule:
    """One class of findings. `origin` is the file that defines it."""

    id: str
    severity: str
    summary: str
    facts: Mapping[str, str]
    signs: Group
    look_alikes: tuple[LookAlike, ...]
    remedies: tuple[RemedyChoice, ...]
    docs: str
    origin: str


class _Trouble(Exception):
    """What is wrong with a rule, and where in it."""


def parse_rules(document: Any, origin: str) -> list[Rule]:
    """The rules of one parsed YAML document.

    :raises HygieneError: naming the file, the rule, the key and what is wanted there.
    """
    entries = document if isinstance(document, list) else [document]
    rules = []
    for number, entry in enumerate(entries, start=1):
        name = entry.get("id") if isinstance(entry, dict) else None
        try:
            rules.append(_rule(entry, origin))
        except _Trouble as trouble:
            raise HygieneError(
                f"Rule {name if isinstance(name, str) else f'number {number}'} in {origin}: {trouble}",
                "A rule that is half understood would classify nodes wrongly, so none is used",
                "Correct the file; the rules are described in docs/rules.md, and those of the collection are examples",
            ) from None
    return rules


def unique(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules in order of id.

    :raises HygieneError: when two have the same id.
    """
    seen: dict[str, Rule] = {}
    for rule in rules:
        if rule.id in seen:
            raise HygieneError(
                f"Two rules have the id {rule.id}: one in {seen[rule.id].origin}, one in {rule.origin}",
                "A finding's id must mean one thing only",
                "Give your own rule another id, for example one that begins with your organisation's name",
            )
        seen[rule.id] = rule
    return tuple(seen[name] for name in sorted(seen))


def placeholders(text: str) -> list[str]:
    """The names in braces."""
    return _PLACEHOLDER.findall(text)


def fill(text: str, facts: Mapping[str, str]) -> str:
    """The text with every `{name}` replaced; str.format is not used, since rule files come from users and it reaches attributes."""
    return _PLACEHOLDER.sub(lambda found: facts[found.group(1)], text)


def _rule(entry: Any, origin: str) -> Rule:
    _keys(entry, "the rule", {"id", "severity", "summary", "signs", "remedy"}, {"facts", "look_alikes", "docs"})
    rule_id = _identifier(entry["id"], "id")
    facts = entry.get("facts", {})
    if not isinstance(facts, dict):
        raise _Trouble(f"facts is {_kind(facts)}, wanted is a mapping from a name to a JMESPath")
    for name, path in facts.items():
        if not isinstance(name, str) or not _PLACEHOLDER.fullmatch(f"{{{name}}}"):
            raise _Trouble(f"facts has the name {name!r}; wanted are small letters, digits and underscores")
        _path(path, f"facts.{name}")
    summary = _string(entry["summary"], "summary")
    remedies = _remedies(entry["remedy"])
    texts = [summary] + [text for remedy in remedies for text in (remedy.name, *remedy.vars.values())]
    for text in texts:
        for name in placeholders(text):
            if name not in facts:
                raise _Trouble(f"{{{name}}} is used in a text, but facts does not define it")
    return Rule(
        id=rule_id,
        severity=_choice(entry["severity"], "severity", SEVERITIES),
        summary=summary,
        facts=facts,
        signs=_group("all", entry["signs"], "signs"),
        look_alikes=_look_alikes(entry.get("look_alikes", [])),
        remedies=remedies,
        docs=_string(entry.get("docs", f"docs/findings/{rule_id}.md"), "docs"),
        origin=origin,
    )


def _remedies(value: Any) -> tuple[RemedyChoice, ...]:
    entries = value if isinstance(value, list) else [value]
    if not entries:
        raise _Trouble("remedy is an empty list, wanted is at least one remedy")
    choices = []
    for number, entry in enumerate(entries):
        where = f"remedy[{number}]" if isinstance(value, list) else "remedy"
        _keys(entry, where, {"kind", "name"}, {"vars", "when"})
        last = number == len(entries) - 1
        if last == ("when" in entry):
            raise _Trouble(f"{where} {'is the last and must not have' if last else 'is not the last and must have'} `when`")
        variables = entry.get("vars", {})
        if not isinstance(variables, dict) or not all(isinstance(name, str) and isinstance(text, str) for name, text in variables.items()):
            raise _Trouble(f"{where}.vars is not a mapping from names to texts")
        choices.append(
            RemedyChoice(
                when=_group("all", entry["when"], f"{where}.when") if "when" in entry else Group("all", ()),
                kind=_choice(entry["kind"], f"{where}.kind", REMEDY_KINDS),
                name=_string(entry["name"], f"{where}.name"),
                vars=variables,
            )
        )
    return tuple(choices)


def _look_alikes(value: Any) -> tuple[LookAlike, ...]:
    if not isinstance(value, list):
        raise _Trouble(f"look_alikes is {_kind(value)}, wanted is a list")
    found = []
    for number, entry in enumerate(value):
        where = f"look_alikes[{number}]"
        _keys(entry, where, {"id", "signs"}, set())
        found.append(LookAlike(_identifier(entry["id"], f"{where}.id"), _group("all", entry["signs"], f"{where}.signs")))
    return tuple(found)


def _group(kind: str, value: Any, where: str) -> Group:
    if not isinstance(value, list) or not value:
        raise _Trouble(f"{where} is {_kind(value) if not isinstance(value, list) else 'empty'}, wanted is a list of signs")
    return Group(kind, tuple(_node(entry, f"{where}[{number}]") for number, entry in enumerate(value)))


def _node(entry: Any, where: str) -> Node:
    if isinstance(entry, dict) and len(entry) == 1 and next(iter(entry)) in ("any", "all"):
        kind = next(iter(entry))
        return _group(kind, entry[kind], f"{where}.{kind}")
    _keys(entry, where, {"path", "op"}, {"value", "value_from", "complete", "suggests", "otherwise"})
    op = _choice(entry["op"], f"{where}.op", tuple(OPERATIONS))
    given = {"value", "value_from"} & set(entry)
    if op in WITHOUT_VALUE and given:
        raise _Trouble(f"{where} has {' and '.join(sorted(given))}, but {op} takes none")
    if op not in WITHOUT_VALUE and len(given) != 1:
        raise _Trouble(f"{where} needs either value or value_from for {op}")
    if op in PATTERN:
        _pattern(entry, where)
    if "value" in entry and entry["value"] is None:
        raise _Trouble(f"{where}.value is null, but null in the evidence means unknown and is never compared")
    suggests = entry.get("suggests", False)
    if not isinstance(suggests, bool):
        raise _Trouble(f"{where}.suggests is {_kind(suggests)}, wanted is true or false")
    return Sign(
        path=_path(entry["path"], f"{where}.path"),
        op=op,
        value=entry.get("value"),
        value_from=_path(entry["value_from"], f"{where}.value_from") if "value_from" in entry else "",
        complete=_path(entry["complete"], f"{where}.complete") if "complete" in entry else "",
        suggests=suggests,
        otherwise=_string(entry["otherwise"], f"{where}.otherwise") if "otherwise" in entry else "",
    )


def _pattern(entry: dict[str, Any], where: str) -> None:
    """A pattern is part of the rule: one that came from the evidence could be anything."""
    if "value_from" in entry:
        raise _Trouble(f"{where} has value_from, but the pattern of {entry['op']} must be written in the rule")
    try:
        re.compile(_string(entry["value"], f"{where}.value"))
    except re.error as error:
        raise _Trouble(f"{where}.value is not a regular expression: {error}") from None


def _keys(entry: Any, where: str, needed: set[str], optional: set[str]) -> None:
    if not isinstance(entry, dict):
        raise _Trouble(f"{where} is {_kind(entry)}, wanted is a mapping")
    missing = needed - set(entry)
    if missing:
        raise _Trouble(f"{where} lacks {', '.join(sorted(missing))}")
    unknown = {str(key) for key in entry} - needed - optional
    if unknown:
        raise _Trouble(f"{where} has {', '.join(sorted(unknown))}, which is not known there; known are {', '.join(sorted(needed | optional))}")


def _string(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Trouble(f"{where} is {_kind(value) if not isinstance(value, str) else 'empty'}, wanted is a text")
    return value


def _choice(value: Any, where: str, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise _Trouble(f"{where} is {value!r}, wanted is one of {', '.join(choices)}")
    return value


def _identifier(value: Any, where: str) -> str:
    if not isinstance(value, str) or not _ID.match(value):
        raise _Trouble(f"{where} is {value!r}, wanted are small letters and digits with single dashes between")
    return value


def _path(value: Any, where: str) -> str:
    text = _string(value, where)
    try:
        compile_path(text)
    except PathError as error:
        raise _Trouble(f"{where} is not a JMESPath: {error}") from None
    return text


def _kind(value: Any) -> str:
    """How YAML calls what is there."""
    if value is None:
        return "null"
    names: dict[type, str] = {bool: "a truth value", int: "a number", float: "a number", str: "a text", list: "a list", dict: "a mapping"}
    return names.get(type(value), f"a {type(value).__name__}")
