# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which packages decide what kernel a host has: those of a release, what they need, and the metapackages that bring the next one.

Nothing is derived from a list of flavours: names follow from the installed packages and their dependencies, since flavours and tracks
are an open set (generic, generic-hwe-24.04, azure-6.8, nvidia-64k, cloud-amd64, ...) and source packages name their headers differently
(linux-headers-6.8.0-117, linux-hwe-6.8-headers-6.8.0-124, linux-headers-6.12.117+deb13-common).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..._model import HygieneError
from .status import Package

# Packages named linux-* that are no part of a bootable kernel nor of what modules are built against; their updates stay welcome.
_APART = re.compile(
    r"linux-(?:base|firmware|libc-dev|sysctl-defaults|source|doc|perf|support|config|cpupower|bpf-dev|(?:cloud-)?tools-(?:common|host))(?:-|\Z)"
)
# A kernel version in a name: three numbers, or two of a release candidate. Tracks (-hwe-24.04, -azure-6.8) and linux-kbuild-6.1 have two.
_VERSION = re.compile(r"-\d+\.\d+(?:\.\d+|-rc\d)")
_IMAGE = re.compile(r"linux-image-(?:unsigned-)?(\d.*?)(?:-unsigned)?\Z")
_SUFFIXES = ("", "-unsigned", "-dbg", "-dbgsym")
KERNEL_RELEASE = re.compile(r"\d[A-Za-z0-9.+~_-]*\Z")


@dataclass(frozen=True)
class Closure:
    """What to hold for some kernel releases; exact package names as dpkg takes them, sorted.

    :param versioned: the packages of the releases and what of the kernel those need.
    :param metas: the metapackages of every installed flavour and track, whichever release they point at now.
    :param dependants: other packages that need one of these; to report, not to hold.
    """

    releases: tuple[str, ...]
    versioned: tuple[str, ...]
    metas: tuple[str, ...]
    dependants: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The whole hold set."""
        return tuple(sorted({*self.versioned, *self.metas}))


def is_kernel_name(name: str) -> bool:
    """Whether a package is part of a kernel, of what modules are built against, or a metapackage of these."""
    return name.startswith("linux-") and not _APART.match(name)


def is_versioned(name: str) -> bool:
    """Whether a kernel package carries its kernel's version in its name."""
    return _VERSION.search(name) is not None


def image_release(name: str) -> str:
    """The kernel release of an image package's name, empty for any other package.

    >>> image_release("linux-image-unsigned-6.8.0-117-generic"), image_release("linux-image-6.12.117+deb13-amd64-unsigned")
    ('6.8.0-117-generic', '6.12.117+deb13-amd64')
    """
    found = _IMAGE.match(name)
    return found.group(1) if found and is_versioned(name) and not name.endswith(("-dbg", "-dbgsym")) else ""


def installed_releases(packages: Iterable[Package]) -> list[str]:
    """The releases whose image package is on disk, sorted."""
    return sorted({release for package in packages if package.present and (release := image_release(package.name))})


def closure(packages: Sequence[Package], releases: Sequence[str]) -> Closure:
    """The hold set for `releases` on a host with these packages."""
    kernel = [package for package in packages if package.present and is_kernel_name(package.name)]
    versioned = _with_needs(kernel, {package.name for package in kernel if _belongs(package.name, releases)})
    metas = _metas(kernel)
    inside = versioned | metas
    return Closure(
        releases=tuple(releases),
        versioned=_ids(kernel, versioned),
        metas=_ids(kernel, metas),
        dependants=tuple(sorted(package.id for package in packages if package.present and not is_kernel_name(package.name) and inside & set(package.depends))),
    )


def demand_kernel(packages: Sequence[Package], release: str) -> None:
    """Make sure that dpkg has the kernel whole.

    :raises HygieneError: when there is no image package of it, or one of its packages is half installed.
    """
    found = [package for package in packages if package.present and _belongs(package.name, [release])]
    if not any(image_release(package.name) == release for package in found):
        raise HygieneError(
            f"No package linux-image-{release} is installed",
            "A kernel that dpkg does not have cannot be held",
            f"Install it (`apt-get install linux-image-{release}`), or name one of: {', '.join(installed_releases(packages)) or 'none is installed'}",
        )
    broken = [f"{package.id} is {package.status}{'' if package.error == 'ok' else f' ({package.error})'}" for package in found if not package.sound]
    if broken:
        raise HygieneError(f"Kernel {release} is not completely installed: {', '.join(broken)}", "It may not boot", "Run `dpkg --configure -a`")


def _belongs(name: str, releases: Sequence[str]) -> bool:
    return is_kernel_name(name) and any(name.endswith(f"-{release}{suffix}") for release in releases for suffix in _SUFFIXES)


def _with_needs(kernel: Sequence[Package], names: set[str]) -> set[str]:
    needs: dict[str, list[str]] = {}
    for package in kernel:  # a name can be there for two architectures
        needs.setdefault(package.name, []).extend(name for name in package.depends if is_kernel_name(name))
    reached: set[str] = set()
    pending = sorted(names)
    while pending:
        name = pending.pop()
        if name in needs and name not in reached:
            reached.add(name)
            pending.extend(needs[name])
    return reached


def _metas(kernel: Sequence[Package]) -> set[str]:
    """Packages without a version in their name that lead, in any number of steps, to a dependency that has one, installed or not."""
    plain = [package for package in kernel if not is_versioned(package.name)]
    metas: set[str] = set()
    grown = True
    while grown:
        more = {package.name for package in plain if any(_leads_on(name, metas) for name in package.depends)}
        grown = more != metas
        metas = more
    return metas


def _leads_on(dependency: str, metas: set[str]) -> bool:
    return is_kernel_name(dependency) and (is_versioned(dependency) or dependency in metas)


def _ids(packages: Iterable[Package], names: set[str]) -> tuple[str, ...]:
    return tuple(sorted(package.id for package in packages if package.name in names))
