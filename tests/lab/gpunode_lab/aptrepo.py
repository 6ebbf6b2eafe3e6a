# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The apt repository that the node upgrades from: a flat, signed one whose owner publishes a newer kernel when asked.

Every package lies in `pool/` from the start; a stage is a set of indices over it, made and signed once, and published by putting them in the root.

    A   the older of the archive's two newest kernels with its metapackages, and a still older kernel D
    B   also the newest kernel; the metapackages move to it
    C   also a made-up next ABI: B's files under another name and version, without the drivers that no virtual machine has
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .archive import Archive, Kernel, stanzas
from .cache import built, cache_root, key
from .errors import LabError
from .progress import Progress

STAGES = ("A", "B", "C")
METAS = ("linux-image-amd64", "linux-headers-amd64")
KBUILD = "linux-kbuild-6.1"  # headers want it at their own version or newer; the archive has the newest kernel's only
BUILD_TOOLS = (KBUILD, "linux-compiler-gcc-12-x86")
INDICES = ("Packages", "Packages.gz", "Release", "InRelease")

_SIGNER = "gpunode lab archive <lab@gpunode.invalid>"
_NOT_IN_A_VIRTUAL_MACHINE = ("drivers/gpu", "drivers/media", "drivers/infiniband", "drivers/staging", "drivers/iio", "drivers/net/wireless", "drivers/usb",
                             "drivers/scsi", "drivers/hwmon", "drivers/input", "drivers/isdn", "drivers/mfd", "drivers/net/ethernet", "net/bluetooth", "sound")


@dataclass(frozen=True)
class Kernels:
    """The four kernels by their names in this file; `made_up` (C) is never booted."""

    older_still: Kernel
    older: Kernel
    newer: Kernel
    made_up: Kernel


def next_abi(kernel: Kernel) -> Kernel:
    """The name and version that the ABI after `kernel` gets here; the version sorts after the archive's own of that ABI."""
    prefix, abi, flavour = re.fullmatch(r"(6\.1\.0-)(\d+)(-amd64)", kernel.release).groups()  # type: ignore[union-attr]  # archive.py admits nothing else
    return Kernel(f"{prefix}{int(abi) + 1}{flavour}", f"{kernel.version}+lab1")


def kernels(archive: Archive) -> Kernels:
    """Those that the archive offers today."""
    older_still, older, newer = archive.kernels(3)
    return Kernels(older_still, older, newer, next_abi(newer))


def moved_meta(control: str, version: str, kernel: Kernel) -> str:
    """A metapackage's control text at `version`, depending on `kernel`.

    :param control: `Package: linux-image-amd64` or `linux-headers-amd64`, whose Depends names one kernel and its version.
    """
    part = "headers" if re.search(r"^Package: linux-headers-", control, re.MULTILINE) else "image"
    control = re.sub(r"^Version: .*$", f"Version: {version}", control, flags=re.MULTILINE)
    return re.sub(r"^Depends: .*$", f"Depends: linux-{part}-{kernel.release} (= {kernel.version})", control, flags=re.MULTILINE)


def renamed(text: str, old: Kernel, new: Kernel) -> str:
    """A control file or maintainer script of one kernel's package made one of another's."""
    old_abi, new_abi = (kernel.release.removesuffix("-amd64") for kernel in (old, new))
    return re.sub(re.escape(old.version) + r"(?![\w.+~-])", new.version, re.sub(re.escape(old_abi) + r"(?!\d)", new_abi, text))


def stage_members(offered: list[dict[str, str]], found: Kernels) -> dict[str, list[str]]:
    """{stage: file names that its index lists}, from the stanzas of everything in the pool."""
    since: dict[tuple[str, str], str] = {}
    for stage, of_stage in (("A", (found.older_still, found.older)), ("B", (found.newer,)), ("C", (found.made_up,))):
        for kernel in of_stage:
            since.update({tuple(package.split("=", 1)): stage for package in kernel.packages})  # type: ignore[misc]  # name=version has two parts
        since.update({(meta, of_stage[-1].version): stage for meta in METAS})
    since[(KBUILD, found.made_up.version)] = "C"
    members: dict[str, list[str]] = {stage: [] for stage in STAGES}
    for fields in offered:
        first = since.get((fields["Package"], fields["Version"]), "A")
        for stage in STAGES[STAGES.index(first):]:
            members[stage].append(fields["Filename"])
    return members


def build(progress: Progress) -> Path:
    """The repository at stage A, for each lab to copy (hard links will do: nothing in it is ever changed in place).

    :raises LabError: the archive has too few kernels, or a tool is missing.
    """
    archive = Archive()
    found = kernels(archive)

    def make(folder: Path) -> None:
        _build(folder, archive, found)

    entry = cache_root() / "aptrepo" / key(Path(__file__).read_bytes(), *(f"{kernel.release} {kernel.version}" for kernel in
                                                                           (found.older_still, found.older, found.newer)))
    return built(entry, make, "apt repository with four kernels", progress)


