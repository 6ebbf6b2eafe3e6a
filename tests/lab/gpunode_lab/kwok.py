# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes without machines: kwok keeps them Ready and plays the kubelet for the pods that the scheduler puts there.

::

    with ControlPlane(folder) as cp:
        start_kwok(cp, ["fake-1", "fake-2"], labels={"nvidia.com/gpu.present": "true"}, resources={"nvidia.com/gpu": "8"})

A pod that is deleted goes after 200 ms, or after the duration in its annotation `gpunode.lab/stops-after` (such as "5s").
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import gotool
from .cache import built, cache_root, key
from .controlplane import ControlPlane
from .errors import LabError
from .progress import Progress

SOURCE = Path(__file__).resolve().parents[1] / "kwok"
MODULE = "sigs.k8s.io/kwok"
_STAGES = (
    "node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml", "pod/fast/pod-ready.yaml", "pod/fast/pod-complete.yaml",
)


def start_kwok(control_plane: ControlPlane, nodes: Sequence[str] = (), *, labels: Mapping[str, str] | None = None,
               resources: Mapping[str, str] | None = None, node_info: Mapping[str, str] | None = None, patience: float = 30) -> None:
    """Start kwok for a control plane and make fake nodes; ends with the control plane.

    :param resources: extended resources of each node, beside 32 CPUs, 256 GiB and 110 pods.
    :param node_info: fields of status.nodeInfo, such as machineID and kernelVersion.
    :raises LabError: a node is not Ready within `patience` seconds.
    """
    folder = kwok_files(control_plane.progress)
    stages = [f"--config={path}" for path in sorted((folder / "stages").iterdir())]
    control_plane.start_companion("kwok", [
        str(folder / "kwok"), f"--kubeconfig={control_plane.kubeconfig}", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40", "--enable-crds=", *stages,
    ])
    for name in nodes:
        add_node(control_plane, name, labels=labels, resources=resources, node_info=node_info)
    if nodes:
        answer = control_plane.kubectl("wait", "--for=condition=Ready", f"--timeout={patience:.0f}s", *(f"node/{name}" for name in nodes), check=False)
        if answer.returncode:
            raise LabError(f"Fake nodes are not Ready: {answer.stderr.strip()}", f"Read {control_plane.processes.log('kwok')}")


def add_node(control_plane: ControlPlane, name: str, *, labels: Mapping[str, str] | None = None, resources: Mapping[str, str] | None = None,
             node_info: Mapping[str, str] | None = None) -> None:
    """Make one more fake node."""
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110", **(resources or {})}
    node = {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {"capacity": amounts, "allocatable": amounts, "nodeInfo": {**_NODE_INFO, **(node_info or {})}},
    }
    control_plane.kubectl("create", "-f", "-", stdin=json.dumps(node))


# The API server takes a status only whole.
_EMPTY = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion", "kubeProxyVersion")
_NODE_INFO = {**dict.fromkeys(_EMPTY, ""), "operatingSystem": "linux", "architecture": "amd64"}


def kwok_files(progress: Progress) -> Path:
    """The folder with the program `kwok` and its `stages`."""

    def build(folder: Path) -> None:
        gotool.build(folder, [f"{MODULE}/cmd/kwok"], progress, source=SOURCE)
        command = [str(gotool.find_go(progress)), "list", "-m", "-f", "{{.Dir}}", MODULE]
        module = subprocess.run(command, cwd=SOURCE, env={**os.environ, "GOTOOLCHAIN": "local"}, capture_output=True, text=True, check=True).stdout.strip()
        (folder / "stages").mkdir()
        for path in (*(Path(module) / "kustomize" / "stage" / name for name in _STAGES), *(SOURCE / "stages").iterdir()):
            shutil.copy(path, folder / "stages" / path.name)

    return built(cache_root() / "kwok" / key(SOURCE, Path(__file__).read_bytes()), build, "kwok (Go)", progress)
