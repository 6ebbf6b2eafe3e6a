# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gpunode_* variables are defined once, in docs/variables.yml, and the playbooks use exactly those."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
NAME = re.compile(r"\bgpunode_[a-z0-9_]+\b")
WITH_DEFAULT = re.compile(r"\b(?P<name>gpunode_[a-z0-9_]+) \| default\((?P<literal>'[^']*'|-?\d+|true|false|\[\])(?:, true)?\)")
TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
EXPRESSIONS = {"when", "until", "failed_when", "changed_when", "that", "loop", "var"}  # keywords whose values are Jinja without braces

VARIABLES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docs" / "variables.yml").read_text("utf-8"))
PLAYBOOKS = sorted((ROOT / "playbooks").rglob("*.yml"))


def used(paths: list[Path]) -> set[str]:
    return {name for path in paths for name in NAME.findall(path.read_text("utf-8"))}


def expressions(node: Any, bare: bool = False) -> Iterator[str]:
    """All Jinja in a YAML document, without the texts in it: a message may name a variable, an expression must not."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from expressions(value, key in EXPRESSIONS)
    elif isinstance(node, list):
        for item in node:
            yield from expressions(item, bare)
    elif isinstance(node, str):
        for expression in [node] if bare else TEMPLATE.findall(node):
            yield QUOTED.sub("", expression)


def defaults() -> Iterator[tuple[str, str, Any]]:
    """(file, variable, default that a playbook falls back to), where that is a literal."""
    for path in PLAYBOOKS:
        for found in WITH_DEFAULT.finditer(path.read_text("utf-8")):
            yield path.relative_to(ROOT).as_posix(), found["name"], yaml.safe_load(found["literal"])


def test_every_variable_of_the_playbooks_is_defined_and_every_defined_one_is_used() -> None:
    assert used(PLAYBOOKS) == set(VARIABLES)


def test_roles_never_read_the_playbooks_variables() -> None:
    files = [path for part in ("tasks", "defaults", "vars", "handlers") for path in sorted((ROOT / "roles").glob(f"*/{part}/**/*.yml"))]
    read = {(path, name) for path in files for text in expressions(yaml.safe_load(path.read_text("utf-8"))) for name in NAME.findall(text)}
    assert read == set()


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_has_a_type_a_default_of_that_type_and_a_meaning(name: str) -> None:
    variable = VARIABLES[name]
    assert sorted(variable) == ["default", "meaning", "type"]
    assert type(variable["default"]).__name__ == variable["type"]
    assert variable["meaning"].endswith(".")


@pytest.mark.parametrize(("path", "name", "default"), sorted(defaults(), key=str))
def test_a_playbook_falls_back_to_the_documented_default(path: str, name: str, default: Any) -> None:
    assert default == VARIABLES[name]["default"], path
