# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of these tests, and small helpers to make and watch them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import Api, ApiError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.drain.filters import Rules
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.ledger import Seeker
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.maintain import Maintenance, Wish
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.process import this_owner
from cluster_kubelets import Kubelets

Json = dict[str, Any]


class Cluster:
    """One namespace of the API server, with nodes of its own."""

    def __init__(self, api: Api, kubectl: Callable[..., Any], kubelets: Kubelets) -> None:
        self.api = api
        self._kubelets = kubelets
        self.kubectl = kubectl
        self.namespace = f"t-{uuid.uuid4().hex[:8]}"
        self.nodes: list[str] = []
        self.node_name = ""
        api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        self.until(lambda: self._exists(f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"), "the default service account")

    def add_node(self, *, labels: dict[str, str] | None = None, info: dict[str, str] | None = None, gpus: int | None = None) -> str:
        """A ready Node that only this namespace's pods are sent to."""
        name = f"{self.namespace}-{len(self.nodes)}"
        own_labels = {"test": self.namespace, "kubernetes.io/hostname": name, **(labels or {})}
        self.api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": own_labels}})
        amounts: Json = {"cpu": "8", "memory": "16Gi", "pods": "110"}
        if gpus is not None:
            amounts["nvidia.com/gpu"] = str(gpus)
        facts = {
            "machineID": uuid.uuid4().hex, "systemUUID": str(uuid.uuid4()), "bootID": str(uuid.uuid4()), "kernelVersion": "6.1.0-1-amd64", "osImage": "Debian",
            "containerRuntimeVersion": "containerd://1.6", "kubeletVersion": "v1.35.4", "kubeProxyVersion": "", "operatingSystem": "linux",
            "architecture": "amd64",
        }
        self.api.patch(f"/api/v1/nodes/{name}/status", {"status": {
            "capacity": amounts, "allocatable": amounts, "nodeInfo": {**facts, **(info or {})}, "conditions": [ready(True)],
        }})
        self.until(lambda: not self.node(name)["spec"].get("taints"), "the node's not-ready taint to go")
        self.nodes.append(name)
        return name

    def node(self, name: str) -> Json:
        """The Node as it is now."""
        return self.api.get(f"/api/v1/nodes/{name}")

    def set_status(self, node: str, **status: Any) -> None:
        """Patch a Node's status."""
        self.api.patch(f"/api/v1/nodes/{node}/status", {"status": status})

    def pod(self, name: str, node: str, *, labels: dict[str, str] | None = None, grace: int = 0, owner: Json | None = None, **spec: Any) -> Json:
        """A pod on the node; without `owner` a bare one."""
        meta: Json = {"name": name, "namespace": self.namespace, "labels": {"app": name, **(labels or {})}}
        if owner:
            meta["ownerReferences"] = [owner]
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**pod_spec(grace), "nodeName": node, **spec}}
        made = self.api.post(f"/api/v1/namespaces/{self.namespace}/pods", body)
        self.until(lambda: self.get_pod(name)["status"]["phase"] == "Running", f"pod {name}")
        return made

    def owned(self, name: str, node: str, **more: Any) -> Json:
        """A pod of a controller that does nothing more for it."""
        return self.pod(name, node, owner={"apiVersion": "example.com/v1", "kind": "Job", "name": "work", "uid": str(uuid.uuid4()), "controller": True}, **more)

    def get_pod(self, name: str) -> Json:
        """A pod of the namespace."""
        return self.api.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def pods_on(self, node: str) -> list[str]:
        """Names of the pods on the node."""
        return sorted(pod["metadata"]["name"] for pod in self.api.list("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"}))

    def workload(self, kind: str, name: str, replicas: int, *, grace: int = 0, **spec: Any) -> None:
        """A Deployment, StatefulSet or DaemonSet whose pods only go to this namespace's nodes; waits for its pods to be ready."""
        template = {"metadata": {"labels": {"app": name}}, "spec": {**pod_spec(grace), "nodeSelector": {"test": self.namespace}, **spec}}
        body: Json = {"selector": {"matchLabels": {"app": name}}, "template": template}
        if kind != "daemonsets":
            body["replicas"] = replicas
        if kind == "statefulsets":
            body["serviceName"] = name
        self.api.post(f"/apis/apps/v1/namespaces/{self.namespace}/{kind}", {
            "apiVersion": "apps/v1", "kind": {"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}[kind],
            "metadata": {"name": name}, "spec": body,
        })
        field = "numberReady" if kind == "daemonsets" else "readyReplicas"
        path = f"/apis/apps/v1/namespaces/{self.namespace}/{kind}/{name}"
        self.until(lambda: self.api.get(path).get("status", {}).get(field, 0) == replicas, f"{kind} {name}")

    def budget(self, app: str, min_available: int, name: str = "") -> None:
        """A PodDisruptionBudget over `app`; waits until the disruption controller has counted."""
        name = name or f"{app}-budget"
        path = f"/apis/policy/v1/namespaces/{self.namespace}/poddisruptionbudgets"
        self.api.post(path, {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": app}}},
        })

        def counted() -> bool:
            budget = self.api.get(f"{path}/{name}")
            status = budget.get("status", {})
            return bool(status.get("observedGeneration") == budget["metadata"]["generation"] and status["currentHealthy"])

        self.until(counted, f"budget {name}")

    def until(self, holds: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
        """Wait for something, or fail the test."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, f"waited {seconds} s for {what}; the kubelets' last trouble: {self._kubelets.failures[-1:]}"
            time.sleep(0.1)

    def clean(self) -> None:
        """Take everything away again, for the next test's sake."""
        for node in self.nodes:
            self.api._json("DELETE", f"/api/v1/nodes/{node}", None, {})
        self.api._json("DELETE", f"/api/v1/namespaces/{self.namespace}", None, {})

    def _exists(self, path: str) -> bool:
        try:
            self.api.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True


def pod_spec(grace: int) -> Json:
    """The least that a pod needs."""
    return {
        "containers": [{"name": "main", "image": "none"}], "terminationGracePeriodSeconds": grace, "automountServiceAccountToken": False,
    }


def ready(yes: bool, **more: Any) -> Json:
    """A Node's condition Ready."""
    return {"type": "Ready", "status": "True" if yes else "False", "reason": "KubeletReady" if yes else "KubeletNotReady", "message": "said the test", **more}


def seeker(run: str = "run-1", procedure: str = "recover", **more: Any) -> Seeker:
    """This process, looking for a node."""
    return Seeker(run=run, procedure=procedure, owner=more.pop("owner", this_owner()), ttl=more.pop("ttl", timedelta(minutes=30)), **more)


def maintenance(cluster: Cluster, node: str, *, api: Api | None = None, progress: Callable[[str], None] = print, **wish: Any) -> Maintenance:
    """The work of `node_drain` on a node."""
    options: Json = {"seeker": seeker(), "timeout": 30.0, "rules": Rules(), **wish}
    return Maintenance(api or cluster.api, Wish(node=node, **options), progress)
