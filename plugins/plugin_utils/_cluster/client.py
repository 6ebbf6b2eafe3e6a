# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small Kubernetes client: plain dicts in and out, bounded in time.

The PyPI package `kubernetes` reads kubeconfigs, renews tokens and sets up TLS; the calls go straight through its connection pool, because its typed models
cost seconds to build and differ between its releases.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.options import Settings

try:
    import kubernetes.client
    import kubernetes.config
    import urllib3
except ImportError as error:
    MISSING_LIBRARY: ImportError | None = error
else:
    MISSING_LIBRARY = None

FIELD_MANAGER = "gpunode-hygiene"
PAGE = 500
CONNECT_SECONDS = 10.0
READ_SECONDS = 60.0
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 5.0
# 429 without a disruption budget is the API server's own flow control; 5xx are a restarting server, a proxy before it, or etcd electing a leader.
PASSING = frozenset({429, 500, 502, 503, 504})


class ApiError(HygieneError):
    """The API server's refusal.

    :ivar status: the HTTP status; 0 when no answer came.
    :ivar body: the `Status` object, or an empty dict.
    :ivar retry_after: seconds the server asks to wait, or None.
    """

    def __init__(self, status: int, request: str, body: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.body = dict(body)
        self.retry_after = retry_after
        message = str(body.get("message") or f"HTTP status {status}")
        super().__init__(seen=f"{request} was answered with {status}: {message}", why=_why(status), remedy=_remedy(status))

    @property
    def message(self) -> str:
        """The server's own sentence."""
        return str(self.body.get("message") or "")

    @property
    def causes(self) -> list[dict[str, str]]:
        """`details.causes` of the `Status` object."""
        return list((self.body.get("details") or {}).get("causes") or [])

    def has_cause(self, reason: str) -> bool:
        """Whether one of the causes has this type (API field `reason`)."""
        return any(cause.get("reason") == reason for cause in self.causes)


def _why(status: int) -> str:
    return {
        401: "The API server does not know this user, or the token has expired",
        403: "This user may not do that",
        404: "There is no such object or kind",
        409: "The object was changed by somebody else meanwhile",
    }.get(status, "The request cannot be carried out")


def _remedy(status: int) -> str:
    return {
        401: "Renew the credentials in the kubeconfig, or set the option `api_key`",
        403: "Grant the right with a ClusterRole, or use another user by `kubeconfig`, `context` or `impersonate_user`",
        404: "Check the name, and the cluster with `context`",
        409: "Run it again",
    }.get(status, "Read the API server's log, and run it again")


@dataclass(frozen=True)
class Response:
    """One HTTP answer."""

    status: int
    headers: Mapping[str, str]
    data: bytes


# (method, path with query, headers, body, timeout in seconds) -> answer; raises OSError-like `Unanswered` when none came.
Transport = Callable[[str, str, Mapping[str, str], "bytes | None", float], Response]


class Unanswered(Exception):
    """No HTTP answer came. `final` when trying again cannot help (a certificate that is not trusted)."""

    def __init__(self, reason: str, final: bool = False) -> None:
        self.final = final
        super().__init__(reason)


class Api:
    """Calls to one API server. Safe for use by several threads.

    :param transport: sends one request.
    :param server: the server's address, for messages.
    :param patience: seconds for which a call is repeated while the server does not answer or is not ready.
    """

    def __init__(
        self,
        transport: Transport,
        server: str,
        patience: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport = transport
        self.server = server
        self.patience = patience
        self._clock = clock
        self._sleep = sleep

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """One object. :raises ApiError: any answer but 2xx."""
        return self._json("GET", path, query, None)

    def text(self, path: str, query: Mapping[str, Any] | None = None, patience: float | None = None) -> str:
        """A text resource, such as a container's log."""
        return self._call("GET", path, query, None, {"Accept": "*/*"}, patience=patience).data.decode("utf-8", "replace")

    def list(self, path: str, query: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """All objects of one kind, in pages of 500, with `kind` and `apiVersion` as single objects have them."""
        try:
            return list(self._pages(path, query or {}, PAGE))
        except ApiError as error:
            if error.status != 410:  # the snapshot that the pages come from was compacted away
                raise
        return list(self._pages(path, query or {}, 0))

    def patch(self, path: str, body: Mapping[str, Any], query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """JSON merge patch (RFC 7386) under our field manager; put `metadata.resourceVersion` into it to have it checked."""
        return self._json("PATCH", path, {"fieldManager": FIELD_MANAGER, **(query or {})}, body, "application/merge-patch+json")

    def post(self, path: str, body: Mapping[str, Any], query: Mapping[str, Any] | None = None, passing: frozenset[int] = PASSING) -> dict[str, Any]:
        """Create something. `passing` are the statuses that are tried again here; the others are the caller's."""
        return self._json("POST", path, query, body, passing=passing)

    def _pages(self, path: str, query: Mapping[str, Any], limit: int) -> Iterator[dict[str, Any]]:
        token = ""
        while True:
            page = dict(query)
            if limit:
                page["limit"] = limit
            if token:
                page["continue"] = token
            answer = self.get(path, page)
            kind = str(answer.get("kind", "")).removesuffix("List")
            for item in answer.get("items") or []:
                yield {"kind": kind, "apiVersion": answer.get("apiVersion"), **item}
            token = (answer.get("metadata") or {}).get("continue") or ""
            if not token:
                return

    def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        content_type: str = "application/json",
        passing: frozenset[int] = PASSING,
    ) -> dict[str, Any]:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content_type
        answer = self._call(method, path, query, body, headers, passing)
        document: dict[str, Any] = json.loads(answer.data)
        return document

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        passing: frozenset[int] = PASSING,
        patience: float | None = None,
    ) -> Response:
        target = f"{path}?{urlencode(query, doseq=True)}" if query else path
        data = None if body is None else json.dumps(body).encode()
        until = self._clock() + (self.patience if patience is None else patience)
        pause = FIRST_PAUSE
        while True:
            remaining = max(until - self._clock(), 1.0)
            wait = pause
            try:
                answer = self._transport(method, target, headers, data, min(READ_SECONDS, remaining))
            except Unanswered as silence:
                if silence.final or self._clock() + wait >= until:
                    raise self._unreachable(f"{method} {path}", silence) from silence
            else:
                if 200 <= answer.status < 300:
                    return answer
                error = ApiError(answer.status, f"{method} {path}", _status_object(answer.data), _seconds(answer.headers.get("Retry-After")))
                wait = max(pause, error.retry_after or 0.0)
                if answer.status not in passing or self._clock() + wait >= until:
                    raise error
            self._sleep(wait)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _unreachable(self, request: str, silence: Unanswered) -> HygieneError:
        return HygieneError(
            seen=f"The API server {self.server} gave no answer to {request}: {silence}",
            why="Without it neither the node's state nor its pods can be known" if silence.final else f"It was tried for {self.patience:g} s",
            remedy="Check the address, certificate and proxy in the kubeconfig (`kubectl get --raw /readyz`), "
            "choose the cluster with `kubeconfig` or `context`, or raise `api_timeout`",
        )


def _status_object(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except ValueError:
        return {"message": data[:300].decode("utf-8", "replace").strip()}
    return document if isinstance(document, dict) else {}


def _seconds(header: str | None) -> float | None:
    try:
        return float(header) if header else None
    except ValueError:
        return None


def connect(settings: Settings) -> Api:
    """Set up the connection; nothing is sent yet.

    :raises HygieneError: the library is missing, or the configuration cannot be used.
    """
    if MISSING_LIBRARY is not None:
        raise HygieneError(
            seen=f"The Python package `kubernetes` cannot be imported: {MISSING_LIBRARY}",
            why="Cluster tasks run in the controller's Python and need it there",
            remedy="Install it where ansible-playbook runs: `pip install kubernetes`",
        )
    configuration = _configuration(settings)
    configuration.retries = False
    configuration.connection_pool_maxsize = 16
    pool = kubernetes.client.ApiClient(configuration).rest_client.pool_manager
    identity: dict[str, Any] = {}
    if settings.values.get("impersonate_user"):
        identity["Impersonate-User"] = settings.values["impersonate_user"]
    groups = list(settings.values.get("impersonate_groups") or [])
    server = str(configuration.host).rstrip("/")

    def send(method: str, target: str, headers: Mapping[str, str], body: bytes | None, timeout: float) -> Response:
        complete = urllib3.HTTPHeaderDict({**headers, **identity, "User-Agent": FIELD_MANAGER})
        for group in groups:
            complete.add("Impersonate-Group", group)
        for credential in configuration.auth_settings().values():
            if credential["value"]:
                complete[credential["key"]] = credential["value"]
        limit = urllib3.Timeout(connect=min(CONNECT_SECONDS, timeout), read=timeout)
        try:
            answer = pool.request(method, server + target, headers=complete, body=body, timeout=limit, redirect=False, preload_content=True)
        except urllib3.exceptions.SSLError as error:
            raise Unanswered(str(error), final=True) from error
        except urllib3.exceptions.HTTPError as error:
            raise Unanswered(_reason(error)) from error
        return Response(answer.status, answer.headers, answer.data)

    return Api(send, server, settings.api_timeout)


def _reason(error: Exception) -> str:
    """The end of a message such as `HTTPSConnection(host='…', port=…): Failed to establish a new connection: [Errno 111] Connection refused`."""
    return str(error).rpartition(": ")[2] or type(error).__name__


def _configuration(settings: Settings) -> Any:
    configuration = kubernetes.client.Configuration()
    loaders: Any = kubernetes.config  # it has no types
    try:
        if settings.origin == "kubeconfig" and isinstance(settings.kubeconfig, dict):
            loaders.load_kube_config_from_dict(
                settings.kubeconfig, context=settings.values.get("context"), client_configuration=configuration, persist_config=False
            )
        elif settings.origin == "kubeconfig":
            loaders.load_kube_config(
                str(settings.kubeconfig), context=settings.values.get("context"), client_configuration=configuration, persist_config=False
            )
        elif settings.origin == "in-cluster":
            loaders.load_incluster_config(client_configuration=configuration)
    except (kubernetes.config.ConfigException, OSError, ValueError, TypeError, KeyError) as error:
        raise _unusable(settings, error) from error
    names = {"host": "host", "ca_cert": "ssl_ca_cert", "client_cert": "cert_file", "client_key": "key_file", "validate_certs": "verify_ssl", "proxy": "proxy"}
    for option, attribute in {**names, "no_proxy": "no_proxy"}.items():
        if option in settings.values:
            setattr(configuration, attribute, settings.values[option])
    if "api_key" in settings.values:
        configuration.api_key = {"authorization": f"Bearer {settings.values['api_key']}"}
        configuration.refresh_api_key_hook = None
    elif "username" in settings.values:
        basic = urllib3.util.make_headers(basic_auth=f"{settings.values['username']}:{settings.values.get('password', '')}")
        configuration.api_key = {"authorization": basic["authorization"]}
        configuration.refresh_api_key_hook = None
    for option in ("ca_cert", "client_cert", "client_key"):
        path = settings.values.get(option)
        if path and not Path(path).is_file():
            raise _unusable(settings, FileNotFoundError(f"{option}: no file {path}"))
    return configuration


def _unusable(settings: Settings, error: Exception) -> HygieneError:
    origin = f"The kubeconfig {settings.kubeconfig}" if isinstance(settings.kubeconfig, str) else f"The {settings.origin} configuration"
    if settings.origin == "in-cluster":
        origin = "No kubeconfig was named and this is not a pod with a service account"
    return HygieneError(
        seen=f"{origin}: {error}",
        why="The API server cannot be reached without an address and credentials",
        remedy="Set `kubeconfig` (and `context`), or K8S_AUTH_KUBECONFIG, or KUBECONFIG, on the controller",
    )
