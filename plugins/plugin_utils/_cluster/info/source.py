# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where cluster objects come from: an API server, or a folder that somebody sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import yaml
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import objects
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import Api, ApiError

PATHS = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "Event": "/api/v1/events",
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "ClusterPolicy": "/apis/nvidia.com/v1/clusterpolicies",
    "NVIDIADriver": "/apis/nvidia.com/v1alpha1/nvidiadrivers",
}
# Kinds of the operator: a cluster without it answers 404, which means that there are none.
OPTIONAL = frozenset({"ClusterPolicy", "NVIDIADriver"})
LOG_BYTES = 65536
# A kubelet that is down must not hold up the answer about its node.
LOG_PATIENCE = 5.0


class PlainLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Leaves times as the text they are: unquoted ones are no datetimes in the API either."""


PlainLoader.yaml_implicit_resolvers = {
    first: [resolver for resolver in resolvers if resolver[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class Unread(Exception):
    """This part could not be read, and why."""


class Source(Protocol):
    """Reads objects and logs; `Unread` for a part that cannot be had."""

    def list(self, kind: str, labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """All objects of the kind with these labels and field values (such as `spec.nodeName`)."""

    def log(self, pod: objects.Object, container: str, previous: bool, lines: int) -> str:
        """The last lines of a container's log."""


class Server:
    """Objects of a running cluster."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def list(self, kind: str, labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """See `Source.list`; one paged call."""
        query = {"labelSelector": _selector(labels), "fieldSelector": _selector(fields)}
        try:
            return self._api.list(PATHS[kind], {name: value for name, value in query.items() if value})
        except ApiError as error:
            if error.status == 404 and kind in OPTIONAL:
                return []
            raise Unread(error.seen) from error

    def log(self, pod: objects.Object, container: str, previous: bool, lines: int) -> str:
        """See `Source.log`."""
        path = f"/api/v1/namespaces/{objects.namespace(pod)}/pods/{objects.name(pod)}/log"
        query = {"container": container, "previous": str(previous).lower(), "tailLines": lines, "limitBytes": LOG_BYTES}
        try:
            return self._api.text(path, query, patience=LOG_PATIENCE)
        except HygieneError as error:
            raise Unread(error.seen) from error


class Folder:
    """Objects from files: `kubectl get -o yaml` or `-o json`, single objects or lists, in any number of `.yaml`, `.yml` and `.json` files below the folder.

    Logs are text files named `<namespace>_<pod>_<container>.log` and `<namespace>_<pod>_<container>.previous.log`.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise HygieneError(
                seen=f"{folder} is not a folder",
                why="The option `path` names a folder with dumped objects",
                remedy="Correct `path`, or leave it out to ask the cluster",
            )
        self._folder = folder
        self._objects: dict[str, list[dict[str, Any]]] = {}
        for file in sorted(folder.rglob("*")):
            if file.suffix in (".yaml", ".yml", ".json"):
                self._add(file)

    def list(self, kind: str, labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """See `Source.list`."""
        if kind not in self._objects:
            if kind in OPTIONAL and self._objects:
                return []
            raise Unread(f"there is no {kind} in {self._folder}")
        return [
            item
            for item in self._objects[kind]
            if all(objects.labels_of(item).get(key) == value for key, value in (labels or {}).items())
            and all(_field(item, key) == value for key, value in (fields or {}).items())
        ]

    def log(self, pod: objects.Object, container: str, previous: bool, lines: int) -> str:
        """See `Source.log`."""
        name = f"{objects.namespace(pod)}_{objects.name(pod)}_{container}{'.previous' if previous else ''}.log"
        for file in self._folder.rglob(name):
            return "\n".join(file.read_text("utf-8", "replace").splitlines()[-lines:]) + "\n"
        raise Unread(f"there is no {name} in {self._folder}")

    def _add(self, file: Path) -> None:
        text = file.read_text("utf-8", "replace")
        try:
            documents = [json.loads(text)] if file.suffix == ".json" else list(yaml.load_all(text, Loader=PlainLoader))
        except (ValueError, yaml.YAMLError) as error:
            raise HygieneError(
                seen=f"{file} cannot be read as {file.suffix[1:]}: {error}",
                why="What it says would be missing in the answer",
                remedy="Dump it again, or move it away",
            ) from error
        for document in documents:
            if isinstance(document, dict):
                for item in document.get("items") or [document] if str(document.get("kind", "")).endswith("List") else [document]:
                    kind = str(item.get("kind") or str(document.get("kind", "")).removesuffix("List"))
                    if kind and isinstance(item.get("metadata"), dict) and "name" in item["metadata"]:
                        self._objects.setdefault(kind, []).append(item)


def _selector(pairs: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in (pairs or {}).items())


def _field(item: Mapping[str, Any], dotted: str) -> str:
    value: Any = item
    for key in dotted.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return str(value or "")
