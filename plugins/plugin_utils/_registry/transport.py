# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""HTTP for registries, on the standard library: it follows the proxy variables, and one dependency less has to be there on a controller.

Redirects are followed by hand, because urllib turns HEAD into GET and sends credentials on to other hosts.
"""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from ...module_utils._model import HygieneError
from .answer import Response

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 5
_MOST_BYTES = 4 * 1024 * 1024
_AGENT = "gpunode.hygiene"


class Unreachable(Exception):
    """No HTTP answer was had; the text says why. `tls` is whether the server does not speak TLS as wanted."""

    def __init__(self, text: str, tls: bool = False) -> None:
        super().__init__(text)
        self.tls = tls


class _Refuse(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any, **_options: Any) -> None:
        return None


class Transport:
    """Requests with one set of TLS options and one time limit in seconds for each."""

    def __init__(self, timeout: float, insecure: bool = False, ca_path: str = "") -> None:
        """Prepare TLS.

        :raises HygieneError: when `ca_path` cannot be used.
        """
        try:
            context = ssl.create_default_context(cafile=ca_path or None)
        except (OSError, ssl.SSLError) as error:
            raise HygieneError(
                f"The certificates in {ca_path} cannot be used: {error}",
                "The registry could not be told from an impostor",
                "Give a file with PEM certificates in `ca_path`",
            ) from error
        if insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self.insecure = insecure
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_Refuse, urllib.request.HTTPSHandler(context=context))

    def send(self, method: str, url: str, headers: Mapping[str, str], data: bytes | None = None) -> Response:
        """One request; redirects of HEAD and GET are followed, without credentials once they leave the host.

        :raises Unreachable: no answer.
        """
        sent = dict(headers)
        for _hop in range(_MOST_REDIRECTS + 1):
            response = self._once(method, url, sent, data)
            location = response.headers.get("location")
            if response.status not in _REDIRECTS or not location or data is not None:
                return response
            target = urllib.parse.urljoin(url, location)
            if urllib.parse.urlsplit(target).scheme not in ("https", "http"):
                raise Unreachable(f"{_host(url)} redirects to {target!r}, which is no web address")
            if _origin(target) != _origin(url):
                if url.startswith("https:") and not target.startswith("https:") and not self.insecure:
                    raise Unreachable(f"{_host(url)} redirects to {_host(target)} without TLS")
                sent.pop("Authorization", None)
            url = target
        raise Unreachable(f"{_host(url)} redirects more than {_MOST_REDIRECTS} times")

    def _once(self, method: str, url: str, headers: Mapping[str, str], data: bytes | None) -> Response:
        request = urllib.request.Request(url, data=data, headers={"User-Agent": _AGENT, **headers}, method=method)  # noqa: S310 - callers give web addresses
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return _response(answer.status, answer.headers, answer.read(_MOST_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                return _response(error.code, error.headers, error.read(_MOST_BYTES))
        except urllib.error.URLError as error:
            raise Unreachable(f"{_host(url)} cannot be reached: {error.reason}", _is_tls(error.reason)) from error
        except TimeoutError as error:
            raise Unreachable(f"{_host(url)} did not answer within {self._timeout:g} s") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(f"{_host(url)} cannot be reached: {error or type(error).__name__}", _is_tls(error)) from error


def _response(status: int, headers: Any, body: bytes) -> Response:
    return Response(status, {name.lower(): value for name, value in headers.items()}, body, tuple(headers.get_all("WWW-Authenticate") or ()))


def _is_tls(reason: object) -> bool:
    """A port where nobody listens may be that of TLS alone; plain HTTP may still answer on its own."""
    return isinstance(reason, (ssl.SSLError, ConnectionError))


def _host(url: str) -> str:
    return urllib.parse.urlsplit(url).netloc


def _origin(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return (parts.scheme, parts.netloc)
