# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The connection options, named as kubernetes.core's `k8s_auth_options`, and where their values come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONNECTION_SPEC: dict[str, dict[str, Any]] = {
    "kubeconfig": {"type": "raw", "no_log": True},
    "context": {"type": "str"},
    "host": {"type": "str"},
    "api_key": {"type": "str", "no_log": True},
    "username": {"type": "str"},
    "password": {"type": "str", "no_log": True},
    "client_cert": {"type": "path", "aliases": ["cert_file"]},
    "client_key": {"type": "path", "no_log": False, "aliases": ["key_file"]},
    "ca_cert": {"type": "path", "aliases": ["ssl_ca_cert"]},
    "validate_certs": {"type": "bool", "aliases": ["verify_ssl"]},
    "proxy": {"type": "str"},
    "no_proxy": {"type": "str"},
    "impersonate_user": {"type": "str"},
    "impersonate_groups": {"type": "list", "elements": "str"},
    "api_timeout": {"type": "int", "default": 60},
}

ENVIRONMENT = {
    "kubeconfig": "K8S_AUTH_KUBECONFIG",
    "context": "K8S_AUTH_CONTEXT",
    "host": "K8S_AUTH_HOST",
    "api_key": "K8S_AUTH_API_KEY",
    "username": "K8S_AUTH_USERNAME",
    "password": "K8S_AUTH_PASSWORD",
    "client_cert": "K8S_AUTH_CERT_FILE",
    "client_key": "K8S_AUTH_KEY_FILE",
    "ca_cert": "K8S_AUTH_SSL_CA_CERT",
    "validate_certs": "K8S_AUTH_VERIFY_SSL",
    "proxy": "K8S_AUTH_PROXY",
    "no_proxy": "K8S_AUTH_NO_PROXY",
    "impersonate_user": "K8S_AUTH_IMPERSONATE_USER",
    "impersonate_groups": "K8S_AUTH_IMPERSONATE_GROUPS",
}

FALSE_WORDS = frozenset({"false", "no", "off", "0", "n", "f"})


@dataclass(frozen=True)
class Settings:
    """How to reach the API server: one origin (`explicit`, `kubeconfig` or `in-cluster`) and the values that override it."""

    origin: str
    kubeconfig: str | dict[str, Any] | None
    values: Mapping[str, Any]
    api_timeout: float


def resolve(options: Mapping[str, Any], environment: Mapping[str, str], home: Path) -> Settings:
    """Where the connection comes from: option, `K8S_AUTH_*`, `KUBECONFIG`, `~/.kube/config`, in-cluster.

    :param options: validated task options; unset ones are None or missing.
    :param environment: the controller's environment variables.
    :param home: the home folder; only whether `.kube/config` exists in it is looked at.
    """
    values: dict[str, Any] = {}
    for name, variable in ENVIRONMENT.items():
        given = options.get(name)
        if given is None or given == "":
            given = environment.get(variable) or None
        if given is not None:
            values[name] = given
    if isinstance(values.get("validate_certs"), str):
        values["validate_certs"] = values["validate_certs"].lower() not in FALSE_WORDS
    if isinstance(values.get("impersonate_groups"), str):
        values["impersonate_groups"] = [group.strip() for group in values["impersonate_groups"].split(",")]
    timeout = float(options.get("api_timeout") or 60)

    kubeconfig = values.pop("kubeconfig", None)
    if kubeconfig is None and _names_a_user_and_server(values) and "context" not in values:
        return Settings("explicit", None, values, timeout)
    if kubeconfig is None:
        kubeconfig = environment.get("KUBECONFIG") or None
    default = home / ".kube" / "config"
    if kubeconfig is None and (default.exists() or "context" in values):
        kubeconfig = str(default)
    return Settings("in-cluster" if kubeconfig is None else "kubeconfig", kubeconfig, values, timeout)


def _names_a_user_and_server(values: Mapping[str, Any]) -> bool:
    return "host" in values and ("api_key" in values or "username" in values or "client_cert" in values)
