# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small package world: a dpkg database, an archive and apt's configuration in a folder, on which the real dpkg and apt work."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MAINTAINER = "Nobody <nobody@example.org>"


@functools.cache
def architecture() -> str:
    """The machine's own, as dpkg names it."""
    return subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class Deb:
    """One version of one package."""

    name: str
    version: str = "1"
    depends: str = ""
    conflicts: str = ""
    section: str = "kernel"
    files: tuple[str, ...] = ()

    def control(self, **more: str) -> str:
        """Its fields, as in a .deb, in Packages or in dpkg's status."""
        fields = {
            "Package": self.name, **more, "Priority": "optional", "Section": self.section, "Maintainer": MAINTAINER, "Architecture": architecture(),
            "Version": self.version, "Depends": self.depends, "Conflicts": self.conflicts, "Description": f"test of {self.name}",
        }
        return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


# What every world has: dpkg itself, which names the architecture, and a package that moves with any upgrade.
BASE = (Deb("dpkg", "1.22", section="admin"), Deb("linux-base", "4.9"), Deb("hello", "1", section="misc"))


@dataclass
class World:
    """A root folder with its package database and archive.

    :param installed: name -> what is installed.
    """

    root: Path
    installed: dict[str, Deb] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in ("dpkg/info", "dpkg/updates", "dpkg/triggers", "dpkg/alternatives", "apt/lists/partial"):
            (self.root / "var/lib" / folder).mkdir(parents=True)
        for folder in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "var/cache/apt/archives/partial", "var/log/apt", "archive"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "var/lib/dpkg/info/format").write_text("1\n")
        (self.root / "boot").mkdir()
        (self.root / "usr/lib/modules").mkdir(parents=True)
        (self.root / "etc/apt/apt.conf.d/10test").write_text('APT::Sandbox::User "root";\n')  # the archive lies where only root can read
        (self.root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] file:{self.root}/archive ./\n")

    def install(self, debs: Iterable[Deb], automatic: Iterable[str] = (), selections: Mapping[str, str] | None = None) -> None:
        """Write dpkg's status as if exactly `BASE` and `debs` were installed, and apt's marks."""
        self.installed = {deb.name: deb for deb in (*BASE, *debs)}
        wanted = selections or {}
        status = [deb.control(Status=f"{wanted.get(deb.name, 'install')} ok installed") for deb in self.installed.values()]
        (self.root / "var/lib/dpkg/status").write_text("\n".join(status))
        for name in self.installed:
            (self.root / f"var/lib/dpkg/info/{name}.list").write_text("/.\n")
            (self.root / f"var/lib/dpkg/info/{name}.md5sums").write_text("")
        marks = "".join(f"Package: {name}\nArchitecture: {architecture()}\nAuto-Installed: 1\n\n" for name in automatic)
        (self.root / "var/lib/apt/extended_states").write_text(marks)

    def put_on_disk(self, release: str) -> None:
        """The files that make a kernel release bootable."""
        modules = self.root / "usr/lib/modules" / release
        (modules / "kernel").mkdir(parents=True)
        for path in (self.root / f"boot/vmlinuz-{release}", self.root / f"boot/initrd.img-{release}", modules / "modules.dep", modules / "kernel/a.ko"):
            path.write_text(f"{release}\n")

    def publish(self, debs: Iterable[Deb]) -> None:
        """Give the archive these packages, known to apt at once; for simulations, there is nothing to download."""
        stanzas = [deb.control(Filename=f"./{deb.name}_{deb.version}.deb", Size="1", SHA256="0" * 64) for deb in debs]
        name = f"{self.root}/archive/./".replace("_", "%5f").replace("/", "_")  # as apt's URItoFileName
        (self.root / "var/lib/apt/lists" / f"{name.rstrip('_')}_Packages").write_text("\n".join(stanzas))

    def publish_for_real(self, debs: Iterable[Deb]) -> None:
        """Give the archive these packages as .deb files with an index; `apt-get update` makes them known."""
        archive = self.root / "archive"
        for deb in debs:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "DEBIAN").mkdir()
                (Path(folder) / "DEBIAN/control").write_text(deb.control())
                for name in deb.files:
                    (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                    (Path(folder) / name).write_text(f"{deb.name} {deb.version}\n")
                subprocess.run(["dpkg-deb", "--build", "--root-owner-group", "-Znone", folder, str(archive)], check=True, capture_output=True)
        index = subprocess.run(["apt-ftparchive", "packages", "."], cwd=archive, check=True, capture_output=True, text=True).stdout
        (archive / "Packages").write_text(index)

    def simulate(self, command: str) -> dict[str, str]:
        """What the real apt would do on this database as it is: package -> Inst or Remv."""
        argv = [
            "apt-get", "-o", f"Dir={self.root}/", "-o", f"Dir::State::status={self.root}/var/lib/dpkg/status", "-o", "Debug::NoLocking=1", "-s", command,
        ]
        done = subprocess.run(argv, check=True, capture_output=True, text=True)
        rows = [line.split() for line in done.stdout.splitlines()]
        return {row[1]: row[0] for row in rows if row and row[0] in ("Inst", "Remv")}

    def selections(self) -> dict[str, str]:
        """What dpkg says."""
        argv = ["dpkg-query", f"--admindir={self.root}/var/lib/dpkg", "--show", "--showformat=${Package} ${db:Status-Want}\\n"]
        return dict(line.split() for line in subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines())


@dataclass(frozen=True)
class Flavour:
    """A line of kernels as Ubuntu's or Debian's packaging names it.

    :param source: what the headers' common package is called after: `linux`, `linux-hwe-6.8`, `linux-azure-6.8`; empty for Debian's way.
    :param track: what metapackages are called after: `generic`, `generic-hwe-24.04`, `azure`, `amd64`.
    :param extra: whether there is a modules-extra package. :param nvidia: branch of prebuilt NVIDIA modules, or empty.
    """

    flavour: str
    track: str
    source: str
    extra: bool = False
    nvidia: str = ""

    def release(self, abi: str) -> str:
        """As `uname -r` prints it."""
        return f"{abi}-{self.flavour}"

    def kernel(self, abi: str, version: str) -> list[Deb]:
        """The packages of one release."""
        release = self.release(abi)
        files = (f"boot/vmlinuz-{release}", f"boot/initrd.img-{release}")
        if not self.source:
            series = ".".join(abi.split(".")[:2])
            kbuild = f"linux-kbuild-{abi}" if "+" in abi else f"linux-kbuild-{series}"
            common = f"linux-headers-{abi}-common"
            return [
                Deb(f"linux-image-{release}", version, depends="linux-base (>= 4.3~)", files=files),
                Deb(f"linux-headers-{release}", version, depends=f"{common} (= {version}), {kbuild} (>= {version})"),
                Deb(common, version), Deb(kbuild, version),
            ]
        image = f"linux-image-{release} | linux-image-unsigned-{release}"
        abi_headers = f"{self.source}-headers-{abi}" if self.source != "linux" else f"linux-headers-{abi}"
        found = [
            Deb(f"linux-image-{release}", version, f"linux-base (>= 4.5), linux-modules-{release}", f"linux-image-unsigned-{release}", files=files),
            Deb(f"linux-modules-{release}", version, depends=image),
            Deb(f"linux-headers-{release}", version, depends=abi_headers),
            Deb(abi_headers, version),
        ]
        if self.extra:
            found.append(Deb(f"linux-modules-extra-{release}", version, depends=f"linux-modules-{release}"))
        if self.nvidia:
            found.append(Deb(f"linux-modules-nvidia-{self.nvidia}-{release}", f"{version}+1", depends=image, section="restricted/kernel"))
        return found

    def metas(self, abi: str, version: str) -> list[Deb]:
        """The metapackages that point at one release."""
        release, track = self.release(abi), self.track
        if not self.source:
            return [
                Deb(f"linux-image-{track}", version, depends=f"linux-image-{release} (= {version})"),
                Deb(f"linux-headers-{track}", version, depends=f"linux-headers-{release} (= {version})"),
            ]
        extra = f", linux-modules-extra-{release}" if self.extra else ""
        found = [
            Deb(f"linux-image-{track}", version, depends=f"linux-image-{release}{extra}", section="metapackages"),
            Deb(f"linux-headers-{track}", version, depends=f"linux-headers-{release}", section="metapackages"),
            Deb(f"linux-{track}", version, depends=f"linux-image-{track} (= {version}), linux-headers-{track} (= {version})", section="metapackages"),
        ]
        if self.nvidia:
            depends = f"linux-modules-nvidia-{self.nvidia}-{release}"
            found.append(Deb(f"linux-modules-nvidia-{self.nvidia}-{track}", f"{version}+1", depends=depends, section="restricted/metapackages"))
        return found


GENERIC = Flavour("generic", "generic", "linux", extra=True)
HWE = Flavour("generic", "generic-hwe-24.04", "linux-hwe-6.11")
AZURE = Flavour("azure", "azure-6.8", "linux-azure-6.8", extra=True)
AWS = Flavour("aws", "aws", "linux-aws")
NVIDIA = Flavour("nvidia-64k", "nvidia-64k-hwe-24.04", "linux-nvidia-6.11", nvidia="570-server-open")
GENERIC_NVIDIA = Flavour("generic", "generic", "linux", nvidia="550-server")
BOOKWORM = Flavour("amd64", "amd64", "")
TRIXIE_CLOUD = Flavour("cloud-amd64", "cloud-amd64", "")
