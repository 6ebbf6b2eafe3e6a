# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Builds the collection as it would be published, installs it elsewhere, and asks Ansible for every module, filter, role and playbook in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from environments import REPOSITORY, program

NEEDED = {"meta", "plugins", "roles", "playbooks"}  # all that Ansible may need of a collection at run time
ALLOWED = NEEDED | {"docs", "LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "FILES.json", "MANIFEST.json"}


def run(*command: str, **env: str) -> None:
    """One command that has to succeed."""
    subprocess.run([program(command[0]), *command[1:]], env={**os.environ, **env}, stdout=subprocess.DEVNULL, check=True)


def names(kind: str, pattern: str) -> list[str]:
    """Full names of the checkout's content of one kind."""
    return [f"gpunode.hygiene.{path.stem}" for path in sorted((REPOSITORY / kind).glob(pattern)) if path.stem != "__init__"]


def problems(installed: Path, collections: str) -> Iterator[str]:
    """What is wrong with the installed package."""
    top = {path.name for path in installed.iterdir()}
    for name in sorted(top - ALLOWED):
        yield f"{name} is in the package and is nothing that a user needs; add it to build_ignore in galaxy.yml"
    for name in sorted(ALLOWED - top):
        yield f"{name} is not in the package"
    for kind, folder, pattern in (("module", "plugins/modules", "*.py"), ("filter", "plugins/filter", "*.yml"), ("role", "roles", "[a-z]*")):
        found = names(folder, pattern)
        answer = subprocess.run([program("ansible-doc"), "--json", "-t", kind, *found], env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": collections},
                                capture_output=True, text=True, check=False)
        told = {name for name in found if answer.returncode == 0 and name in json.loads(answer.stdout)}
        if told != set(found):
            yield f"ansible-doc -t {kind} knows nothing of {', '.join(sorted(set(found) - told))}: {answer.stderr.strip()}"
    playbooks = names("playbooks", "*.yml")
    answer = subprocess.run([program("ansible-playbook"), "--syntax-check", "-i", "localhost,", *playbooks],
                            env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": collections}, capture_output=True, text=True, check=False)
    if answer.returncode:
        yield f"ansible-playbook --syntax-check: {answer.stderr.strip()}"


def main() -> int:
    """0 when the package is whole."""
    with tempfile.TemporaryDirectory(prefix="gpunode-package-") as folder:
        run("python", str(Path(__file__).with_name("in_collection.py")), "ansible-galaxy", "collection", "build", "--output-path", folder)
        [archive] = Path(folder).glob("gpunode-hygiene-*.tar.gz")
        run("ansible-galaxy", "collection", "install", "--offline", "--no-deps", str(archive), "--collections-path", folder, ANSIBLE_COLLECTIONS_PATH=folder)
        found = list(problems(Path(folder) / "ansible_collections" / "gpunode" / "hygiene", folder))
    print("\n".join(found) or f"{archive.name}: whole")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
