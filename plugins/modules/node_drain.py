#!/usr/bin/python
# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain
short_description: Cordons, drains and gives back a Kubernetes node
version_added: "0.1.0"
author:
  - gpunode.hygiene contributors (@gpunode)
description:
  - Evicts all pods at once through the eviction API, tries again where a PodDisruptionBudget refuses, and waits until the pods are gone, all within
    one O(timeout). When it passes, the pods and the budgets that blocked are named.
  - Which pods are evicted, left or refused is as with C(kubectl drain --ignore-daemonsets). What can be refused is refused before the node is cordoned.
  - The node is claimed for O(run) by the annotation C(gpunode.hygiene/maintenance), written in the same request as the cordon. Another run is refused as
    long as the claim is alive. The same O(run) or O(procedure) adopts the claim of a process that died, and gets its run id back in RV(run).
  - A cordon that somebody else placed stays when the node is given back. So does ours when the node carries the annotation
    C(gpunode.hygiene/keep-cordoned).
  - Nodes with an etcd member, with the only API server, or with the pod in which Ansible runs are not drained.
options:
  name:
    description: Name of the Node.
    type: str
    required: true
  state:
    description:
      - V(cordoned) claims and cordons the node. Repeating it renews the claim.
      - V(drained) does that and evicts the pods, also when the node was cordoned already.
      - V(uncordoned) waits until the node is Ready and as expected, then gives back what the claim says was taken, and removes the claim. A node that was
        never claimed is left as it is.
    type: str
    choices: [cordoned, drained, uncordoned]
    default: drained
  run:
    description: Id of the run that claims the node. Made up when missing.
    type: str
  procedure:
    description: Name of the procedure that the run is part of; the same procedure may finish what an earlier run of it left.
    type: str
    default: adhoc
  timeout:
    description: Seconds for the whole task.
    type: int
    default: 1800
  grace_period:
    description: Seconds that each pod gets to end. V(-1) leaves it to the pod; V(0) ends it at once.
    type: int
    default: -1
  delete_emptydir_data:
    description: Evict pods with C(emptyDir) volumes, whose data is lost.
    type: bool
    default: false
  force:
    description: Evict pods that no controller makes again.
    type: bool
    default: false
  pod_selector:
    description: Label selector of the pods to evict; all by default.
    type: str
    default: ""
  skip_wait_for_delete_timeout:
    description: Do not wait for pods whose deletion time passed more than this many seconds ago, as on a node whose kubelet is dead. V(0) waits for all.
    type: int
    default: 0
  claim_ttl:
    description: Minutes without a sign of life after which a claim from another controller counts as abandoned.
    type: int
    default: 30
  take_over:
    description:
      - Take a claim over although its owner may be alive on another controller, or was another procedure.
      - A process that is seen alive is never displaced.
    type: bool
    default: false
  protect:
    description:
      - Keep autoscalers and node repair away while the node is claimed, by C(cluster-autoscaler.kubernetes.io/scale-down-disabled),
        C(karpenter.sh/do-not-disrupt), C(remediation.medik8s.io/exclude-from-remediation) and C(k8saas.nvidia.com/ManagedByNVSentinel).
      - What was there before is given back with the node.
    type: bool
    default: false
  expect_kernel:
    description: With O(state=uncordoned), the kernel release that the Node must report first.
    type: str
    default: ""
  expect_boot_id:
    description: With O(state=uncordoned), the boot id that the Node must report first.
    type: str
    default: ""
extends_documentation_fragment:
  - gpunode.hygiene.kubernetes
attributes:
  check_mode:
    support: full
    description: The API server rehearses the patch and the evictions; budgets that would block now are in RV(blocked).
  diff_mode:
    support: full
    description: Shows the cordon, the claim and what else is set on the Node.
  async:
    support: none
    description: Refused; the task shows its progress.
"""

EXAMPLES = r"""
- name: Drain a node, at most for 20 minutes
  gpunode.hygiene.node_drain:
    name: gpu-node-1
    state: drained
    run: 20261001T120000Z-0a1b2c
    procedure: kernel-update
    timeout: 1200
    delete_emptydir_data: true
    protect: true

- name: Give it back once it runs the new kernel
  gpunode.hygiene.node_drain:
    name: gpu-node-1
    state: uncordoned
    run: 20261001T120000Z-0a1b2c
    procedure: kernel-update
    expect_kernel: 6.8.0-117-generic
"""

RETURN = r"""
before:
  description: The node as found; RV(after) has the same keys.
  type: dict
  returned: success
  contains:
    unschedulable:
      description: Whether the node is cordoned.
      type: bool
      returned: success
    cordon_owner:
      description: Field manager that set the cordon, V(unknown) when the API server does not say, null when the node is not cordoned.
      type: str
      returned: success
    claim:
      description: Run and procedure of the claim and whether it cordoned the node; null without a claim.
      type: dict
      returned: success
    protection:
      description: Values of the labels and annotations of O(protect); null for absent.
      type: dict
      returned: success
    pods:
      description: The pods to evict, as namespace/name.
      type: list
      elements: str
      returned: O(state=drained)
  sample:
    unschedulable: false
    cordon_owner: null
    claim: null
    protection: {}
    pods: [ml/trainer-0]
after:
  description: The node afterwards; in check mode as it would be.
  type: dict
  returned: success
plan:
  description: Each change, with how to undo it.
  type: list
  elements: dict
  returned: success
  sample: [{what: cordon, where: gpu-node-1, before: false, after: true, undo: kubectl uncordon gpu-node-1}]
node:
  description: Name of the Node.
  type: str
  returned: success
run:
  description: Id of the run that the node is, or was, claimed for. When a claim was adopted, that of the run that is resumed.
  type: str
  returned: success
procedure:
  description: Procedure of that run.
  type: str
  returned: success
adopted:
  description: Whether the claim of an earlier process was adopted or taken over.
  type: bool
  returned: success
schedulable:
  description: Whether pods can be scheduled on the node now.
  type: bool
  returned: success
cordon_owner:
  description: Who keeps the node cordoned; null when nobody does.
  type: str
  returned: success
boot_id:
  description: Boot id of the node when the run started.
  type: str
  returned: success
pods:
  description: The pods that were evicted, in check mode those that would be. C(seconds) is when each was gone, counted from the start of the evictions.
  type: list
  elements: dict
  returned: success
  sample: [{namespace: ml, name: trainer-0, uid: 5c6d, reason: managed by StatefulSet trainer, seconds: 31.5}]
left:
  description: The pods that were left on the node, and why.
  type: list
  elements: dict
  returned: success
  sample: [{namespace: kube-system, name: cilium-x7k, uid: 9e8f, reason: managed by DaemonSet cilium}]
blocked:
  description: The pods that a PodDisruptionBudget keeps, in check mode and when the time is over.
  type: list
  elements: dict
  returned: success
  sample: [{namespace: ml, name: trainer-0, uid: 5c6d, reason: The disruption budget trainer needs 2 healthy pods and has 2 currently, budgets: [trainer]}]
refused:
  description: The pods that must not be evicted unasked, or that the API server refuses for good.
  type: list
  elements: dict
  returned: failure because of them
terminating:
  description: The pods that were still terminating when the time was over.
  type: list
  elements: dict
  returned: failure because of the time
unmet:
  description: What still spoke against giving the node back when the time was over.
  type: list
  elements: str
  returned: failure because of the time
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
