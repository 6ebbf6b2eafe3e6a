# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The control plane and the fake nodes do what their users rely on."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator

import pytest
from gpunode_lab.controlplane import SERVERS, ControlPlane
from gpunode_lab.kwok import start_kwok

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {{gpunode.lab/stops-after: {stops_after}}}}}
spec: {{containers: [{{name: c, image: none, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]}}
"""


pytestmark = pytest.mark.xdist_group("test_lab_control_plane")  # they share one lab


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as started:
        yield started


def test_users_have_the_rights_of_their_groups_and_no_more(plane: ControlPlane) -> None:
    plane.kubectl("create", "clusterrolebinding", "readers", "--clusterrole=view", "--group=readers")
    viewer = plane.user_kubeconfig("viewer", groups=["readers"])
    command = [str(plane.binaries / "kubectl"), f"--kubeconfig={viewer}", "auth", "can-i"]
    answers = {what: subprocess.run([*command, *what.split()], capture_output=True, text=True, check=False).stdout.strip()
               for what in ("list pods", "delete pods", "patch nodes")}
    assert answers == {"list pods": "yes", "delete pods": "no", "patch nodes": "no"}


def test_fake_nodes_are_ready_take_pods_and_let_them_go_when_told(plane: ControlPlane) -> None:
    start_kwok(plane, ["fake-1"], labels={"a/b": "c"}, resources={"nvidia.com/gpu": "2"}, node_info={"kernelVersion": "6.1.0-56-amd64"})
    node = json.loads(plane.kubectl("get", "node", "fake-1", "-o", "json").stdout)
    assert (node["metadata"]["labels"]["a/b"], node["status"]["nodeInfo"]["kernelVersion"]) == ("c", "6.1.0-56-amd64")
    plane.kubectl("apply", "-f", "-", stdin=POD.format(name="slow", stops_after="6s"))
    plane.kubectl("wait", "--for=condition=Ready", "pod/slow", "--timeout=60s")
    begun = time.monotonic()
    plane.kubectl("delete", "pod", "slow", "--timeout=60s")
    assert time.monotonic() - begun >= 5


def test_a_control_plane_started_again_has_its_data_and_its_identity(plane: ControlPlane) -> None:
    plane.kubectl("create", "namespace", "kept")
    authority = plane.authority.pair.certificate.read_bytes()
    plane.stop()
    assert plane.processes.names() == []
    plane.start()
    assert plane.kubectl("get", "namespace", "kept", "-o", "name").stdout == "namespace/kept\n"
    assert ControlPlane(plane.folder).authority.pair.certificate.read_bytes() == authority
    assert all(plane.processes.get(name) for name in SERVERS)


def test_an_api_server_that_hangs_answers_again_when_resumed(plane: ControlPlane) -> None:
    plane.pause("kube-apiserver")
    hung = plane.kubectl("get", "namespaces", "--request-timeout=2s", check=False)
    plane.resume("kube-apiserver")
    assert hung.returncode == 1
    assert plane.kubectl("get", "namespaces", "default", "-o", "name").stdout == "namespace/default\n"
