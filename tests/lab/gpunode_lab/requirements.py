# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the machine must have before a lab can be made; nothing is installed from here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from .errors import LabError

PACKAGES_FILE = Path(__file__).resolve().parents[1] / "packages.txt"


def wanted_packages(text: str) -> list[str]:
    """The names in packages.txt: one a line, `#` begins a comment."""
    names = (line.split("#", 1)[0].strip() for line in text.splitlines())
    return [name for name in names if name]


def missing_packages(wanted: list[str], dpkg_query: str) -> list[str]:
    """Those of `wanted` that `dpkg-query -W -f '${Package} ${db:Status-Status}\\n'` does not show as installed."""
    installed = {line.split()[0] for line in dpkg_query.splitlines() if line.endswith(" installed")}
    return [name for name in wanted if name not in installed]


def demand() -> None:
    """Check for root and for the packages of packages.txt.

    :raises LabError: naming what is missing and the command that installs it.
    """
    if os.geteuid():
        raise LabError("The lab needs root, to make the node's root filesystem and the API server's own view of host names", "Run it as root")
    if not shutil.which("dpkg-query"):
        raise LabError("There is no dpkg-query: this is neither Debian nor Ubuntu", "Run the lab on one of these")
    wanted = wanted_packages(PACKAGES_FILE.read_text("utf-8"))
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted], capture_output=True, text=True, check=False).stdout
    missing = missing_packages(wanted, shown)
    if missing:
        raise LabError(f"The lab needs packages that are not installed: {', '.join(missing)}", f"apt-get install {' '.join(missing)}")
