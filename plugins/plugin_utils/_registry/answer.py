# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a registry's answer to a manifest request means. Pure.

404 alone proves nothing (a proxy, a wrong path); only the registry's own error code says that an image is missing. Source: OCI
distribution-spec, error codes; `NOT_FOUND` is what Harbor sends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

MANIFEST_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_MISSING = frozenset({"MANIFEST_UNKNOWN", "NAME_UNKNOWN", "NOT_FOUND"})


@dataclass(frozen=True)
class Answer:
    """Whether an image exists: state is exists, missing or unknown; `reason` says why it is not `exists`."""

    reference: str
    state: str
    digest: str | None = None
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The plain form."""
        return asdict(self)


@dataclass(frozen=True)
class Response:
    """An HTTP answer; header names in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    challenges: tuple[str, ...] = ()


def unknown(reference: str, reason: str) -> Answer:
    """It cannot be told."""
    return Answer(reference, "unknown", reason=reason)


def judge(reference: str, response: Response, host: str) -> Answer:
    """What the answer says about the image."""
    codes = error_codes(response.body)
    if response.status == 200:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in MANIFEST_TYPES:
            return unknown(reference, f"{host} answered 200, but with {kind or 'no content type'} instead of a manifest")
        return Answer(reference, "exists", response.headers.get("docker-content-digest") or None)
    if response.status == 404:
        if codes & _MISSING:
            return Answer(reference, "missing", reason=f"{host} says {', '.join(sorted(codes & _MISSING))}")
        return unknown(reference, f"{host} answered 404 without a registry's error code")
    if response.status == 429:
        wait = response.headers.get("retry-after")
        return unknown(reference, f"{host} limits the rate of requests (429{f', retry after {wait} s' if wait else ''})")
    if response.status in (401, 403):
        return unknown(reference, f"{host} refuses access ({response.status}{_listed(codes)}); a login may be needed, or the repository may not exist")
    return unknown(reference, f"{host} answered {response.status}{_listed(codes)}")


def error_codes(body: bytes) -> set[str]:
    """The codes in a registry's error body; none when it is something else."""
    try:
        errors = json.loads(body)["errors"]
        return {str(error["code"]) for error in errors}
    except (ValueError, KeyError, TypeError):
        return set()


def _listed(codes: set[str]) -> str:
    return f", {', '.join(sorted(codes))}" if codes else ""
