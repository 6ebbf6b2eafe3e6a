# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One real control plane for all tests here, one namespace with its own nodes for each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import Api
    from cluster_kubelets import Kubelets
    from cluster_world import Cluster
    from gpunode_lab.controlplane import ControlPlane

# The helpers beside this file; tests are imported by path (import mode importlib), which puts no folder on sys.path.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd, API server, controllers and scheduler on loopback."""
    from gpunode_lab.controlplane import ControlPlane

    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture(scope="session")
def api(control_plane: ControlPlane) -> Api:
    """A cluster administrator's connection."""
    from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import connect
    from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.options import Settings

    return connect(Settings("kubeconfig", str(control_plane.kubeconfig), {}, 30.0))


@pytest.fixture(scope="session")
def kubelets(api: Api) -> Iterator[Kubelets]:
    """Something that lets pods run and end."""
    from cluster_kubelets import Kubelets

    with Kubelets(api) as running:
        yield running


@pytest.fixture
def cluster(api: Api, control_plane: ControlPlane, kubelets: Kubelets) -> Iterator[Cluster]:
    """A namespace and nodes for one test."""
    from cluster_world import Cluster

    made = Cluster(api, control_plane.kubectl, kubelets)
    yield made
    made.clean()
