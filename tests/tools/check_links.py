# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every relative link in a Markdown file leads to a file that is there, and to a heading of it where it names one."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from environments import REPOSITORY
from in_collection import files

LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
HEADING = re.compile(r"^#+ +(?P<text>.+?) *$", re.MULTILINE)


def anchor(heading: str) -> str:
    """The anchor that Git hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def problems(name: str) -> Iterator[str]:
    """The links of one file that lead nowhere."""
    page = REPOSITORY / name
    for found in LINK.finditer(CODE.sub("", page.read_text("utf-8"))):
        path, _hash, heading = found["target"].partition("#")
        if ":" in path:
            continue  # another site
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{name}: {found['target']}: there is no such file"
        elif heading and heading not in {anchor(text) for text in HEADING.findall(target.read_text("utf-8"))}:
            yield f"{name}: {found['target']}: there is no such heading"


def main() -> int:
    """0 when all links lead somewhere."""
    found = [problem for name in files() if name.endswith(".md") for problem in problems(name)]
    print("\n".join(found) or "all links lead somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
