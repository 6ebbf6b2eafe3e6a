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

from environments import REPOSITORY, cache_root, collections_path, program


def main() -> int:
    """0 when all are clean. Folders on pytest's path are checked one by one: each may have a conftest of its own."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    folders: list[str] = settings["tool"]["pytest"]["ini_options"]["pythonpath"]
    apart = [folder for folder in folders if folder.startswith("tests/integration/")]
    typings = str(REPOSITORY / "tests" / "typings")
    path = os.pathsep.join([typings, str(collections_path()), *(str(REPOSITORY / folder) for folder in folders)])
    codes = [mypy("plugins", "-p", "ansible_collections.gpunode.hygiene.plugins", cwd=collections_path(), MYPYPATH=typings)]
    codes += [mypy(folder, folder, cwd=REPOSITORY, MYPYPATH=path) for folder in apart]
    codes.append(mypy("tests", "tests", *(f"--exclude=^{folder}/" for folder in ("tests/typings", *apart)), cwd=REPOSITORY, MYPYPATH=path))
    return max(codes)


def mypy(cache: str, *arguments: str, cwd: Path, **env: str) -> int:
    """One run with a cache of its own; its exit code."""
    command = [program("mypy"), "--config-file", str(REPOSITORY / "pyproject.toml"), "--cache-dir", str(cache_root() / "mypy" / cache)]
    return subprocess.run([*command, *arguments], cwd=cwd, env={**os.environ, **env}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
