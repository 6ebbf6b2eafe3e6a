# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The menus that lie as fixtures under tests/unit, and how real GRUB scripts write them anew.

`python -m grub_menus debian12 /` takes the machine's own GRUB; another release's needs a folder with its unpacked grub-common:
`apt-get download grub-common && dpkg-deb -x grub-common_*.deb FOLDER && python -m grub_menus debian13 FOLDER`, in this folder.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from grub_sandbox import Sandbox

FIXTURES = Path(__file__).parents[2] / "unit/plugins/module_utils/_host/grub/fixtures"
UBUNTU = ("6.8.0-117-generic", "6.8.0-124-generic", "6.8.0-1059-azure", "7.0.0-15-generic")
MENUS: dict[str, dict[str, Any]] = {
    "submenu": {"kernels": UBUNTU, "without_initrd": ("7.0.0-15-generic",)},
    "flat": {"kernels": UBUNTU, "without_initrd": ("7.0.0-15-generic",), "settings": "GRUB_DISABLE_SUBMENU=y\n"},
    "old_title": {"kernels": UBUNTU, "settings": 'GRUB_DEFAULT="Ubuntu, with Linux 6.8.0-117-generic"\n'},
    "separate_boot": {
        "kernels": ("6.1.0-35-amd64", "6.1.0-40-amd64", "6.12.117+deb13-amd64"),
        "distributor": "Debian",
        "prefix": "",
        "settings": "GRUB_DISABLE_RECOVERY=true\nGRUB_DEFAULT=saved\nGRUB_SAVEDEFAULT=true\n",
    },
}


def generate(name: str, tools: Path = Path("/")) -> str:
    """The grub.cfg of a menu, written by real scripts."""
    with tempfile.TemporaryDirectory() as folder:
        host = Sandbox(Path(folder), tools=tools, **MENUS[name])
        return host.text("/boot/grub/grub.cfg") or ""


def main(release: str, tools: str) -> None:
    """Write the fixtures of a release."""
    for name in MENUS:
        target = FIXTURES / release / f"{name}.cfg"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(generate(name, Path(tools)))


if __name__ == "__main__":
    main(*sys.argv[1:])
