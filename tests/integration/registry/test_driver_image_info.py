# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""driver_image_info against a real registry, for each way of logging in."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._registry.credentials import Credentials, read_config
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._registry.lookup import look_up
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._registry.transport import Transport

from .registry_server import (
    IDENTITY_TOKEN,
    PASSWORD,
    SERVICE,
    USER,
    Authority,
    Registry,
    TokenServer,
    htpasswd_auth,
    registry,
    token_auth,
    token_server,
)

BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback is not to be asked for through the machine's proxy."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))

@pytest.fixture(scope="module")
def open_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with registry(tmp_path_factory.mktemp("open")) as running:
        yield running

@pytest.fixture(scope="module")
def basic_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    folder = tmp_path_factory.mktemp("basic")
    with registry(folder, htpasswd_auth(folder)) as running:
        yield Registry(running.host, headers={"Authorization": BASIC})

@pytest.fixture
def tokens(authority: Authority) -> Iterator[TokenServer]:
    with token_server(authority) as running:
        yield running

@pytest.fixture
def token_registry(tmp_path: Path, authority: Authority, tokens: TokenServer) -> Iterator[Registry]:
    with registry(tmp_path, token_auth(tokens.realm, authority)) as running:
        for repository in ("nvidia/public", "nvidia/private"):
            grant = {"Authorization": f"Bearer {authority.token(repository, ['pull', 'push'])}"}
            Registry(running.host, headers=grant).put_index(repository, "580-ubuntu24.04")
        yield running

def states(references: list[str], transport: Transport | None = None, credentials: Credentials | None = None) -> list[tuple[str, str | None, str]]:
    answers = look_up(references, transport or Transport(5, insecure=True), credentials or Credentials())
    assert [answer.reference for answer in answers] == list(dict.fromkeys(references))
    return [(answer.state, answer.digest, answer.reason) for answer in answers]

def test_an_open_registry_tells_what_it_has_and_what_it_lacks(open_registry: Registry) -> None:
    digest = open_registry.put_index("nvidia/driver", "580.126.20-ubuntu24.04")
    host = open_registry.host
    assert states(
        [
            f"{host}/nvidia/driver:580.126.20-ubuntu24.04",
            f"{host}/nvidia/driver@{digest}",
            f"{host}/nvidia/driver:580.126.20-ubuntu26.04",
            f"{host}/nvidia/driver@sha256:{'0' * 64}",
        ]
    ) == [
        ("exists", digest, ""),
        ("exists", digest, ""),
        ("missing", None, f"{host} says MANIFEST_UNKNOWN"),
        ("missing", None, f"{host} says MANIFEST_UNKNOWN"),
    ]

def test_plain_http_is_not_used_unless_allowed(open_registry: Registry) -> None:
    [(state, _digest, reason)] = states([f"{open_registry.host}/nvidia/driver:580.126.20-ubuntu24.04"], Transport(5))
    assert state == "unknown"
    assert reason.startswith(f"{open_registry.host} cannot be reached: ")

def test_basic_authentication(basic_registry: Registry, tmp_path: Path) -> None:
    digest = basic_registry.put_index("nvidia/driver", "1")
    host, config = basic_registry.host, tmp_path / "config.json"
    there, lacking = f"{host}/nvidia/driver:1", f"{host}/nvidia/driver:2"
    given = Credentials([{"registry": host, "username": USER, "password": PASSWORD}])
    assert states([there, lacking], credentials=given) == [("exists", digest, ""), ("missing", None, f"{host} says MANIFEST_UNKNOWN")]
    config.write_text(json.dumps({"auths": {f"https://{host}": {"auth": BASIC.removeprefix("Basic ")}}}))
    assert states([there], credentials=Credentials(config=read_config(config, needed=True))) == [("exists", digest, "")]

@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_refused_login_is_unknown_and_not_missing(basic_registry: Registry, password: str) -> None:
    host = basic_registry.host
    given = Credentials([{"registry": host, "username": USER, "password": password}] if password else [])
    [(state, digest, reason)] = states([f"{host}/nvidia/driver:1"], credentials=given)
    assert (state, digest) == ("unknown", None)
    assert reason == f"{host} refuses access (401); a login may be needed, or the repository may not exist"

def test_a_credential_helper_is_named_when_the_login_is_refused(basic_registry: Registry) -> None:
    host = basic_registry.host
    config = Credentials(config={"credsStore": "pass", "auths": {host: {}}})
    [(state, _digest, reason)] = states([f"{host}/nvidia/driver:1"], credentials=config)
    assert state == "unknown"
    assert reason.endswith("; its credentials are kept by docker-credential-pass, which is not asked; give them with `auth`")

