# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which DKMS modules are installed for which kernel, read from DKMS's own tree.

`dkms status` derives its answer from the same links, but takes a second or more on a host with some modules and kernels.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

TREE = "var/lib/dkms"


@dataclass(frozen=True)
class DkmsModule:
    """One registered module: `installed` maps a kernel release to the version that is installed for it; `versions` are all registered ones."""

    name: str
    versions: tuple[str, ...]
    installed: dict[str, str]


def read_dkms(root: str = "/") -> list[DkmsModule]:
    """Every registered module, by name. A host without DKMS has none.

    :raises OSError: when the tree exists but cannot be read.
    """
    tree = os.path.join(root, TREE)
    return [module for module in (_module(tree, name) for name in _folders(tree)) if module.versions]


def _module(tree: str, name: str) -> DkmsModule:
    folder = os.path.join(tree, name)
    # A version is registered when it has its sources (`source`, a link into /usr/src), as dkms's is_module_added asks.
    versions = tuple(version for version in _folders(folder) if os.path.islink(os.path.join(folder, version, "source")))
    return DkmsModule(name, versions, _installed(folder))


def _installed(folder: str) -> dict[str, str]:
    """What the links kernel-<release>-<architecture> -> <version>/<release>/<architecture> say (dkms: is_module_installed)."""
    found = {}
    for link in _names(folder):
        path = os.path.join(folder, link)
        if not link.startswith("kernel-") or not os.path.islink(path) or not os.path.isdir(path):
            continue
        parts = os.readlink(path).rstrip("/").split("/")[-3:]
        if len(parts) == 3 and link == f"kernel-{parts[1]}-{parts[2]}":
            found[parts[1]] = parts[0]
    return found


def _folders(folder: str) -> list[str]:
    return [name for name in _names(folder) if os.path.isdir(os.path.join(folder, name)) and not os.path.islink(os.path.join(folder, name))]


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
