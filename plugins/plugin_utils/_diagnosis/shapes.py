# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Evidence comes from files and servers, so its types are looked at before use: what does not fit is unknown (None)."""

from __future__ import annotations

from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """The value when it is one; otherwise an empty one, whose every field is unknown."""
    return value if isinstance(value, dict) else {}


def rows(value: Any) -> list[dict[str, Any]] | None:
    """A list of mappings."""
    return value if isinstance(value, list) and all(isinstance(item, dict) for item in value) else None


def texts(value: Any) -> list[str] | None:
    """A list of texts."""
    return value if isinstance(value, list) and all(isinstance(item, str) for item in value) else None


def text(value: Any) -> str | None:
    """A text that says something."""
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int | None:
    """A number of things; Kubernetes writes quantities as texts."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else None
