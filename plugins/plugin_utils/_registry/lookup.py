# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asks registries whether images exist: HEAD on the manifest, with the login that the registry's 401 asks for.

Source: OCI distribution-spec (pulling manifests), Docker registry v2 token authentication.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from .answer import MANIFEST_TYPES, Answer, Response, judge, unknown
from .challenge import Challenge, parse_challenges
from .credentials import Credential, Credentials
from .reference import Reference, parse_reference
from .transport import Transport, Unreachable

_PARALLEL = 8
_ACCEPT = ", ".join(MANIFEST_TYPES)


def look_up(references: Iterable[str], transport: Transport, credentials: Credentials) -> list[Answer]:
    """One answer per distinct reference, in their order."""
    wanted = list(dict.fromkeys(references))
    with ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(lambda text: _look_up(text, transport, credentials), wanted))


def _look_up(text: str, transport: Transport, credentials: Credentials) -> Answer:
    try:
        reference = parse_reference(text)
    except ValueError as error:
        return unknown(text, f"it is not an image reference: {error}")
    try:
        return _Session(reference, transport, credentials.of(reference.registry)).ask(text)
    except Unreachable as error:
        return unknown(text, str(error))


class _Session:
    """The requests about one image."""

    def __init__(self, reference: Reference, transport: Transport, credential: Credential) -> None:
        self._reference = reference
        self._transport = transport
        self._credential = credential
        self._base = ""
        self._headers = {"Accept": _ACCEPT}

    def ask(self, text: str) -> Answer:
        """Whether the image exists.

        :raises Unreachable: the registry or its token server gave no answer.
        """
        host = self._reference.registry
        response = self._first()
        if response.status == 401:
            self._log_in(response)
            response = self._manifest("HEAD")
        if response.status in (404, 405):
            # An answer to HEAD has no body, so it does not say what is missing; some proxies do not let HEAD through.
            response = self._manifest("GET")
        answer = judge(text, response, host)
        if response.status in (401, 403) and self._credential.problem:
            return unknown(text, f"{answer.reason}; {self._credential.problem}")
        return answer

    def _first(self) -> Response:
        """The first request also finds out how the registry is reached; plain HTTP is only tried when asked for."""
        for scheme in ("https", "http") if self._transport.insecure else ("https",):
            self._base = f"{scheme}://{self._reference.api_host}"
            try:
                return self._manifest("HEAD")
            except Unreachable as error:
                if scheme == "http" or not (self._transport.insecure and error.tls):
                    raise
        raise AssertionError("the last scheme returns or raises")

    def _manifest(self, method: str) -> Response:
        version = urllib.parse.quote(self._reference.version, safe=":")
        return self._transport.send(method, f"{self._base}/v2/{self._reference.repository}/manifests/{version}", self._headers)

    def _log_in(self, response: Response) -> None:
        """Put what the challenge wants into the headers; a challenge that we cannot meet leaves them as they are, and the 401 comes again."""
        challenges = {challenge.scheme: challenge for challenge in parse_challenges(response.challenges)}
        if "bearer" in challenges:
            self._headers["Authorization"] = f"Bearer {self._token(challenges['bearer'])}"
        elif "basic" in challenges and self._credential.basic:
            self._headers["Authorization"] = self._credential.basic

    def _token(self, challenge: Challenge) -> str:
        realm = challenge.parameters.get("realm", "")
        if not realm.startswith("https://") and not (self._transport.insecure and realm.startswith("http://")):
            raise Unreachable(f"{self._reference.registry} sends logins to {realm!r}, which is not reached by TLS")
        scope = challenge.parameters.get("scope") or f"repository:{self._reference.repository}:pull"
        query = {"scope": scope}
        if "service" in challenge.parameters:
            query["service"] = challenge.parameters["service"]
        response = self._ask_token_server(realm, query)
        try:
            grant = json.loads(response.body)
            token = grant.get("token") or grant.get("access_token")
        except (ValueError, AttributeError):
            token = None
        if response.status != 200 or not isinstance(token, str):
            suffix = f"; {self._credential.problem}" if self._credential.problem else ""
            raise Unreachable(f"{urllib.parse.urlsplit(realm).netloc} gave no token for {scope} (status {response.status}){suffix}")
        return token

    def _ask_token_server(self, realm: str, query: dict[str, str]) -> Response:
        if self._credential.identity_token:
            form = {**query, "grant_type": "refresh_token", "client_id": "gpunode.hygiene", "refresh_token": self._credential.identity_token}
            return self._transport.send("POST", realm, {"Content-Type": "application/x-www-form-urlencoded"}, urllib.parse.urlencode(form).encode())
        headers = {"Authorization": self._credential.basic} if self._credential.basic else {}
        return self._transport.send("GET", f"{realm}{'&' if '?' in realm else '?'}{urllib.parse.urlencode(query)}", headers)
