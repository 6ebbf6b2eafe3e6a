# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernels on a host's disk, and whether each has everything that a boot needs.

A folder below /lib/modules alone proves nothing: dkms and depmod leave one behind when the packages go.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Optional

from .release import newest_first

_IMAGE_STEMS = ("vmlinuz", "vmlinux", "kernel")
# What comes before the release in a file's name (10_linux).
_STEM = re.compile(r"^[^0-9]*-")
# What grub-mkconfig passes over (grub_file_is_not_garbage in grub-mkconfig_lib).
_GARBAGE = re.compile(r"(\.dpkg-[^/]*|\.rpmsave|\.rpmnew|\.sig)$")
# The names that 10_linux accepts, in its order.
_INITRDS = ("initrd.img-{0}", "initrd-{0}.img", "initrd-{0}.gz", "initrd-{0}", "initramfs-{0}.img")
_OLD_INITRDS = tuple(name for name in _INITRDS if not name.endswith(".gz"))
_IMAGE_PACKAGES = ("linux-image-{0}", "linux-image-unsigned-{0}", "linux-image-{0}-unsigned")


@dataclass(frozen=True)
class Found:
    """What lies on disk for one kernel release; paths as seen by the host, sizes in bytes, None where there is nothing."""

    kernel_release: str
    image: Optional[str]
    image_bytes: Optional[int]
    initrd: Optional[str]
    initrd_bytes: Optional[int]
    modules: Optional[str]
    has_module_tree: bool
    has_module_index: bool
    headers: Optional[str]


def describe(found: Found, packages: Optional[Mapping[str, str]]) -> dict[str, Any]:
    """One row of the inventory.

    :param packages: dpkg state (`installed`, `half-configured`, ...) by package name; None when it could not be read.
    :returns: kernel_release, image, initrd, modules, headers (paths or None), image_bytes, initrd_bytes, packages (state by name of the image's
        packages; None when unknown), complete (it can boot), problems (why it is not complete; empty exactly when it is).
    """
    states = None if packages is None else {name: packages[name] for name in image_packages(found.kernel_release) if name in packages}
    problems = list(_problems(found, states))
    return {
        "kernel_release": found.kernel_release,
        "image": found.image,
        "image_bytes": found.image_bytes,
        "initrd": found.initrd,
        "initrd_bytes": found.initrd_bytes,
        "modules": found.modules,
        "headers": found.headers,
        "packages": states,
        "complete": not problems,
        "problems": problems,
    }


def image_packages(release: str) -> list[str]:
    """The names under which Ubuntu and Debian package the image of a release: signed, and unsigned in either spelling."""
    return [name.format(release) for name in _IMAGE_PACKAGES]


def _problems(found: Found, states: Optional[Mapping[str, str]]) -> Iterable[str]:
    release = found.kernel_release
    if found.image is None:
        yield f"there is no kernel image /boot/vmlinuz-{release}"
    elif not found.image_bytes:
        yield f"the kernel image {found.image} is empty"
    if found.initrd is None:
        yield f"there is no initrd /boot/initrd.img-{release}"
    elif not found.initrd_bytes:
        yield f"the initrd {found.initrd} is empty"
    if found.modules is None:
        yield f"there is no module folder /lib/modules/{release}"
    elif not found.has_module_tree:
        yield f"{found.modules} holds no kernel/ folder with modules: it is a leftover"
    elif not found.has_module_index:
        yield f"{found.modules}/modules.dep is missing or empty (`depmod {release}` writes it)"
    for name, state in (states or {}).items():
        if state in ("unpacked", "half-installed", "half-configured", "triggers-awaited", "triggers-pending"):
            yield f"the package {name} is {state} (`dpkg --configure -a` finishes it)"


def releases_on_disk(root: str = "/") -> list[str]:
    """Every release with a kernel image in /boot or a folder in /lib/modules, newest first."""
    boot, modules = os.path.join(root, "boot"), os.path.join(root, "lib/modules")
    releases = {_STEM.sub("", name, count=1) for name in _names(boot) if _is_image_name(name)}
    releases.update(name for name in _names(modules) if os.path.isdir(os.path.join(modules, name)))
    return newest_first(releases)


def find(release: str, root: str = "/") -> Found:
    """What lies on disk for one release.

    :raises OSError: when a folder exists but cannot be read.
    """
    image = _first_file(root, [f"boot/{stem}-{release}" for stem in _IMAGE_STEMS])
    initrd = _first_file(root, [f"boot/{name}" for name in _initrd_names(release)])
    modules = f"/lib/modules/{release}"
    there = os.path.isdir(_inside(root, modules))
    return Found(
        kernel_release=release,
        image=image,
        image_bytes=_size(root, image),
        initrd=initrd,
        initrd_bytes=_size(root, initrd),
        modules=modules if there else None,
        has_module_tree=bool(_names(_inside(root, f"{modules}/kernel"))),
        has_module_index=bool(_size(root, f"{modules}/modules.dep")),
        headers=_headers(release, root),
    )


def read_installed(running: str, packages: Optional[Mapping[str, str]], root: str = "/") -> list[dict[str, Any]]:
    """The inventory, newest release first; the running kernel has a row even when its files are gone.

    :raises OSError: when /boot or /lib/modules exists but cannot be read.
    """
    return [describe(find(release, root), packages) for release in newest_first({*releases_on_disk(root), running})]


def _is_image_name(name: str) -> bool:
    return name.startswith(tuple(f"{stem}-" for stem in _IMAGE_STEMS)) and bool(re.search("[0-9]", name)) and not _GARBAGE.search(name)


def _initrd_names(release: str) -> list[str]:
    without_old = re.sub(r"\.old$", "", release)
    return [name.format(release) for name in _INITRDS] + [name.format(without_old) for name in _OLD_INITRDS]


def _headers(release: str, root: str) -> Optional[str]:
    """The headers' folder, when it has what a module build needs (Makefile and include/, as dkms asks)."""
    for folder in (f"/usr/src/linux-headers-{release}", f"/lib/modules/{release}/build"):
        inside = _inside(root, folder)
        if os.path.isfile(os.path.join(inside, "Makefile")) and os.path.isdir(os.path.join(inside, "include")):
            return folder
    return None


def _first_file(root: str, paths: Iterable[str]) -> Optional[str]:
    for path in paths:
        if os.path.isfile(_inside(root, path)):
            return f"/{path}"
    return None


def _size(root: str, path: Optional[str]) -> Optional[int]:
    if path is None:
        return None
    try:
        return os.stat(_inside(root, path)).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


def _inside(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
