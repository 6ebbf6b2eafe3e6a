# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the pages that are made from data: docs/variables.md and every role's README. With --check it only says whether they agree with it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from environments import REPOSITORY

MARKUP = re.compile(r"\b[VOCM]\(([^)]*)\)")


def variables_page(variables: Mapping[str, Mapping[str, Any]]) -> str:
    """One table, in the order of the source."""
    rows = [f"| `{name}` | {variable['type']} | `{json.dumps(variable['default'])}` | {variable['meaning']} |" for name, variable in variables.items()]
    return "\n".join([
        "# Variables of the playbooks",
        "",
        "All may be given as strings (`-e gpunode_drain_timeout=600`, or from an AWX survey); the playbooks cast them.",
        "This page is made from `variables.yml` by `tests/tools/render_docs.py`.",
        "",
        "| Variable | Type | Default | Meaning |",
        "|---|---|---|---|",
        *rows,
        "",
    ])


def role_page(role: str, entry_points: Mapping[str, Mapping[str, Any]]) -> str:
    """What each entry point does and its variables, from `meta/argument_specs.yml`."""
    lines = [f"# Role gpunode.hygiene.{role}", "", "This page is made from `meta/argument_specs.yml` by `tests/tools/render_docs.py`.", ""]
    for name, entry in entry_points.items():
        lines += [f"## {name}", "", f"{entry['short_description']}.", ""]
        lines += [*(f"{plain(sentence)}" for sentence in entry.get("description", [])), "", "| Variable | Type | Default | Meaning |", "|---|---|---|---|"]
        lines += [
            f"| `{option}` | {spec['type']} | {'needed' if spec.get('required') else f'`{json.dumps(spec.get('default'))}`'} | {plain(spec['description'])} |"
            for option, spec in entry["options"].items()
        ]
        lines += ["", *usage(role, name, entry["options"]), ""]
    return "\n".join(lines)


def usage(role: str, entry_point: str, options: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """How to use it alone."""
    needed = [option for option, spec in options.items() if spec.get("required")]
    return [
        "```yaml",
        "- ansible.builtin.include_role:",
        f"    name: gpunode.hygiene.{role}",
        *([f"    tasks_from: {entry_point}"] if entry_point != "main" else []),
        *(["  vars:", *(f"    {option}: ..." for option in needed)] if needed else []),
        "```",
    ]


def plain(text: str) -> str:
    """Ansible's semantic markup as Markdown."""
    return MARKUP.sub(r"`\1`", text)


def pages() -> dict[Path, str]:
    """Every page and its text."""
    found = {REPOSITORY / "docs" / "variables.md": variables_page(yaml.safe_load((REPOSITORY / "docs" / "variables.yml").read_text("utf-8")))}
    for spec in sorted(REPOSITORY.glob("roles/*/meta/argument_specs.yml")):
        role = spec.parent.parent
        found[role / "README.md"] = role_page(role.name, yaml.safe_load(spec.read_text("utf-8"))["argument_specs"])
    return found


def main(arguments: list[str]) -> int:
    """0 when the pages are as they should be."""
    stale = {page: text for page, text in pages().items() if not page.exists() or page.read_text("utf-8") != text}
    if arguments == ["--check"]:
        for page in stale:
            print(f"{page.relative_to(REPOSITORY)} is not what its source says. Run tests/tools/render_docs.py.")
        return 1 if stale else 0
    for page, text in stale.items():
        page.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
