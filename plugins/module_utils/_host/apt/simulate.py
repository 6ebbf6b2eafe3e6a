# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proof of a pin: what `apt-get` itself would do to the kernel packages with the holds in place.

The simulation works on copies of dpkg's status and apt's automatic marks in a folder of its own, with apt's caches there too, so that
neither /var/lib/dpkg, /var/lib/apt nor /var/cache/apt changes. Sources, lists, preferences and apt.conf are the host's.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from ..._model import HygieneError
from ..files import read_text
from ..run import run
from .closure import Closure, is_kernel_name
from .status import Package, dependency_names, native_architecture

_TIMEOUT = 300.0
# Whether dist-upgrade also autoremoves is the host's setting; what it removes besides is seen only without that.
_COMMANDS = {"dist-upgrade": ("-o", "APT::Get::AutomaticRemove=false", "-o", "APT::Get::AutomaticRemove::Kernels=false"), "autoremove": ()}
_MOVE = re.compile(r"(Inst|Remv|Purg) (\S+)(?: \[([^\]]*)\])?(?: \((\S+))?")


@dataclass(frozen=True)
class Move:
    """One package that a simulated command would install, upgrade or remove; versions are empty where there is none."""

    name: str
    action: str
    before: str
    after: str


@dataclass(frozen=True)
class Violation:
    """A move that the pin shall not allow. `pulled_by` are packages of the same simulation that ask for it, or that a removal makes way for."""

    package: str
    action: str
    before: str
    after: str
    command: str
    pulled_by: tuple[str, ...]

    def __str__(self) -> str:
        versions = " -> ".join(version for version in (self.before, self.after) if version)
        return f"{self.command} would {self.action} {self.package} ({versions})" + (f", wanted by {', '.join(self.pulled_by)}" if self.pulled_by else "")


def prove(packages: Sequence[Package], closure: Closure, root: str = "/") -> None:
    """Make sure that with every package of the closure held, apt leaves the kernels alone.

    :raises HygieneError: with the packages that would move, and what moves them; or when apt cannot tell.
    """
    wanted = dict.fromkeys(closure.names, "hold")
    with sandbox(wanted, root) as options:
        found = [violation for command, more in _COMMANDS.items() for violation in _try(command, packages, closure, [*options, *more])]
    if found:
        there = {package.name for package in packages if package.present}
        others = sorted({name for violation in found for name in violation.pulled_by if name in there})
        remedy = f"Hold what pulls them too (`apt-mark hold {' '.join(others)}`)" if others else "Look at `apt-get -s dist-upgrade` and at APT::Ignore-Hold"
        raise HygieneError(
            f"With {len(closure.names)} packages held, {'; '.join(str(violation) for violation in found)}",
            "The pin would not keep the kernel",
            f"{remedy}, then start this again",
            {"violations": [asdict(violation) for violation in found]},
        )


