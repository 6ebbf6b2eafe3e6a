# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who we are for a registry: given credentials first, then those of Docker's configuration file."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...module_utils._model import HygieneError
from .reference import DOCKER_HUB

_HUB_KEYS = ("https://index.docker.io/v1/", "index.docker.io", "registry-1.docker.io")


@dataclass(frozen=True)
class Credential:
    """A name and password, or an identity token; `problem` says why there is none although the configuration speaks of the registry."""

    username: str = ""
    password: str = ""
    identity_token: str = ""
    problem: str = ""

    @property
    def basic(self) -> str:
        """The value of a basic Authorization header; empty without a name."""
        if not self.username:
            return ""
        return f"Basic {base64.b64encode(f'{self.username}:{self.password}'.encode()).decode()}"


ANONYMOUS = Credential()


class Credentials:
    """The credentials of every registry that we have any for."""

    def __init__(self, given: Iterable[Mapping[str, str]] = (), config: Mapping[str, Any] | None = None) -> None:
        """Build the table.

        :param given: `{registry, username, password}` each.
        :param config: Docker's configuration, parsed.
        """
        self._given = {str(entry["registry"]): Credential(str(entry["username"]), str(entry["password"])) for entry in given}
        self._config = config or {}

    def of(self, registry: str) -> Credential:
        """The credential for a registry (host and port as written in references)."""
        if registry in self._given:
            return self._given[registry]
        auths = self._config.get("auths") or {}
        for key in _keys(registry):
            if auths.get(key):
                return _credential(auths[key], registry)
        helper = (self._config.get("credHelpers") or {}).get(registry) or (self._config.get("credsStore") if set(_keys(registry)) & set(auths) else None)
        if helper:
            return Credential(problem=f"its credentials are kept by docker-credential-{helper}, which is not asked; give them with `auth`")
        return ANONYMOUS


def default_config() -> Path:
    """Where Docker keeps its configuration (docker CLI: DOCKER_CONFIG names the folder)."""
    return Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"


def read_config(path: Path, needed: bool) -> dict[str, Any]:
    """Docker's configuration; empty when the file is not there and not `needed`.

    :raises HygieneError: when it cannot be read.
    """
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if not needed:
            return {}
        raise _unreadable(path, error) from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if not isinstance(config, dict) or not isinstance(config.get("auths") or {}, dict) or not isinstance(config.get("credHelpers") or {}, dict):
        raise _unreadable(path, ValueError("it is not a mapping with mappings `auths` and `credHelpers`"))
    return config


def _unreadable(path: Path, error: Exception) -> HygieneError:
    return HygieneError(
        f"Docker's configuration {path} cannot be read: {error}",
        "Registries that need a login would answer as if the images were not there",
        "Correct the file, or name another one with `docker_config`",
    )


def _keys(registry: str) -> tuple[str, ...]:
    """The forms in which `docker login` and others write a registry."""
    plain = (registry, f"https://{registry}", f"https://{registry}/", f"http://{registry}", f"https://{registry}/v1/", f"https://{registry}/v2/")
    return (*plain, *_HUB_KEYS) if registry == DOCKER_HUB else plain


def _credential(entry: Any, registry: str) -> Credential:
    if not isinstance(entry, dict):
        return Credential(problem=f"the configuration's entry for {registry} is not a mapping")
    if entry.get("identitytoken"):
        return Credential(identity_token=str(entry["identitytoken"]))
    if entry.get("username"):
        return Credential(str(entry["username"]), str(entry.get("password", "")))
    try:
        username, colon, password = base64.b64decode(str(entry.get("auth", "")), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        colon = username = password = ""
    if not colon:
        return Credential(problem=f"the configuration's `auth` for {registry} is not NAME:PASSWORD in base64")
    return Credential(username, password.rstrip("\0"))
