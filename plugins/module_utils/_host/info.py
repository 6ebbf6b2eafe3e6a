# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All evidence about one host: which parts are asked for, and each part or the reason why it is not known."""

from __future__ import annotations

import os
from typing import Any, Callable, Iterable, Mapping, Optional

from .._model import HygieneError
from . import record, runs
from .apt.evidence import read_packages
from .apt.status import read_status
from .grub.evidence import read_boot
from .kernel.build import read_image_build
from .kernel.installed import read_installed
from .kernel.out_of_tree import read_out_of_tree
from .system import identity
from .system.os_release import read_os, read_virtualization
from .system.space import read_boot_space
from .system.units import read_units

MINIMAL = "min"
SUBSETS = ("kernel", "boot", "packages", "os", "space", "units", "runs", "gpus")


def choose(asked: Iterable[str]) -> list[str]:
    """The subsets that a `gather_subset` means, as in `ansible.builtin.setup`.

    `all` is everything, `min` the ids and the running kernel, `!x` everything but x, `!all` nothing but `min`, `!min` not even that. What is named
    wins over what is excluded; when nothing is named, all is meant.

    :raises HygieneError: for an unknown name.
    """
    names = list(asked)
    valid = (MINIMAL, *SUBSETS)
    unknown = sorted({name for name in names if name.lstrip("!") not in (*valid, "all") or name.startswith("!!")})
    if unknown:
        raise HygieneError(
            f"gather_subset contains {', '.join(unknown)}", "There is no such subset", f"Use all, {', '.join(valid)}, or one of them with ! before it"
        )
    named = {name for name in names if not name.startswith("!")}
    excluded = {name[1:] for name in names if name.startswith("!")}
    if "all" in excluded:
        excluded |= set(SUBSETS)
    base = set(valid) if "all" in named or (not named and "all" not in excluded) else {MINIMAL}
    chosen = (base - excluded) | (named - {"all"})
    return [name for name in valid if name in chosen]


class Gathering:
    """Evidence as it comes in: parts, and the reason for each that could not be read."""

    def __init__(self, root: str = "/") -> None:
        self.root = root
        self.parts: dict[str, Any] = {}
        self.unknown: dict[str, str] = {}

    def read(self, name: str, reader: Callable[[], Any]) -> Any:
        """What the reader gives, or None and the reason under `name`."""
        try:
            return reader()
        except (HygieneError, OSError, ValueError) as error:
            self.unknown[name] = _reason(error)
            return None

    def part(self, name: str, reader: Callable[[], Any]) -> None:
        """Read a part of the answer."""
        self.parts[name] = self.read(name, reader)


def gather(subsets: Iterable[str], root: str = "/", release: Optional[str] = None, build: Optional[str] = None) -> dict[str, Any]:
    """The evidence: the parts of the chosen subsets, `unknown` (part to reason) and `not_checked` (subsets that were not asked for).

    :param subsets: as `choose` gives them.
    :param root: the host's root folder.
    :param release: the running kernel's release; `build` its build (`uname -v`). The calling machine's when not given.
    """
    asked = set(subsets)
    running = release or os.uname().release
    gathering = Gathering(root)
    kernel: dict[str, Any] = {"running": running}
    if MINIMAL in asked:
        gathering.part("boot_id", lambda: identity.read_boot_id(root))
        gathering.part("machine_id", lambda: identity.read_machine_id(root))
        gathering.part("system_uuid", lambda: identity.read_system_uuid(root))
        kernel.update(
            boot_id=gathering.parts["boot_id"],
            machine_id=gathering.parts["machine_id"],
            cmdline=gathering.read("kernel.cmdline", lambda: identity.read_cmdline(root)),
        )
    rows: Optional[list[dict[str, Any]]] = None
    if asked & {"kernel", "space"}:
        states = gathering.read("kernel.installed[].packages", lambda: _package_states(root)) if "kernel" in asked else None
        rows = gathering.read("kernel.installed", lambda: read_installed(running, states, root))
    if "kernel" in asked:
        kernel.update(installed=rows, **_builds(gathering, running, build or os.uname().version))
        _out_of_tree(gathering, running, rows)
    if asked & {MINIMAL, "kernel"}:
        gathering.parts["kernel"] = kernel
    readers: Mapping[str, tuple[str, Callable[[], Any]]] = {
        "boot": ("boot", lambda: read_boot(root)),
        "packages": ("packages", lambda: read_packages(root)),
        "space": ("boot_space", lambda: read_boot_space(_known(rows), root)),
        "units": ("units", read_units),
        "runs": ("runs", lambda: runs.listing(os.path.join(root, record.RUNS.lstrip("/")))),
        "gpus": ("pci_gpus", lambda: identity.read_pci_gpus(root)),
    }
    for subset, (name, reader) in readers.items():
        if subset in asked:
            gathering.part(name, reader)
    if "os" in asked:
        _os(gathering)
    return {
        **gathering.parts,
        "unknown": gathering.unknown,
        "not_checked": [name for name in (MINIMAL, *SUBSETS) if name not in asked],
    }


def _package_states(root: str) -> dict[str, str]:
    return {package.name: package.status for package in read_status(root) if package.present}


def _builds(gathering: Gathering, running: str, build: str) -> dict[str, Any]:
    """`respun`: whether the image of the running release was replaced since the boot; None when the image does not tell."""
    on_disk = gathering.read("kernel.image_build", lambda: read_image_build(running, gathering.root))
    return {"running_build": build, "image_build": on_disk, "respun": None if on_disk is None else on_disk != build}


def _out_of_tree(gathering: Gathering, running: str, rows: Optional[list[dict[str, Any]]]) -> None:
    found = gathering.read("out_of_tree", lambda: read_out_of_tree([row["kernel_release"] for row in _known(rows)], running, gathering.root))
    gathering.parts["out_of_tree"], gathering.parts["loaded_from_elsewhere"] = found or (None, None)


def _known(rows: Optional[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    if rows is None:
        raise ValueError("which kernels are installed is not known")
    return rows


def _os(gathering: Gathering) -> None:
    gathering.part("os", lambda: read_os(gathering.root))
    gathering.part("virtualization", read_virtualization)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.strerror}: {error.filename}"
    return str(error) or type(error).__name__
