# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`ansible-playbook --syntax-check` of every playbook, by the ansible-core of the Python that runs this."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def main() -> int:
    """0 when all of them are understood."""
    playbooks = [f"gpunode.hygiene.{path.stem}" for path in sorted((REPOSITORY / "playbooks").glob("*.yml"))]
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "--syntax-check", "-i", "localhost,", *playbooks]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
