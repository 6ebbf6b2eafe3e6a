# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What dpkg knows about every package: name, selection, state and dependencies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..._model import HygieneError
from ..run import run

_FIELDS = (
    "binary:Package", "Package", "Architecture", "db:Status-Want", "db:Status-Eflag", "db:Status-Status", "Version", "Pre-Depends", "Depends",
)
_FORMAT = "\\t".join(f"${{{field}}}" for field in _FIELDS) + "\\n"
_TIMEOUT = 60.0


@dataclass(frozen=True)
class Package:
    """One row of the dpkg database.

    :param id: the exact name as `dpkg --set-selections` takes it: with the architecture where the plain name is ambiguous.
    :param name: the name alone.
    :param want: the selection: install, hold, deinstall, purge or unknown.
    :param status: installed, half-configured, unpacked, half-installed, triggers-awaited, triggers-pending, config-files or not-installed.
    :param depends: names of all alternatives of Pre-Depends and Depends, without versions and architectures.
    """

    id: str
    name: str
    architecture: str
    want: str
    error: str
    status: str
    version: str
    depends: tuple[str, ...]

    @property
    def present(self) -> bool:
        """Whether its files are on disk, at least in part. `hold ok config-files` (hc) and `hold ok not-installed` (hn) are not."""
        return self.status not in ("not-installed", "config-files")

    @property
    def sound(self) -> bool:
        """Whether dpkg has nothing left to do for it. Pending triggers belong to other packages' work."""
        return self.status in ("installed", "triggers-awaited", "triggers-pending") and self.error == "ok"

    @property
    def held(self) -> bool:
        """Whether apt is kept from changing it: a hold counts only while the package is there."""
        return self.present and self.want == "hold"


def read_status(root: str = "/") -> list[Package]:
    """Every package that dpkg knows of, the merely selected ones included.

    :raises HygieneError: when dpkg-query fails, is missing or does not end in time.
    """
    done = run(["dpkg-query", *admin_dir(root), "--show", f"--showformat={_FORMAT}", "*"], _TIMEOUT)
    if not done.ok:
        raise HygieneError(done.summary, "Which packages are installed is not known", "Make `dpkg-query --show` work on this host")
    return parse_status(done.out)


def parse_status(text: str) -> list[Package]:
    """The rows that dpkg-query printed in our format."""
    return [_package(line.split("\t")) for line in text.splitlines() if line.count("\t") == len(_FIELDS) - 1]


def _package(row: list[str]) -> Package:
    name_for_dpkg, name, architecture, want, error, status, version, pre_depends, depends = row
    needs = tuple(dependency_names(f"{pre_depends}, {depends}"))
    return Package(name_for_dpkg, name, architecture, want, error, status, version, needs)


def dependency_names(relations: str) -> list[str]:
    """The package names in a Depends field, every alternative, in order and once each.

    >>> dependency_names("linux-image-6.8.0-117-generic | linux-image-unsigned-6.8.0-117-generic, kmod (>= 9), python3:any")
    ['linux-image-6.8.0-117-generic', 'linux-image-unsigned-6.8.0-117-generic', 'kmod', 'python3']
    """
    found = {}
    for relation in relations.replace("|", ",").split(","):
        words = relation.replace("(", " ").split()
        if words:
            found[words[0].partition(":")[0]] = True
    return list(found)


def native_architecture(packages: Iterable[Package]) -> str:
    """The host's architecture: dpkg's own. apt leaves it out of names, and names every other one."""
    for package in packages:
        if package.name == "dpkg" and package.present:
            return package.architecture
    raise HygieneError("dpkg's own package is not in its database", "The host's architecture is not known", "Repair the dpkg database of this host")


def admin_dir(root: str) -> list[str]:
    """The option that makes dpkg's programs work on another root's database."""
    return [] if root == "/" else [f"--admindir={root}/var/lib/dpkg"]
