#!/usr/bin/python
# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_cluster_info
short_description: Reads the GPU side of a Kubernetes cluster
version_added: "0.1.0"
author:
  - gpunode.hygiene contributors (@gpunode)
description:
  - Reads the Nodes, the driver pods with the logs and events of those that are not ready, the driver DaemonSets, the operator's ClusterPolicy and
    NVIDIADriver objects, and the pods that wait for GPUs, with one paged request per kind for the whole fleet.
  - Works without the operator, and on a folder of dumped objects instead of a cluster.
  - With O(match_machine_id) it also tells which Node a host is, and fails when that is not certain.
options:
  parts:
    description: What to read. V(nodes) is always read.
    type: list
    elements: str
    choices: [nodes, driver_pods, operator, pending_pods]
    default: [nodes, driver_pods, operator, pending_pods]
  nodes:
    description: Names of the Nodes to return; all by default.
    type: list
    elements: str
    default: []
  logs_of:
    description: Names of the Nodes whose driver pods' logs and events are read where a pod is not ready; all by default.
    type: list
    elements: str
  log_lines:
    description: How many lines are kept of the end of each log.
    type: int
    default: 40
  path:
    description:
      - Folder with dumped objects to read instead of a cluster, as written by C(kubectl get -o yaml) or C(-o json), in any number of files.
      - Logs in it are named C(<namespace>_<pod>_<container>.log) and C(<namespace>_<pod>_<container>.previous.log).
    type: path
  match_machine_id:
    description: Machine id of the host whose Node is looked for.
    type: str
  match_system_uuid:
    description: System UUID of that host (C(/sys/class/dmi/id/product_uuid)); empty when it has none.
    type: str
  match_boot_id:
    description: Boot id of that host. The Node must report it, or the one that its claim recorded when the run started.
    type: str
  node:
    description: Name that the user gave for the Node. It must be the one that matches.
    type: str
extends_documentation_fragment:
  - gpunode.hygiene.kubernetes
attributes:
  check_mode:
    support: full
    description: Reads only.
  diff_mode:
    support: N/A
    description: Changes nothing.
  async:
    support: none
    description: Refused; the task runs on the controller.
"""

EXAMPLES = r"""
- name: Read the fleet, once
  gpunode.hygiene.gpu_cluster_info:
  run_once: true
  register: fleet

- name: Find the Node of this host
  gpunode.hygiene.gpu_cluster_info:
    parts: [nodes]
    match_machine_id: "{{ host.gpu_host.machine_id }}"
    match_system_uuid: "{{ host.gpu_host.system_uuid }}"
    match_boot_id: "{{ host.gpu_host.boot_id }}"
  register: found

- name: Read what somebody sent
  gpunode.hygiene.gpu_cluster_info:
    path: /tmp/must-gather
"""

RETURN = r"""
gpu_cluster:
  description: The evidence. A part that could not be read is null, with the reason in RV(gpu_cluster.unknown).
  type: dict
  returned: success
  contains:
    nodes:
      description: The Nodes by name.
      type: dict
      returned: success
      sample:
        gpu-node-1:
          name: gpu-node-1
          ready: true
          unschedulable: true
          cordon_owner: gpunode-hygiene
          claim: {run: 20261001T120000Z-0a1b2c, procedure: kernel-update, cordoned: true}
          keep_cordoned: null
          machine_id: 8f2b4c6d8e0f4a1b9c3d5e7f90a1b2c3
          boot_id: 4f9d1c1e-0b5e-4c39-9d1b-7a0d6a2f8c11
          kernel_version: 6.8.0-117-generic
          gpu_capacity: 8
          gpu_allocatable: 8
          upgrade_state: upgrade-done
          driver_pods: []
          expected_images: [{role: driver, reference: "nvcr.io/nvidia/driver:580.126.20-ubuntu24.04"}]
          expected_images_problems: []
    operator:
      description: The operator's namespace, version, policies and driver DaemonSets.
      type: dict
      returned: success
    pending_gpu_pods:
      description: Pods that wait for GPUs.
      type: list
      elements: dict
      returned: success
      sample: [{namespace: ml, name: trainer-0, node: null, requests: {"nvidia.com/gpu": 1}, message: "0/1 nodes are available", since: "2026-10-01T12:00:00Z"}]
    unknown:
      description: What could not be read, and why.
      type: dict
      returned: success
      sample: {operator_pods: "GET /api/v1/pods was answered with 403: pods is forbidden"}
matched:
  description: Name of the Node that is the host.
  type: str
  returned: with O(match_machine_id)
candidates:
  description: The Nodes that were compared, when none or several matched.
  type: list
  elements: dict
  returned: failure of the match
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
