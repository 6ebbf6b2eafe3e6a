# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asking registries: references, challenges, credentials, and what each answer means; a small server plays the registries that a real one does not."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._registry.answer import MANIFEST_TYPES, Response, judge
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._registry.challenge import Challenge, parse_challenges
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._registry.credentials import Credential, Credentials, default_config, read_config
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._registry.lookup import look_up
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._registry.reference import Reference, parse_reference
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._registry.transport import Transport
from hypothesis import given, settings
from hypothesis import strategies as st

DIGEST = f"sha256:{'a' * 64}"
INDEX = MANIFEST_TYPES[0]
NO_LOGIN = "a login may be needed, or the repository may not exist"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback is not to be asked for through the machine's proxy."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nvcr.io/nvidia/driver:580.126.20-ubuntu24.04", Reference("nvcr.io", "nvidia/driver", "580.126.20-ubuntu24.04")),
        (f"nvcr.io/nvidia/driver@{DIGEST}", Reference("nvcr.io", "nvidia/driver", DIGEST)),
        (f"nvcr.io/nvidia/driver:tag@{DIGEST}", Reference("nvcr.io", "nvidia/driver", DIGEST)),
        ("127.0.0.1:5000/a", Reference("127.0.0.1:5000", "a", "latest")),
        ("localhost/a/b_c__d-e:1", Reference("localhost", "a/b_c__d-e", "1")),
        ("[::1]:5000/a:1", Reference("[::1]:5000", "a", "1")),
        ("ubuntu", Reference("docker.io", "library/ubuntu", "latest")),
        ("nvidia/cuda:12", Reference("docker.io", "nvidia/cuda", "12")),
        ("index.docker.io/nvidia/cuda", Reference("docker.io", "nvidia/cuda", "latest")),
    ],
)
def test_references(text: str, expected: Reference) -> None:
    assert parse_reference(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'library/' is not a repository's path"),
        ("nvcr.io/NVIDIA/driver", "'NVIDIA/driver' is not a repository's path"),
        ("nvcr.io/nvidia/driver:", "'' is not a tag"),
        ("nvcr.io/nvidia/driver:a b", "'a b' is not a tag"),
        ("nvcr.io/nvidia/driver@sha256:12", "'sha256:12' is not a digest"),
        ("-.io/a", "'-.io' is not a registry's host name"),
        ("evil.io:80@good.io/a", "'good.io/a' is not a digest"),
        ("nvcr.io/../a", "'../a' is not a repository's path"),
    ],
)
def test_what_is_no_reference(text: str, said: str) -> None:
    with pytest.raises(ValueError, match="is not a") as error:
        parse_reference(text)
    assert str(error.value) == said


@settings(derandomize=True, max_examples=500, deadline=None)
@given(st.text(alphabet="a1.:/@-_[] %?#\n", max_size=24))
def test_no_text_becomes_another_web_address(text: str) -> None:
    """Whatever is accepted can be put into a path as it is."""
    try:
        reference = parse_reference(text)
    except ValueError:
        return
    assert not set(reference.registry + reference.repository + reference.version) & set(" %?#@\n")
    assert ".." not in reference.repository.split("/")


def test_docker_hub_s_api_has_another_name() -> None:
    assert parse_reference("nvidia/cuda").api_host == "registry-1.docker.io"
    assert parse_reference("nvcr.io/nvidia/cuda").api_host == "nvcr.io"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (
            ['Bearer realm="https://nvcr.io/proxy_auth",scope="repository:nvidia/driver:pull,push"'],
            [Challenge("bearer", {"realm": "https://nvcr.io/proxy_auth", "scope": "repository:nvidia/driver:pull,push"})],
        ),
        (['Basic realm="a \\"b\\""'], [Challenge("basic", {"realm": 'a "b"'})]),
        (["BEARER Realm=x , Service=y"], [Challenge("bearer", {"realm": "x", "service": "y"})]),
        (['Basic realm="a", Bearer realm="b",service="c"'], [Challenge("basic", {"realm": "a"}), Challenge("bearer", {"realm": "b", "service": "c"})]),
        (["Negotiate", 'Basic realm="a"'], [Challenge("negotiate"), Challenge("basic", {"realm": "a"})]),
        (["Negotiate, Basic realm=a"], [Challenge("negotiate"), Challenge("basic", {"realm": "a"})]),
        ([""], []),
        ([], []),
    ],
)
def test_challenges(headers: list[str], expected: list[Challenge]) -> None:
    assert parse_challenges(headers) == expected


@settings(derandomize=True, max_examples=500, deadline=None)
@given(st.text(alphabet='Bearer ="\\,x', max_size=40))
def test_no_header_makes_the_parser_raise_or_hang(header: str) -> None:
    assert all(challenge.scheme == challenge.scheme.lower() != "" for challenge in parse_challenges([header]))


