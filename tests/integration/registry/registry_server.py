# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's docker-registry on loopback, in every way of logging in that the tests need, and the images in it."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.x509.oid import NameOID

BINARY = "docker-registry"
USER, PASSWORD = "reader", "letmein"
# bcrypt of "letmein"; the registry takes no other hash in an htpasswd file.
HTPASSWD = r"reader:$2b$05$abcdefghijklmnopqrstuuKwWV7ESJpzKzf9FQg57dBvMuv92X9HS"
IDENTITY_TOKEN = "identity-of-reader"
ISSUER, SERVICE = "gpunode test", "registry.test"
INDEX = "application/vnd.oci.image.index.v1+json"


@dataclass(frozen=True)
class Registry:
    """A running registry: `host` is what references begin with."""

    host: str
    scheme: str = "http"
    headers: dict[str, str] = field(default_factory=dict)

    def put_index(self, repository: str, tag: str) -> str:
        """Store an empty image index; its digest."""
        body = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": []}).encode()
        context = ssl._create_unverified_context() if self.scheme == "https" else None  # noqa: S323 - its own registry on loopback
        request = urllib.request.Request(  # noqa: S310 - http or https by construction
            f"{self.scheme}://{self.host}/v2/{repository}/manifests/{tag}", data=body, method="PUT", headers={"Content-Type": INDEX, **self.headers}
        )
        with urllib.request.urlopen(request, context=context, timeout=10) as answer:  # noqa: S310 - the same
            assert answer.status == 201
        return f"sha256:{hashlib.sha256(body).hexdigest()}"


class Authority:
    """A key with its self-signed certificate for 127.0.0.1: TLS for the registry, and signatures under tokens."""

    def __init__(self, folder: Path) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpunode test")])
        now = datetime.now(UTC)
        self._certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate_file = folder / "certificate.pem"
        self.key_file = folder / "key.pem"
        self.certificate_file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))
        self.key_file.write_bytes(
            self._key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )

    def token(self, repository: str, actions: list[str]) -> str:
        """A signed token for the registry (distribution: docs/spec/auth/jwt.md)."""
        now = int(time.time())
        header = {"typ": "JWT", "alg": "ES256", "x5c": [base64.b64encode(self._certificate.public_bytes(serialization.Encoding.DER)).decode()]}
        claims = {
            "iss": ISSUER, "sub": USER, "aud": SERVICE, "exp": now + 300, "nbf": now - 10, "iat": now, "jti": secrets.token_hex(8),
            "access": [{"type": "repository", "name": repository, "actions": actions}],
        }
        signed = f"{_part(json.dumps(header).encode())}.{_part(json.dumps(claims).encode())}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_part(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class TokenServer:
    """Gives tokens: to anybody for nvidia/public, after a login for the rest; remembers what it was asked."""

    realm: str
    asked: list[str]


@contextmanager
def token_server(authority: Authority) -> Iterator[TokenServer]:
    """A token server on loopback."""
    asked: list[str] = []
    basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
            self._grant(query, self.headers.get("Authorization") == basic, "token")

        def do_POST(self) -> None:
            form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._grant(form, form.get("refresh_token") == [IDENTITY_TOKEN] and form.get("grant_type") == ["refresh_token"], "access_token")

        def _grant(self, query: dict[str, list[str]], known: bool, key: str) -> None:
            scope = query["scope"][0]
            asked.append(f"{self.command} {query['service'][0]} {scope} {'known' if known else 'anonymous'}")
            _kind, repository, _actions = scope.split(":")
            allowed = known or repository == "nvidia/public"
            body = json.dumps({key: authority.token(repository, ["pull", "push"] if allowed else [])}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield TokenServer(f"http://127.0.0.1:{server.server_address[1]}/token", asked)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def registry(folder: Path, auth: dict[str, Any] | None = None, tls: Authority | None = None) -> Iterator[Registry]:
    """Run the registry with a storage folder below `folder` until the block ends."""
    binary = shutil.which(BINARY)
    assert binary, f"{BINARY} is not installed: apt-get install docker-registry"
    port = _free_port()
    http: dict[str, Any] = {"addr": f"127.0.0.1:{port}"}
    if tls:
        http["tls"] = {"certificate": str(tls.certificate_file), "key": str(tls.key_file)}
    config = {"version": "0.1", "log": {"level": "error"}, "storage": {"filesystem": {"rootdirectory": str(folder / "storage")}}, "http": http}
    if auth:
        config["auth"] = auth
    file = folder / "config.yml"
    file.write_text(json.dumps(config))
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen([binary, "serve", str(file)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _wait_for(port, process, folder / "registry.log")
            yield Registry(f"127.0.0.1:{port}", "https" if tls else "http")
        finally:
            process.terminate()
            process.wait(10)


def htpasswd_auth(folder: Path) -> dict[str, Any]:
    """Basic authentication of USER."""
    file = folder / "htpasswd"
    file.write_text(HTPASSWD + "\n")
    return {"htpasswd": {"realm": "test", "path": str(file)}}


def token_auth(realm: str, authority: Authority) -> dict[str, Any]:
    """Token authentication against a token server."""
    return {"token": {"realm": realm, "service": SERVICE, "issuer": ISSUER, "rootcertbundle": str(authority.certificate_file)}}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the registry ended: {log.read_text()}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"the registry does not listen: {log.read_text()}")
