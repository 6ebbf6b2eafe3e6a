# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Image references as people and operators write them. Pure.

Source: distribution/reference (grammar in its package comment; short names by `ParseDockerRef`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_REGISTRY = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?\Z")
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*\Z")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}\Z")
DOCKER_HUB = "docker.io"


@dataclass(frozen=True)
class Reference:
    """Which manifest of which repository of which registry.

    :ivar registry: host and port as written; `docker.io` when none is.
    :ivar repository: path without registry, such as `nvidia/driver`.
    :ivar version: the digest when there is one, otherwise the tag.
    """

    registry: str
    repository: str
    version: str

    @property
    def api_host(self) -> str:
        """Where the registry's API answers; Docker Hub's is not where its name points."""
        return "registry-1.docker.io" if self.registry == DOCKER_HUB else self.registry


def parse_reference(text: str) -> Reference:
    """The reference.

    :raises ValueError: saying which part is wrong.
    """
    name, at, digest = text.partition("@")
    if at and not _DIGEST.match(digest):
        raise ValueError(f"{digest!r} is not a digest")
    head, slash, rest = name.partition("/")
    if slash and ("." in head or ":" in head or head == "localhost"):
        registry, path = head, rest
    else:
        registry, path = DOCKER_HUB, name
    path, colon, tag = path.partition(":")
    if not colon:
        tag = "latest"
    if registry in ("index.docker.io", DOCKER_HUB):
        registry, path = DOCKER_HUB, path if "/" in path else f"library/{path}"
    if not _REGISTRY.match(registry):
        raise ValueError(f"{registry!r} is not a registry's host name")
    if not _REPOSITORY.match(path) or len(path) > 255:
        raise ValueError(f"{path!r} is not a repository's path")
    if not _TAG.match(tag):
        raise ValueError(f"{tag!r} is not a tag")
    return Reference(registry, path, digest or tag)
