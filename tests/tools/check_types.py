#!/usr/bin/env python3
# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""mypy over the plugins under the names they are imported by, then over the tests, the lab and the tools."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "lab"))

from gpunode_lab.playbooks import collections_path


def main() -> int:
    """0 when both are clean."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    mypy = [str(REPOSITORY / ".venv" / "bin" / "mypy"), "--config-file", str(REPOSITORY / "pyproject.toml")]
    plugins = subprocess.run([*mypy, "--cache-dir", str(REPOSITORY / ".mypy_cache" / "plugins"), "-p", "ansible_collections.gpunode.hygiene.plugins"],
                             cwd=collections_path(), check=False)
    bases = [REPOSITORY / name for name in settings["tool"]["pytest"]["ini_options"]["pythonpath"]]
    path = os.pathsep.join(str(base) for base in (collections_path(), *bases))
    tests = subprocess.run([*mypy, "--cache-dir", str(REPOSITORY / ".mypy_cache" / "tests"), "tests"], cwd=REPOSITORY, env={**os.environ, "MYPYPATH": path}, check=False)
    return plugins.returncode or tests.returncode


if __name__ == "__main__":
    sys.exit(main())
