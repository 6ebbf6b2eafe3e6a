# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the connection comes from, and how calls are repeated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import client
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import Api, ApiError, Response, Unanswered
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.options import resolve
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.progress import Progress


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("options", "environment", "origin", "kubeconfig"),
    [
        ({"kubeconfig": "/opt"}, {"K8S_AUTH_KUBECONFIG": "/auth", "KUBECONFIG": "/env"}, "kubeconfig", "/opt"),
        ({}, {"K8S_AUTH_KUBECONFIG": "/auth", "KUBECONFIG": "/env"}, "kubeconfig", "/auth"),
        ({"kubeconfig": ""}, {"KUBECONFIG": "/env:/other"}, "kubeconfig", "/env:/other"),
        ({}, {}, "kubeconfig", "~"),
        ({"context": "c"}, {}, "kubeconfig", "~"),
        ({"host": "https://h", "api_key": "t"}, {"KUBECONFIG": "/env"}, "explicit", None),
        ({"host": "https://h", "api_key": "t", "kubeconfig": "/opt"}, {}, "kubeconfig", "/opt"),
        ({"host": "https://h"}, {"K8S_AUTH_API_KEY": "t"}, "explicit", None),
        ({"host": "https://h"}, {}, "kubeconfig", "~"),
        ({"kubeconfig": {"clusters": []}}, {}, "kubeconfig", {"clusters": []}),
    ],
)
def test_origin(home: Path, options: dict[str, Any], environment: dict[str, str], origin: str, kubeconfig: Any) -> None:
    settings = resolve(options, environment, home)
    assert (settings.origin, settings.kubeconfig) == (origin, str(home / ".kube" / "config") if kubeconfig == "~" else kubeconfig)


def test_without_any_configuration_it_is_the_pod_s_account(tmp_path: Path) -> None:
    settings = resolve({}, {}, tmp_path)
    assert settings.origin == "in-cluster"
    with pytest.raises(HygieneError, match=r"No kubeconfig was named and this is not a pod.*K8S_AUTH_KUBECONFIG"):
        client.connect(settings)


def test_values_of_the_environment_are_read_as_what_they_mean(home: Path) -> None:
    environment = {"K8S_AUTH_VERIFY_SSL": "False", "K8S_AUTH_IMPERSONATE_GROUPS": "a, b", "K8S_AUTH_CONTEXT": "env"}
    values = resolve({"context": "opt"}, environment, home).values
    assert dict(values) == {"validate_certs": False, "impersonate_groups": ["a", "b"], "context": "opt"}
    assert resolve({"validate_certs": True}, environment, home).values["validate_certs"] is True


def test_a_kubeconfig_that_is_not_there_or_not_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(HygieneError, match=r"The kubeconfig /nonexistent: "):
        client.connect(resolve({"kubeconfig": "/nonexistent"}, {}, tmp_path))
    broken = tmp_path / "broken"
    broken.write_text("apiVersion: v1\nkind: Config\n", "utf-8")
    with pytest.raises(HygieneError, match=f"The kubeconfig {broken}"):
        client.connect(resolve({"kubeconfig": str(broken)}, {}, tmp_path))


def test_a_missing_library_is_a_clear_error(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setattr(client, "MISSING_LIBRARY", ImportError("No module named 'kubernetes'"))
    with pytest.raises(HygieneError, match=r"No module named 'kubernetes'.*pip install kubernetes"):
        client.connect(resolve({}, {}, home))


def test_explicit_credentials_are_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []

    class Pool:
        def request(self, method: str, url: str, **more: Any) -> Any:
            sent.append({"method": method, "url": url, "headers": more["headers"]})
            return type("Answer", (), {"status": 200, "headers": {}, "data": b"{}"})

    class Client:
        def __init__(self, _configuration: Any) -> None:
            self.rest_client = type("Rest", (), {"pool_manager": Pool()})

    monkeypatch.setattr(client.kubernetes.client, "ApiClient", Client)
    options = {"host": "https://h/", "api_key": "tok", "impersonate_user": "u", "impersonate_groups": ["a", "b"]}
    client.connect(resolve(options, {}, tmp_path)).get("/x", {"q": 1})
    client.connect(resolve({"host": "https://h", "username": "me", "password": "pw"}, {}, tmp_path)).get("/x")
    token, basic = sent
    assert (token["method"], token["url"]) == ("GET", "https://h/x?q=1")
    assert (token["headers"]["Authorization"], token["headers"]["Impersonate-User"]) == ("Bearer tok", "u")
    assert token["headers"].getlist("Impersonate-Group") == ["a", "b"]
    assert basic["headers"]["Authorization"] == "Basic bWU6cHc="


class Script:
    """A server that gives these answers in turn, on a clock of its own; the last one for ever."""

    def __init__(self, *answers: Response | Unanswered) -> None:
        self.answers = list(answers)
        self.now = 0.0
        self.requests: list[tuple[float, str, str]] = []

    def send(self, method: str, target: str, _headers: Any, _body: Any, _timeout: float) -> Response:
        self.requests.append((self.now, method, target))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Unanswered):
            raise answer
        return answer

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def api(self, patience: float = 30.0) -> Api:
        return Api(self.send, "https://h", patience, lambda: self.now, self.sleep)