def auth(name: str, password: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{name}:{password}".encode()).decode()}


@pytest.mark.parametrize(
    ("config", "registry", "expected"),
    [
        ({"auths": {"nvcr.io": auth("$oauthtoken", "a:b")}}, "nvcr.io", Credential("$oauthtoken", "a:b")),
        ({"auths": {"https://nvcr.io/v2/": auth("n", "p")}}, "nvcr.io", Credential("n", "p")),
        ({"auths": {"https://index.docker.io/v1/": auth("n", "p")}}, "docker.io", Credential("n", "p")),
        ({"auths": {"https://index.docker.io/v1/": auth("n", "p")}}, "nvcr.io", Credential()),
        ({"auths": {"nvcr.io:443": auth("n", "p")}}, "nvcr.io", Credential()),
        ({"auths": {"r.io": {"username": "n", "password": "p"}}}, "r.io", Credential("n", "p")),
        ({"auths": {"r.io": {"identitytoken": "t", **auth("n", "")}}}, "r.io", Credential(identity_token="t")),
        ({"auths": {"r.io": {"auth": "%%"}}}, "r.io", Credential(problem="the configuration's `auth` for r.io is not NAME:PASSWORD in base64")),
        ({"auths": {"r.io": ["x"]}}, "r.io", Credential(problem="the configuration's entry for r.io is not a mapping")),
        (
            {"credHelpers": {"r.io": "ecr-login"}},
            "r.io",
            Credential(problem="its credentials are kept by docker-credential-ecr-login, which is not asked; give them with `auth`"),
        ),
        ({"credsStore": "pass", "auths": {}}, "r.io", Credential()),
        ({}, "r.io", Credential()),
    ],
)
def test_credentials_of_docker_s_configuration(config: dict[str, Any], registry: str, expected: Credential) -> None:
    assert Credentials(config=config).of(registry) == expected


def test_given_credentials_win_and_go_to_their_registry_only() -> None:
    table = Credentials([{"registry": "r.io", "username": "given", "password": "p"}], {"auths": {"r.io": auth("file", "p"), "s.io": auth("other", "p")}})
    assert [table.of(name).username for name in ("r.io", "s.io", "t.io")] == ["given", "other", ""]


def test_docker_s_configuration_may_be_absent_unless_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    assert default_config() == tmp_path / "config.json"
    assert read_config(default_config(), needed=False) == {}
    with pytest.raises(HygieneError, match="name another one with `docker_config`"):
        read_config(default_config(), needed=True)


@pytest.mark.parametrize("text", ["{", "[]", '{"auths": ["x"]}', '{"credHelpers": 1}'])
def test_a_configuration_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(HygieneError, match="cannot be read"):
        read_config(tmp_path / "config.json", needed=False)


def errors(*codes: str) -> bytes:
    return json.dumps({"errors": [{"code": code, "message": "m"} for code in codes]}).encode()


@pytest.mark.parametrize(
    ("response", "state", "reason"),
    [
        (Response(200, {"content-type": INDEX}), "exists", ""),
        (Response(200, {"content-type": f"{MANIFEST_TYPES[3]}; charset=utf-8"}), "exists", ""),
        (Response(200, {"content-type": "text/html"}), "unknown", "r.io answered 200, but with text/html instead of a manifest"),
        (Response(200, {}), "unknown", "r.io answered 200, but with no content type instead of a manifest"),
        (Response(404, {}, errors("MANIFEST_UNKNOWN")), "missing", "r.io says MANIFEST_UNKNOWN"),
        (Response(404, {}, errors("NAME_UNKNOWN")), "missing", "r.io says NAME_UNKNOWN"),
        (Response(404, {}, errors("NOT_FOUND")), "missing", "r.io says NOT_FOUND"),
        (Response(404, {}, b"<html>"), "unknown", "r.io answered 404 without a registry's error code"),
        (Response(404, {}, errors("UNSUPPORTED")), "unknown", "r.io answered 404 without a registry's error code"),
        (Response(404, {}, b'{"errors": null}'), "unknown", "r.io answered 404 without a registry's error code"),
        (Response(401, {}, errors("UNAUTHORIZED")), "unknown", f"r.io refuses access (401, UNAUTHORIZED); {NO_LOGIN}"),
        (Response(403, {}, errors("DENIED")), "unknown", f"r.io refuses access (403, DENIED); {NO_LOGIN}"),
        (Response(429, {"retry-after": "60"}), "unknown", "r.io limits the rate of requests (429, retry after 60 s)"),
        (Response(429, {}), "unknown", "r.io limits the rate of requests (429)"),
        (Response(503, {}), "unknown", "r.io answered 503"),
        (Response(302, {}), "unknown", "r.io answered 302"),
    ],
)
def test_what_an_answer_means(response: Response, state: str, reason: str) -> None:
    answer = judge("r.io/a:1", response, "r.io")
    assert (answer.reference, answer.state, answer.digest, answer.reason) == ("r.io/a:1", state, None, reason)


def test_the_digest_is_the_registry_s() -> None:
    assert judge("r", Response(200, {"content-type": INDEX, "docker-content-digest": DIGEST}), "r").digest == DIGEST


Reply = tuple[int, dict[str, str], bytes]


@contextmanager
def server(reply: Callable[[str, str, dict[str, str]], Reply]) -> Iterator[str]:
    """An HTTP server on loopback; `reply` gets method, path and headers (names in small letters). Gives host:port."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            status, headers, body = reply(self.command, self.path, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = answer  # noqa: N815 - names of http.server

        def log_message(self, *_arguments: Any) -> None:
            """Quiet."""

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{running.server_address[1]}"
    finally:
        running.shutdown()
        running.server_close()
        thread.join()


def ask(host: str, credentials: Credentials | None = None, timeout: float = 5) -> tuple[str, str]:
    [answer] = look_up([f"{host}/a:1"], Transport(timeout, insecure=True), credentials or Credentials())
    return answer.state, answer.reason


def test_a_redirect_is_followed_and_credentials_stay_behind() -> None:
    seen: list[tuple[str, str | None]] = []

    def target(method: str, _path: str, headers: dict[str, str]) -> Reply:
        seen.append((method, headers.get("authorization")))
        return 200, {"Content-Type": INDEX}, b"{}"

    with server(target) as other:

        def first(method: str, path: str, headers: dict[str, str]) -> Reply:
            seen.append((method, headers.get("authorization")))
            if "authorization" not in headers:
                return 401, {"WWW-Authenticate": 'Basic realm="r"'}, b""
            return 307, {"Location": f"http://{other}{path}"}, b""

        with server(first) as host:
            credentials = Credentials([{"registry": host, "username": "n", "password": "p"}])
            assert ask(host, credentials) == ("exists", "")
    basic = "Basic " + base64.b64encode(b"n:p").decode()
    assert seen == [("HEAD", None), ("HEAD", basic), ("HEAD", None)]


@pytest.mark.parametrize(
    ("location", "said"),
    [("/v2/a/manifests/1", "redirects more than 5 times"), ("file:///etc/passwd", "redirects to 'file:///etc/passwd', which is no web address")],
)
def test_redirects_that_lead_nowhere_are_unknown(location: str, said: str) -> None:
    with server(lambda *_request: (302, {"Location": location}, b"")) as host:
        assert ask(host) == ("unknown", f"{host} {said}")


def test_a_registry_without_head_is_asked_with_get() -> None:
    def reply(method: str, _path: str, _headers: dict[str, str]) -> Reply:
        return (405, {}, b"") if method == "HEAD" else (200, {"Content-Type": INDEX}, b"{}")

    with server(reply) as host:
        assert ask(host) == ("exists", "")


@pytest.mark.parametrize(
    ("body", "state"),
    [(b'{"token": "t"}', "exists"), (b'{"access_token": "t"}', "exists"), (b'{"token": 1}', "unknown"), (b"[]", "unknown"), (b"x", "unknown")],
)
def test_tokens_come_under_two_names(body: bytes, state: str) -> None:
    def reply(_method: str, path: str, headers: dict[str, str]) -> Reply:
        if path.startswith("/token"):
            assert path == "/token?a=b&scope=repository%3Aa%3Apull&service=s"
            return 200, {}, body
        if headers.get("authorization") == "Bearer t":
            return 200, {"Content-Type": INDEX}, b"{}"
        return 401, {"WWW-Authenticate": f'Bearer realm="http://{headers["host"]}/token?a=b",service="s"'}, b""

    with server(reply) as host:
        assert ask(host)[0] == state
        if state == "unknown":
            assert ask(host)[1] == f"{host} gave no token for repository:a:pull (status 200)"


def test_a_server_that_does_not_answer_in_time_is_unknown() -> None:
    release = threading.Event()

    def reply(*_request: Any) -> Reply:
        release.wait(10)
        return 200, {}, b""

    with server(reply) as host:
        state, reason = ask(host, timeout=0.3)
        release.set()
    assert state == "unknown"
    assert host in reason
    assert "0.3 s" in reason or "timed out" in reason


def test_a_name_that_does_not_resolve_is_unknown() -> None:
    state, reason = ask("registry.invalid")
    assert state == "unknown"
    assert reason.startswith("registry.invalid cannot be reached: ")


def test_what_is_no_reference_is_unknown_and_the_others_are_asked() -> None:
    with server(lambda *_request: (404, {}, errors("MANIFEST_UNKNOWN"))) as host:
        answers = look_up(["Bad:ref:", f"{host}/a:1", "Bad:ref:"], Transport(5, insecure=True), Credentials())
    assert [(answer.reference, answer.state) for answer in answers] == [("Bad:ref:", "unknown"), (f"{host}/a:1", "missing")]


def test_certificates_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for path in (tmp_path / "ca.pem", tmp_path / "nowhere.pem"):
        with pytest.raises(HygieneError, match="Give a file with PEM certificates in `ca_path`"):
            Transport(5, ca_path=str(path))
