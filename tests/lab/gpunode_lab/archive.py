# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's archive as it is today: which kernels it has, and packages from it, without touching the machine's own apt state."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .cache import cache_root, locked
from .errors import LabError

SUITE = "bookworm"
DEBIAN = "http://deb.debian.org/debian"
DEBIAN_SECURITY = "http://deb.debian.org/debian-security"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
INDEX_LIFETIME = 24 * 3600.0  # seconds until the indices are fetched again

_KERNEL_IMAGE = re.compile(r"linux-image-(6\.1\.0-(\d+)-amd64)")


@dataclass(frozen=True)
class Kernel:
    """One kernel ABI of the archive.

    :param release: what `uname -r` says.
    :param version: the Debian version of its packages.
    """

    release: str
    version: str

    @property
    def packages(self) -> tuple[str, ...]:
        """Exact `name=version` of the image and of what building modules for it takes."""
        common = self.release.removesuffix("-amd64") + "-common"
        names = (f"linux-image-{self.release}", f"linux-headers-{self.release}", f"linux-headers-{common}")
        return tuple(f"{name}={self.version}" for name in names)


def stanzas(text: str) -> list[dict[str, str]]:
    """The paragraphs of a Packages file, folded lines joined."""
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        fields: dict[str, str] = {}
        name = ""
        for line in paragraph.splitlines():
            if line[:1].isspace() and name:
                fields[name] += "\n" + line.strip()
            elif ":" in line:
                name, value = line.split(":", 1)
                fields[name] = value.strip()
        if fields:
            found.append(fields)
    return found


def newest_kernels(packages: str, count: int = 2) -> list[Kernel]:
    """The newest 6.1 ABIs that have image and headers of the same version in a Packages text; oldest first.

    The 6.1 series only: bookworm-backports' kernels panic under QEMU 7.2 without KVM.

    :raises LabError: the archive has fewer than `count`.
    """
    offered = {(fields["Package"], fields["Version"]) for fields in stanzas(packages) if "Package" in fields and "Version" in fields}
    ranked = []
    for name, version in offered:
        match = _KERNEL_IMAGE.fullmatch(name)
        if match:
            kernel = Kernel(match[1], version)
            if all(tuple(package.split("=", 1)) in offered for package in kernel.packages):
                ranked.append((int(match[2]), kernel))
    ranked.sort(key=lambda item: (item[0], [int(part) for part in re.findall(r"\d+", item[1].version)]))
    newest = list(dict(ranked).values())[-count:]
    if len(newest) < count:
        releases = ", ".join(kernel.release for kernel in newest) or "none"
        raise LabError(f"The archive offers {len(newest)} kernel ABIs of 6.1 with headers ({releases}), {count} are needed",
                       "Use a mirror that carries bookworm and bookworm-security")
    return newest


def mirrors(apt_sources: str) -> dict[str, str]:
    """{suite: URI} for the suites of `SUITE` that apt's configuration names (one-line or deb822); empty where it is another distribution."""
    found: dict[str, str] = {}
    wanted = {SUITE, f"{SUITE}-updates", f"{SUITE}-security"}
    for match in re.finditer(r"^deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", apt_sources, re.MULTILINE):
        if match[2] in wanted:
            found.setdefault(match[2], match[1])
    for fields in stanzas("\n".join(line for line in apt_sources.splitlines() if not line.startswith("#"))):
        if "deb" in fields.get("Types", "").split():
            for suite in wanted.intersection(fields.get("Suites", "").split()):
                found.setdefault(suite, fields.get("URIs", "").split()[0])
    return found


class Archive:
    """Debian bookworm through a private apt root in the cache; fetches indices at most once a day."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_root() / "archive"

    @cached_property
    def sources(self) -> dict[str, str]:
        """{suite: URI}: the machine's own mirrors for bookworm, Debian's where it names none."""
        etc = Path("/etc/apt")
        files = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*.list")), *sorted((etc / "sources.list.d").glob("*.sources"))]
        text = "\n\n".join(path.read_text("utf-8", "replace") for path in files if path.exists())
        return {SUITE: DEBIAN, f"{SUITE}-updates": DEBIAN, f"{SUITE}-security": DEBIAN_SECURITY, **mirrors(text)}

    def sources_list(self) -> str:
        """One-line apt sources, as the node image uses them while it is built."""
        return "".join(f"deb [arch=amd64 signed-by={KEYRING}] {uri} {suite} main\n" for suite, uri in sorted(self.sources.items()))

    def kernels(self, count: int = 2) -> list[Kernel]:
        """See `newest_kernels`."""
        self._update()
        names = self._apt("apt-cache", "pkgnames", "linux-").split()
        wanted = sorted(name for name in names if re.fullmatch(r"linux-(image|headers)-6\.1\.0-\d+-(amd64|common)", name))
        return newest_kernels(self._apt("apt-cache", "show", *wanted), count)

    def download(self, packages: Sequence[str], folder: Path) -> list[Path]:
        """Fetch `name=version` packages as .deb files into `folder`, verified by apt; those already there are kept."""
        self._update()
        folder.mkdir(parents=True, exist_ok=True)
        self._apt("apt-get", "download", *packages, cwd=folder)
        found = []
        for package in packages:
            name, _equals, version = package.partition("=")
            found += sorted(folder.glob(f"{name}_{version.replace(':', '%3a') or '*'}_*.deb"))
        return found

    def _update(self) -> None:
        stamp = self.folder / "updated"
        with locked(self.folder):
            fresh = stamp.exists() and time.time() - stamp.stat().st_mtime < INDEX_LIFETIME
            if fresh and (self.folder / "sources.list").read_text("utf-8") == self.sources_list():
                return
            if not KEYRING.exists():
                raise LabError(f"There is no {KEYRING}", "Install the package debian-archive-keyring")
            for name in ("lists/partial", "cache/archives/partial", "sources.list.d"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            (self.folder / "sources.list").write_text(self.sources_list(), "utf-8")
            (self.folder / "status").touch()
            self._apt("apt-get", "update")
            stamp.touch()

    def _apt(self, program: str, *arguments: str, cwd: Path | None = None) -> str:
        options = {
            "Dir::Etc::SourceList": self.folder / "sources.list", "Dir::Etc::SourceParts": self.folder / "sources.list.d", "Dir::State": self.folder,
            "Dir::State::lists": self.folder / "lists", "Dir::State::status": self.folder / "status", "Dir::Cache": self.folder / "cache",
            "APT::Architecture": "amd64", "APT::Architectures": "amd64", "APT::Sandbox::User": "root", "Acquire::Languages": "none",
            "Acquire::Retries": "3", "Dir::Etc::Preferences": "/dev/null", "Dir::Etc::PreferencesParts": "/dev/null",
        }
        command = [program, "-q", *(f"-o{name}={value}" for name, value in options.items()), *arguments]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
        if answer.returncode:
            asked = " ".join([program, *arguments[:3]])
            raise LabError(f"{asked} failed: {answer.stderr.strip()[-600:]}", "Make the Debian archive of bookworm reachable for apt")
        return answer.stdout
