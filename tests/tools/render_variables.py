# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes docs/variables.md from docs/variables.yml; with --check it only says whether the two agree."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import yaml
from environments import REPOSITORY

SOURCE = REPOSITORY / "docs" / "variables.yml"
PAGE = REPOSITORY / "docs" / "variables.md"


def render(variables: Mapping[str, Mapping[str, Any]]) -> str:
    """The page: one table, in the order of the source."""
    rows = [f"| `{name}` | {variable['type']} | `{json.dumps(variable['default'])}` | {variable['meaning']} |" for name, variable in variables.items()]
    return "\n".join([
        "# Variables of the playbooks",
        "",
        "All may be given as strings (`-e gpunode_drain_timeout=600`, or from an AWX survey); the playbooks cast them.",
        "This page is made from `variables.yml` by `tests/tools/render_variables.py`.",
        "",
        "| Variable | Type | Default | Meaning |",
        "|---|---|---|---|",
        *rows,
        "",
    ])


def main(arguments: list[str]) -> int:
    """0 when the page is as it should be."""
    page = render(yaml.safe_load(SOURCE.read_text("utf-8")))
    if arguments == ["--check"]:
        if PAGE.exists() and PAGE.read_text("utf-8") == page:
            return 0
        print("docs/variables.md is not what docs/variables.yml says. Run tests/tools/render_variables.py.")
        return 1
    PAGE.write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
