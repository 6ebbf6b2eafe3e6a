# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One real control plane for all tests here, one namespace with its own nodes for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import Api, connect
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.options import Settings
from cluster_kubelets import Kubelets
from cluster_world import Cluster
from gpunode_lab.controlplane import ControlPlane


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd, API server, controllers and scheduler on loopback."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture(scope="session")
def api(control_plane: ControlPlane) -> Api:
    """A cluster administrator's connection."""
    return connect(Settings("kubeconfig", str(control_plane.kubeconfig), {}, 30.0))


@pytest.fixture(scope="session")
def kubelets(api: Api) -> Iterator[Kubelets]:
    """Something that lets pods run and end."""
    with Kubelets(api) as running:
        yield running


@pytest.fixture
def cluster(api: Api, control_plane: ControlPlane, kubelets: Kubelets) -> Iterator[Cluster]:
    """A namespace and nodes for one test."""
    made = Cluster(api, control_plane.kubectl, kubelets)
    yield made
    made.clean()
