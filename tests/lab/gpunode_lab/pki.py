# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A throw-away certificate authority and the certificates of one control plane."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Restored snapshots carry their certificates along: they must outlive any cache.
LIFETIME = datetime.timedelta(days=3650)


@dataclass(frozen=True)
class Pair:
    """Paths of a PEM certificate and its PEM key."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority kept in a folder; made when it is not there yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pair = Pair(folder / "ca.crt", folder / "ca.key")
        if not self.pair.certificate.exists():
            folder.mkdir(parents=True, exist_ok=True)
            key = ec.generate_private_key(ec.SECP256R1())
            name = _name("gpunode-lab", [])
            certificate = (
                _builder(name, name, key, key.public_key())
                .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
                .add_extension(_usage(signs_certificates=True), critical=True)
                .sign(key, hashes.SHA256())
            )
            _write(self.pair, certificate, key)

    def issue(self, file_name: str, common_name: str, *, groups: Sequence[str] = (), hosts: Sequence[str] = ()) -> Pair:
        """A certificate for a server (`hosts`: names and addresses) or a client (`common_name` is the user, `groups` its groups); kept once made."""
        pair = Pair(self.folder / f"{file_name}.crt", self.folder / f"{file_name}.key")
        if pair.certificate.exists():
            return pair
        ca_certificate = x509.load_pem_x509_certificate(self.pair.certificate.read_bytes())
        ca_key = serialization.load_pem_private_key(self.pair.key.read_bytes(), None)
        assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(_name(common_name, groups), ca_certificate.subject, key, ca_key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        _write(pair, builder.sign(ca_key, hashes.SHA256()), key)
        return pair


def signing_key(path: Path) -> Path:
    """A key for service account tokens; kept once made."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _private(path, _pem(ec.generate_private_key(ec.SECP256R1())))
    return path


def _name(common_name: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, authority: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    # A day back: the node's clock may lag after a restore.
    begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    # Python 3.13 verifies strictly (RFC 5280) and wants both key identifiers.
    return (
        x509.CertificateBuilder()
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority), critical=False)
        .subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(begin + LIFETIME)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=not signs_certificates, data_encipherment=False, key_agreement=False,
        key_cert_sign=signs_certificates, crl_sign=signs_certificates, encipher_only=False, decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # The API server reads the public half of its token key only from the traditional form.
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())


def _private(path: Path, data: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(data)


def _write(pair: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    _private(pair.key, _pem(key))
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
