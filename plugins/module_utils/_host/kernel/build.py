# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which build of a kernel runs and which lies on disk: a respin replaces the image under the same release."""

from __future__ import annotations

import os
import re
from typing import Optional

# Linux x86 boot protocol (Documentation/arch/x86/boot.rst): magic at 0x202, and at 0x20e the offset of the version text less 0x200.
_MAGIC_AT, _MAGIC = 0x202, b"HdrS"
_POINTER_AT, _POINTER_BASE = 0x20E, 0x200
_HEADER_BYTES = 0x10000
_BUILD = re.compile(r"#\d+.*")


def build_of_image(head: bytes) -> Optional[str]:
    """The build (`#117-Ubuntu SMP ...`, as `uname -v` prints it) in the first 64 KiB of an x86 kernel image; None for any other file."""
    if head[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC:
        return None
    pointer = int.from_bytes(head[_POINTER_AT : _POINTER_AT + 2], "little")
    text = head[pointer + _POINTER_BASE :].split(b"\0", 1)[0].decode("ascii", errors="replace") if pointer else ""
    found = _BUILD.search(text)
    return found.group().strip() if found else None


def read_image_build(release: str, root: str = "/") -> Optional[str]:
    """The build on disk; None when there is no image or it does not tell.

    :raises OSError: when the image exists but cannot be read.
    """
    try:
        with open(os.path.join(root, f"boot/vmlinuz-{release}"), "rb") as stream:
            return build_of_image(stream.read(_HEADER_BYTES))
    except FileNotFoundError:
        return None
