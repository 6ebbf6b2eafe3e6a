# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for the kubelets: it keeps Nodes ready, lets bound pods run, and ends deleted pods after their grace period.

Everything else in these tests is the real control plane; the kubelet is not their subject.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Any, Self

from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import Api, ApiError

ROUND = 0.1
# Pods with this label never end: their kubelet is dead.
STUCK = "test/stuck"
# The status of pods with this label is the test's own.
SCRIPTED = "test/scripted"


class Kubelets:
    """Serves every Node of the API server, from a thread of its own."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._halt = threading.Event()
        self._deleted: dict[str, float] = {}
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self.failures: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._halt.set()
        self._thread.join()

    def _loop(self) -> None:
        beat = 0.0
        while not self._halt.wait(ROUND):
            try:
                if time.monotonic() - beat > 5:
                    for node in self._api.list("/api/v1/nodes"):
                        self._renew(node["metadata"]["name"])
                    beat = time.monotonic()
                for pod in self._api.list("/api/v1/pods"):
                    if pod["spec"].get("nodeName"):
                        self._serve(pod)
            except Exception as error:  # the API server may be down on purpose; what is not is seen by the test that waits
                self.failures.append(str(error))

    def _renew(self, node: str) -> None:
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        body: dict[str, Any] = {"spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": now}}
        try:
            self._api.patch(f"{path}/{node}", body)
        except ApiError as error:
            if error.status != 404:
                raise
            self._api.post(path, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": node}, **body})

    def _serve(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        if STUCK in (meta.get("labels") or {}) and meta.get("deletionTimestamp"):
            return
        try:
            if meta.get("deletionTimestamp"):
                since = self._deleted.setdefault(meta["uid"], time.monotonic())
                if time.monotonic() - since >= (meta.get("deletionGracePeriodSeconds") or 0):
                    self._delete(path, meta["uid"])
            elif pod["status"]["phase"] == "Pending" and SCRIPTED not in (meta.get("labels") or {}):
                self._api.patch(f"{path}/status", {"status": running(pod)})
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def _delete(self, path: str, uid: str) -> None:
        self._api._json("DELETE", path, None, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})


def running(pod: dict[str, Any]) -> dict[str, Any]:
    """The status of a pod whose containers are all up."""
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {
        "phase": "Running",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in ("Initialized", "ContainersReady", "Ready", "PodScheduled")],
        "containerStatuses": [
            {
                "name": container["name"], "image": container["image"], "imageID": "", "ready": True, "started": True, "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            }
            for container in pod["spec"]["containers"]
        ],
    }
