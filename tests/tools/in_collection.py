# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a command in a copy of the checkout that lies at `…/ansible_collections/gpunode/hygiene`, as ansible-test and antsibull-docs want it.

The copy has what git tracks and what it would track: no caches, nothing ignored. For ansible-test it has only what that is about, the content of the
collection and its unit tests, and is a git repository of its own because ansible-test asks git for the files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from environments import REPOSITORY, cache_root, program
from gpunode_lab.cache import key

# ansible-test fetches this file from a host that is often out of reach, and only to get pip, which every Python brings along.
GET_PIP = """import ensurepip
ensurepip.bootstrap(upgrade=True)
"""


NOT_FOR_ANSIBLE_TEST = ("extensions/", "tests/bench/", "tests/integration/", "tests/lab/", "tests/tools/", "tests/typings/")


def files() -> list[str]:
    """Tracked and not ignored files of the checkout that exist, relative to it."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (REPOSITORY / name).is_file()]


def copy(left_out: tuple[str, ...]) -> Path:
    """Make the copy anew, without what lies in `left_out`; its folder."""
    root = cache_root() / "ansible-test" / key(str(REPOSITORY))
    shutil.rmtree(root, ignore_errors=True)
    target = root / "ansible_collections" / "gpunode" / "hygiene"
    for name in files():
        if name.startswith(left_out):
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, target / name, follow_symlinks=False)
    subprocess.run(["git", "init", "--quiet"], cwd=target, check=True)
    return target


def provide_pip() -> None:
    """Put a get-pip where ansible-test keeps its own (ansible_test/_util/target/setup/requirements.py), unless there is one."""
    from ansible_test._internal.python_requirements import get_venv_packages

    version = get_venv_packages(SimpleNamespace(version="{}.{}".format(*sys.version_info)))["pip"]
    cached = Path(f"~/.ansible/test/cache/get_pip_{version.replace('.', '_')}.py").expanduser()
    if not cached.exists():
        cached.parent.mkdir(parents=True, exist_ok=True)
        cached.write_text(GET_PIP, "ascii")


def main(command: Sequence[str]) -> int:
    """Run the command, a program of the virtual environment, in the copy; its exit code."""
    folder = copy(NOT_FOR_ANSIBLE_TEST if command[0] == "ansible-test" else ())
    provide_pip()
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(folder.parents[2])}
    return subprocess.run([program(command[0]), *command[1:]], cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