def publish(repository: Path, stage: str) -> None:
    """Make `repository` offer what belongs to `stage` (one of `STAGES`); the signed file goes last, as on a mirror."""
    for name in INDICES:
        partial = repository / f"{name}.partial"
        shutil.copyfile(repository / "stages" / stage / name, partial)
        partial.rename(repository / name)


def _build(folder: Path, archive: Archive, found: Kernels) -> None:
    pool = folder / "pool"
    wanted = [*found.older_still.packages, *found.older.packages, *found.newer.packages, *BUILD_TOOLS, *(f"{meta}={found.newer.version}" for meta in METAS)]
    debs = {deb.name.split("_")[0]: deb for deb in archive.download(wanted, pool) if found.newer.version in deb.name or deb.name.split("_")[0] not in METAS}
    missing = [package for package in wanted if package.split("=")[0] not in debs]
    if missing:
        raise LabError(f"The archive did not give {', '.join(missing)}", "Use a mirror that carries bookworm and bookworm-security whole")
    for meta in METAS:
        for kernel in (found.older, found.made_up):
            _repack(debs[meta], pool, functools.partial(_move_meta, kernel=kernel))
    for package in (*found.newer.packages, KBUILD):
        _repack(debs[package.split("=")[0]], pool, functools.partial(_rename_kernel, old=found.newer, new=found.made_up))
    _write_stages(folder, found)
    publish(folder, "A")


def _move_meta(tree: Path, kernel: Kernel) -> None:
    control = tree / "DEBIAN" / "control"
    control.write_text(moved_meta(control.read_text("utf-8"), kernel.version, kernel), "utf-8")


def _rename_kernel(tree: Path, old: Kernel, new: Kernel) -> None:
    for module_tree in (tree / "lib" / "modules").glob("*/kernel"):
        for part in _NOT_IN_A_VIRTUAL_MACHINE:
            shutil.rmtree(module_tree / part, ignore_errors=True)
    for path in sorted(tree.rglob("*"), key=lambda item: len(item.parts), reverse=True):
        name = renamed(path.name, old, new)
        if name != path.name:
            path.rename(path.with_name(name))
    for path in (tree / "DEBIAN").iterdir():
        if path.name == "md5sums":
            path.unlink()  # optional, and no longer true
        else:
            path.write_text(renamed(path.read_text("utf-8"), old, new), "utf-8")
    for makefile in (tree / "usr" / "src").glob("*/Makefile"):
        makefile.write_text(renamed(makefile.read_text("utf-8"), old, new), "utf-8")
    for link in (tree / "lib" / "modules").glob("*/*"):
        if link.is_symlink():
            target = renamed(str(link.readlink()), old, new)
            link.unlink()
            link.symlink_to(target)


def _repack(deb: Path, pool: Path, change: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory(dir=pool.parent) as scratch:
        tree = Path(scratch) / "tree"
        _run("dpkg-deb", "--raw-extract", str(deb), str(tree))
        change(tree)
        _run("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", str(tree), str(pool))


def _write_stages(folder: Path, found: Kernels) -> None:
    text = _run("apt-ftparchive", "packages", "pool", cwd=folder)
    paragraphs = {stanzas(paragraph)[0]["Filename"]: paragraph for paragraph in re.split(r"\n\n+", text.strip())}
    members = stage_members(stanzas(text), found)
    with tempfile.TemporaryDirectory() as home:
        environment = {"GNUPGHOME": home}
        _run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", _SIGNER, "rsa3072", "sign", "never", environment=environment)
        _run("gpg", "--batch", "--output", str(folder / "key.gpg"), "--export", _SIGNER, environment=environment)
        for stage, names in members.items():
            root = folder / "stages" / stage
            root.mkdir(parents=True)
            (root / "Packages").write_text("\n\n".join(paragraphs[name] for name in sorted(names)) + "\n", "utf-8")
            _run("gzip", "--keep", "--no-name", "Packages", cwd=root)
            release = _run("apt-ftparchive", "-oAPT::FTPArchive::Release::Origin=gpunode-lab", "-oAPT::FTPArchive::Release::Suite=bookworm",
                           "-oAPT::FTPArchive::Release::Codename=bookworm", "-oAPT::FTPArchive::Release::Architectures=amd64", "release", ".", cwd=root)
            (root / "Release").write_text(release, "utf-8")
            _run("gpg", "--batch", "--clearsign", "--output", "InRelease", "Release", cwd=root, environment=environment)
        _run("gpgconf", "--kill", "all", environment=environment)


def _run(program: str, *arguments: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    if not shutil.which(program):
        raise LabError(f"There is no {program}", "Install the packages apt-utils, dpkg-dev and gpg")
    answer = subprocess.run([program, *arguments], cwd=cwd, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise LabError(f"{program} {' '.join(arguments[:4])} failed: {answer.stderr.strip()[-500:]}", "Delete aptrepo in the lab's cache and try again")
    return answer.stdout
