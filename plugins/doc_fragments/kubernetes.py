# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The connection options of the cluster actions; names as in kubernetes.core's k8s_auth_options."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path of a kubeconfig file on the controller, or its content as a dictionary.
      - Without it E(K8S_AUTH_KUBECONFIG), E(KUBECONFIG), C(~/.kube/config) and the account of the pod are tried, in this order.
    type: raw
  context:
    description: Name of a context in the kubeconfig. Also E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description: Address of the API server. Also E(K8S_AUTH_HOST).
    type: str
  api_key:
    description: Bearer token. Also E(K8S_AUTH_API_KEY).
    type: str
  username:
    description: User name for servers behind a proxy with basic authentication. Also E(K8S_AUTH_USERNAME).
    type: str
  password:
    description: Password for O(username). Also E(K8S_AUTH_PASSWORD).
    type: str
  client_cert:
    description: Path of a client certificate. Also E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description: Path of the key of O(client_cert). Also E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  ca_cert:
    description: Path of the certificate authority of the API server. Also E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  validate_certs:
    description: Whether the API server's certificate is checked. Also E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  proxy:
    description: Address of an HTTP proxy. Also E(K8S_AUTH_PROXY).
    type: str
  no_proxy:
    description: Comma-separated hosts that are reached without the proxy. Also E(K8S_AUTH_NO_PROXY).
    type: str
  impersonate_user:
    description: User to act as. Also E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description: Groups to act as. Also E(K8S_AUTH_IMPERSONATE_GROUPS), comma-separated.
    type: list
    elements: str
  api_timeout:
    description: Seconds for which a request is repeated while the API server does not answer, restarts or is overloaded.
    type: int
    default: 60
requirements:
  - Python package C(kubernetes) 24.2.0 or newer on the controller
notes:
  - Runs on the controller, whatever host the task is for; C(become), C(delegate_to) and the connection do not matter.
"""