@contextmanager
def sandbox(selections: Mapping[str, str], root: str = "/") -> Iterator[list[str]]:
    """The options that make apt work on copies in which packages have these selections."""
    with tempfile.TemporaryDirectory(prefix="gpunode-apt.") as folder:
        status = os.path.join(folder, "status")
        marks = os.path.join(folder, "extended_states")
        _write(status, with_selections(read_text(os.path.join(root, "var/lib/dpkg/status")) or "", selections))
        _write(marks, read_text(os.path.join(root, "var/lib/apt/extended_states")) or "")
        settings = {
            **({} if root == "/" else {"Dir": f"{root}/"}),
            "Dir::State::status": status,
            "Dir::State::extended_states": marks,
            "Dir::Cache": f"{folder}/",  # the second command finds the cache that the first one built
            "Dir::Cache::pkgcache": "pkgcache.bin",
            "Dir::Cache::srcpkgcache": "srcpkgcache.bin",
            "Dir::Log": folder,
            "Debug::NoLocking": "true",
            "APT::Get::Show-User-Simulation-Note": "false",
        }
        yield [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def simulate(command: str, options: Sequence[str]) -> list[Move]:
    """What `apt-get <command>` would do.

    :raises HygieneError: when apt refuses (broken dependencies, unreadable lists or configuration).
    """
    done = run(["apt-get", *options, "--simulate", command], _TIMEOUT)
    if not done.ok:
        said = [line for line in (done.err + done.out).splitlines() if line.startswith("E:")]
        raise HygieneError(
            f"`apt-get -s {command}` fails: {' / '.join(said) or done.summary}",
            "What apt would do to the kernel cannot be told",
            f"Make `apt-get -s {command}` work on this host (often: `apt-get --fix-broken install`, or `apt-get update`)",
        )
    return parse_moves(done.out)


def parse_moves(text: str) -> list[Move]:
    """The `Inst`, `Remv` and `Purg` lines of a simulation.

    >>> parse_moves("Inst base-files [12.4] (12.5 Debian:12/stable [amd64]) []\\nConf base-files (12.5 Debian:12/stable [amd64])")
    [Move(name='base-files', action='upgrade', before='12.4', after='12.5')]
    """
    found = []
    for line in text.splitlines():
        match = _MOVE.match(line)
        if match:
            verb, name, before, after = match.groups(default="")
            if verb == "Inst":
                found.append(Move(name, "upgrade" if before else "install", before, after))
            else:
                found.append(Move(name, "remove", before, ""))
    return found


def with_selections(status: str, selections: Mapping[str, str]) -> str:
    """dpkg's status file with other selections: the first word of `Status`, as `dpkg --set-selections` changes it.

    :param selections: package name, with `:architecture` or without, -> selection.
    """
    return "\n\n".join(_with_selection(stanza, selections) for stanza in status.split("\n\n"))


def _with_selection(stanza: str, selections: Mapping[str, str]) -> str:
    fields = _fields(stanza)
    name = fields.get("Package", "")
    wanted = selections.get(name) or selections.get(f"{name}:{fields.get('Architecture', '')}")
    if not wanted:
        return stanza
    return re.sub(r"(?m)^Status: \S+ ", f"Status: {wanted} ", stanza, count=1)


def _fields(stanza: str) -> dict[str, str]:
    return {name: value.strip() for name, colon, value in (line.partition(":") for line in stanza.splitlines()) if colon and not name.startswith(" ")}


def violations(command: str, moves: Iterable[Move], packages: Sequence[Package], closure: Closure) -> list[Move]:
    """The moves that a pin shall not allow: any change of a package in the closure, any kernel package that comes, and any that an upgrade removes.

    An update in place of a release that is neither pinned nor kept is apt's own business, and so is its autoremoval.
    """
    native = native_architecture(packages)
    held = {_apt_name(package, native) for package in packages if package.id in closure.names}
    barred = ("install",) if command == "autoremove" else ("install", "remove")
    return [move for move in moves if move.name in held or (move.action in barred and is_kernel_name(move.name.partition(":")[0]))]


def _try(command: str, packages: Sequence[Package], closure: Closure, options: Sequence[str]) -> list[Violation]:
    moves = simulate(command, options)
    found = violations(command, moves, packages, closure)
    if not found:
        return []
    asked = _asked_for(moves, options)
    return [
        Violation(move.name, move.action, move.before, move.after, f"apt-get {command}", tuple(name for name, wants in asked.items() if move.name in wants))
        for move in found
    ]


def _asked_for(moves: Sequence[Move], options: Sequence[str]) -> dict[str, list[str]]:
    """For each package that would come: what its new version relates to."""
    names = [f"{move.name}={move.after}" for move in moves if move.after]
    if not names:
        return {}
    done = run(["apt-cache", *options, "show", *names], _TIMEOUT)
    stanzas = [_fields(stanza) for stanza in done.out.split("\n\n")]
    related = ("Pre-Depends", "Depends", "Recommends", "Conflicts", "Breaks")
    return {fields["Package"]: dependency_names(", ".join(fields.get(name, "") for name in related)) for fields in stanzas if "Package" in fields}


def _apt_name(package: Package, native: str) -> str:
    return package.name if package.architecture in (native, "all") else f"{package.name}:{package.architecture}"


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(text)
