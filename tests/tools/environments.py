# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the virtual environments lie that tests/tools/setup.sh makes, and this checkout as an installed collection."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))

from gpunode_lab.cache import cache_root
from gpunode_lab.playbooks import REPOSITORY, collections_path

__all__ = ["REPOSITORY", "cache_root", "collections_path", "folder", "program"]


def folder(environment: str) -> Path:
    """The folder of the environment that tests/requirements/<environment>.txt locks."""
    lock = (REPOSITORY / "tests" / "requirements" / f"{environment}.txt").read_bytes()
    return cache_root() / "venv" / f"{environment}-{hashlib.sha256(lock).hexdigest()[:16]}"


def program(name: str, environment: str = "dev") -> str:
    """The path of a program in an environment.

    :raises FileNotFoundError: the set-up did not make it.
    """
    path = folder(environment) / "bin" / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: run `tests/tools/setup.sh full` and read its warnings")
    return str(path)
