# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a registry's 401 asks for: the WWW-Authenticate header. Pure (RFC 9110, 11.2 and 11.6.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf"""\s*({_WORD})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*""")
_SCHEME = re.compile(rf"[\s,]*({_WORD})(?=\s|,|\Z)\s*(?!=)")


@dataclass(frozen=True)
class Challenge:
    """One way to authenticate. `scheme` is in small letters, as are the parameters' names."""

    scheme: str
    parameters: dict[str, str] = field(default_factory=dict)


def parse_challenges(headers: Iterable[str]) -> list[Challenge]:
    """Every challenge in the headers; what cannot be read ends its header's list."""
    return [challenge for header in headers for challenge in _parse(header)]


def _parse(header: str) -> list[Challenge]:
    challenges: list[Challenge] = []
    position = 0
    while found := _SCHEME.match(header, position):
        position = found.end()
        parameters: dict[str, str] = {}
        while parameter := _PARAMETER.match(header, position):
            quoted, bare = parameter.group(2), parameter.group(3)
            parameters[parameter.group(1).lower()] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else bare
            position = parameter.end()
            if header[position : position + 1] != "," or not _PARAMETER.match(header, position + 1):
                break
            position += 1
        challenges.append(Challenge(found.group(1).lower(), parameters))
    return challenges