def test_token_authentication_without_a_login(token_registry: Registry, tokens: TokenServer) -> None:
    host = token_registry.host
    answers = states([f"{host}/nvidia/public:580-ubuntu24.04", f"{host}/nvidia/public:580-ubuntu26.04", f"{host}/nvidia/private:580-ubuntu24.04"])
    assert [state for state, _digest, _reason in answers] == ["exists", "missing", "unknown"]
    assert "refuses access (401" in answers[2][2]
    assert sorted(tokens.asked) == [
        f"GET {SERVICE} repository:nvidia/private:pull anonymous",
        f"GET {SERVICE} repository:nvidia/public:pull anonymous",
        f"GET {SERVICE} repository:nvidia/public:pull anonymous",
    ]

@pytest.mark.parametrize(
    ("credentials", "asked"),
    [
        ({"given": {"username": USER, "password": PASSWORD}}, "GET {service} repository:nvidia/private:pull known"),
        ({"config": {"identitytoken": IDENTITY_TOKEN}}, "POST {service} repository:nvidia/private:pull known"),
    ],
    ids=["password", "identity token"],
)
def test_token_authentication_with_a_login(
    token_registry: Registry, tokens: TokenServer, credentials: dict[str, dict[str, str]], asked: str
) -> None:
    host = token_registry.host
    given = [{"registry": host, **credentials["given"]}] if "given" in credentials else []
    config = {"auths": {host: credentials["config"]}} if "config" in credentials else {}
    references = [f"{host}/nvidia/private:580-ubuntu24.04"]
    assert [state for state, _digest, _reason in states(references, credentials=Credentials(given, config))] == ["exists"]
    assert tokens.asked == [asked.format(service=SERVICE)]

def test_a_token_server_without_tls_is_refused_unless_allowed(tmp_path: Path, authority: Authority, tokens: TokenServer) -> None:
    with registry(tmp_path, token_auth(tokens.realm, authority), authority) as running:
        [(state, _digest, reason)] = states([f"{running.host}/nvidia/public:1"], Transport(5, ca_path=str(authority.certificate_file)))
    assert (state, reason) == ("unknown", f"{running.host} sends logins to '{tokens.realm}', which is not reached by TLS")
    assert tokens.asked == []

def test_tls_is_verified_against_the_authority_given(tmp_path: Path, authority: Authority) -> None:
    with registry(tmp_path, tls=authority) as running:
        running.put_index("nvidia/driver", "1")
        reference = [f"{running.host}/nvidia/driver:1"]
        stranger = states(reference, Transport(5))
        known = states(reference, Transport(5, ca_path=str(authority.certificate_file)))
        insecure = states(reference, Transport(5, insecure=True))
    assert stranger[0][0] == "unknown"
    assert "CERTIFICATE_VERIFY_FAILED" in stranger[0][2]
    assert [known[0][0], insecure[0][0]] == ["exists", "exists"]

def test_the_action_answers_through_a_playbook(open_registry: Registry, tmp_path: Path) -> None:
    digest = open_registry.put_index("nvidia/driver", "action")
    there, lacking = f"{open_registry.host}/nvidia/driver:action", f"{open_registry.host}/nvidia/driver:lacking"
    play = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
            "tasks": [
                {"gpunode.hygiene.driver_image_info": {"images": [there, lacking, there], "insecure": "yes"}, "register": "asked", "check_mode": True},
                {"ansible.builtin.copy": {"content": "{{ asked | to_json }}", "dest": str(tmp_path / "asked.json")}},
                {"gpunode.hygiene.driver_image_info": {"images": [there]}, "async": 10, "register": "refused", "ignore_errors": True},
                {"ansible.builtin.copy": {"content": "{{ refused.remedy }}", "dest": str(tmp_path / "remedy")}},
            ],
        }
    ]
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps(play))
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", "-c", "local", str(playbook)]
    done = subprocess.run(command, env=os.environ | {"HOME": str(tmp_path)}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    asked = json.loads((tmp_path / "asked.json").read_text())
    assert asked["changed"] is False
    assert asked["msg"] == "Of 2 images 1 exist, 1 are missing, 0 cannot be told."
    assert asked["images"] == [
        {"reference": there, "state": "exists", "digest": digest, "reason": ""},
        {"reference": lacking, "state": "missing", "digest": None, "reason": f"{open_registry.host} says MANIFEST_UNKNOWN"},
    ]
    assert (tmp_path / "remedy").read_text() == "Remove `async` and `poll`; the option `timeout` bounds the time"