def answer(status: int = 200, document: Any = None, **headers: str) -> Response:
    return Response(status, headers, json.dumps(document if document is not None else {}).encode())


@pytest.mark.parametrize("passing", [Unanswered("Connection refused"), *(answer(status) for status in (429, 500, 502, 503, 504))])
def test_what_passes_is_waited_for(passing: Response | Unanswered) -> None:
    script = Script(passing, passing, answer(document={"a": 1}))
    assert script.api().get("/x") == {"a": 1}
    assert [when for when, _method, _target in script.requests] == [0.0, 0.5, 1.5]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422])
def test_what_does_not_pass_is_said_at_once(status: int) -> None:
    script = Script(answer(status, {"message": "because"}))
    with pytest.raises(ApiError, match=f"GET /x was answered with {status}: because") as caught:
        script.api().get("/x")
    assert (caught.value.status, caught.value.message, len(script.requests)) == (status, "because", 1)


def test_patience_ends() -> None:
    script = Script(Unanswered("Connection refused"))
    with pytest.raises(HygieneError, match=r"https://h gave no answer to GET /x: Connection refused.*tried for 7 s"):
        script.api(7.0).get("/x")
    assert script.now <= 7.0


def test_the_server_s_own_wait_is_kept() -> None:
    script = Script(Response(429, {"Retry-After": "3"}, b"{}"), answer())
    script.api().get("/x")
    assert [when for when, _method, _target in script.requests] == [0.0, 3.0]


def test_an_untrusted_certificate_is_final() -> None:
    script = Script(Unanswered("certificate verify failed", final=True))
    with pytest.raises(HygieneError, match="certificate verify failed"):
        script.api().get("/x")
    assert len(script.requests) == 1


def page(names: list[str], token: str = "") -> Response:
    return answer(document={"kind": "NodeList", "apiVersion": "v1", "metadata": {"continue": token}, "items": [{"metadata": {"name": name}} for name in names]})


def test_pages_are_joined_and_items_get_their_kind() -> None:
    script = Script(page(["a", "b"], "t/1"), page(["c"]))
    items = script.api().list("/nodes", {"labelSelector": "x=y"})
    assert [(item["kind"], item["apiVersion"], item["metadata"]["name"]) for item in items] == [("Node", "v1", name) for name in "abc"]
    assert [target for _when, _method, target in script.requests] == [
        "/nodes?labelSelector=x%3Dy&limit=500", "/nodes?labelSelector=x%3Dy&limit=500&continue=t%2F1",
    ]


def test_an_expired_page_token_starts_over_in_one_piece() -> None:
    script = Script(page(["a"], "old"), answer(410, {"message": "expired"}), page(["a", "b"]))
    assert [item["metadata"]["name"] for item in script.api().list("/nodes")] == ["a", "b"]
    assert script.requests[-1][2] == "/nodes"


def test_an_answer_that_is_no_status_object_is_quoted() -> None:
    with pytest.raises(ApiError, match="403: <html>no</html>"):
        Script(Response(403, {}, b"<html>no</html>\n")).api().get("/x")


def test_progress_shows_changes_only_and_not_too_often() -> None:
    shown: list[str] = []
    now = [0.0]
    clock: Callable[[], float] = lambda: now[0]  # noqa: E731 - a clock that the test turns
    progress = Progress(shown.append, 10.0, clock)
    for second, line in enumerate(["5 left", "5 left", *["4 left"] * 9, "3 left", *["2 left"] * 12]):
        now[0] = float(second)
        progress(line)
    assert shown == ["5 left", "4 left", "2 left"]
