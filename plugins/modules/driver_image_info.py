#!/usr/bin/python
# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_image_info
short_description: Tells whether driver images exist in their registries
version_added: "0.1.0"
author:
  - gpunode.hygiene contributors (@gpunode)
description:
  - Asks each image's registry for the manifest (C(HEAD)), logging in as the registry demands, by basic authentication or for a token.
  - An image is V(missing) only when the registry itself says so. A refused login, a rate limit or a registry that does not answer is V(unknown).
options:
  images:
    description: Image references, such as C(nvcr.io/nvidia/driver:580.126.20-ubuntu24.04). The same one twice is asked for once.
    type: list
    elements: str
    required: true
  auth:
    description: Logins for registries. They win over O(docker_config). A registry that is in neither is asked anonymously.
    type: list
    elements: dict
    default: []
    suboptions:
      registry:
        description: The registry's host, with its port when references have one; C(docker.io) for Docker Hub.
        type: str
        required: true
      username:
        description: Name to log in with. NVIDIA's registry wants C($oauthtoken) here, and the API key as password.
        type: str
        required: true
      password:
        description: Password or key.
        type: str
        required: true
  docker_config:
    description:
      - Docker's configuration file on the controller, whose C(auths) are used. Credential helpers are not run.
      - By default C(config.json) in the folder that the variable E(DOCKER_CONFIG) names, otherwise in C(~/.docker); it need not be there.
    type: path
  insecure:
    description: Whether registries may have any certificate, and may be asked by plain HTTP when they do not speak TLS.
    type: bool
    default: false
  ca_path:
    description: File with the certificates (PEM) of the authorities to trust, instead of the system's.
    type: path
  timeout:
    description: Seconds for each request.
    type: float
    default: 10.0
notes:
  - The work is done on the controller, which may reach another network than the node does. The usual proxy variables are used.
  - Whether the image exists for the node's architecture is not checked.
attributes:
  check_mode:
    support: full
    description: Nothing is ever changed.
  diff_mode:
    support: N/A
    description: Nothing is ever changed.
  async:
    support: none
    description: The task works on the controller; it is refused with C(async).
seealso:
  - plugin: gpunode.hygiene.expected_images
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Does the operator's next driver image exist?
  gpunode.hygiene.driver_image_info:
    images:
      - nvcr.io/nvidia/driver:580.126.20-ubuntu26.04
  register: driver_images

- name: The same in a registry of one's own
  gpunode.hygiene.driver_image_info:
    images:
      - registry.example.com/nvidia/driver:580.126.20-ubuntu26.04
    auth:
      - registry: registry.example.com
        username: reader
        password: "{{ registry_password }}"
    ca_path: /etc/ssl/example-ca.pem
"""

RETURN = r"""
msg:
  description: One sentence with the counts.
  type: str
  returned: success
  sample: Of 2 images 1 exist, 1 are missing, 0 cannot be told.
images:
  description: One answer per distinct reference, in the order asked.
  type: list
  elements: dict
  returned: success
  contains:
    reference:
      description: The reference as given.
      type: str
      returned: success
      sample: nvcr.io/nvidia/driver:580.126.20-ubuntu26.04
    state:
      description: V(exists), V(missing) or V(unknown).
      type: str
      returned: success
      sample: missing
    digest:
      description: The manifest's digest; null unless it exists and the registry says it.
      type: str
      returned: success
      sample: null
    reason:
      description: Why it is not V(exists); empty when it is.
      type: str
      returned: success
      sample: nvcr.io says MANIFEST_UNKNOWN
seen:
  description: What was observed.
  type: str
  returned: failure
why:
  description: Why the task stopped.
  type: str
  returned: failure
remedy:
  description: What to do about it.
  type: str
  returned: failure
"""
