# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's container registry."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpunode_lab import registry
from gpunode_lab.standins.images import DRIVER_TAG

pytestmark = pytest.mark.quick


def test_a_pushed_image_is_found_by_tag_and_digest_and_another_tag_is_not(tmp_path: Path) -> None:
    with registry.Registry(tmp_path) as running:
        digest = running.push("nvidia/driver", "580.126.20-debian12")
        accept = {"Accept": registry.MANIFEST}
        status, headers, _body = running.request("HEAD", "/v2/nvidia/driver/manifests/580.126.20-debian12", headers=accept)
        assert (status, headers["Docker-Content-Digest"]) == (200, digest)
        assert running.request("HEAD", f"/v2/nvidia/driver/manifests/{digest}", headers=accept)[0] == 200
        assert running.request("HEAD", "/v2/nvidia/driver/manifests/580.126.20-ubuntu26.04", headers=accept)[0] == 404


def test_the_shared_registry_runs_until_its_last_user_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = registry.Registry(tmp_path / "registry", tied=False)
    monkeypatch.setattr(registry, "shared", lambda: free)
    registry.join("one")
    registry.join("two")
    assert free.request("GET", "/v2/nvidia/driver/tags/list")[2].count(DRIVER_TAG.encode()) == 1
    registry.leave("one")
    registry.leave("one")
    assert free.processes.get("registry") is not None
    registry.leave("two")
    assert free.processes.get("registry") is None
