# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""shellcheck over every shell script of the checkout, found by its first line."""

from __future__ import annotations

import subprocess
import sys

from environments import REPOSITORY
from in_collection import files

SHELLS = (b"#!/bin/sh", b"#!/bin/bash", b"#!/usr/bin/env bash")


def scripts() -> list[str]:
    """Files that begin with a shell's #! line."""
    return [name for name in files() if (REPOSITORY / name).read_bytes().startswith(SHELLS)]


if __name__ == "__main__":
    sys.exit(subprocess.run(["shellcheck", *scripts()], cwd=REPOSITORY, check=False).returncode)
