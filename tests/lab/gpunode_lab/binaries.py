# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Go programs of the lab, built into the cache."""

from __future__ import annotations

import re
from pathlib import Path

from . import gotool
from .cache import built, cache_root, key
from .progress import Progress

COMMANDS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet")
VERSION_PACKAGE = "k8s.io/component-base/version"


def kubernetes_version(go_mod: str) -> str:
    """The version of k8s.io/kubernetes that a go.mod asks for, with its `v`."""
    match = re.search(r"^\s*(?:require\s+)?k8s\.io/kubernetes\s+(v\S+)", go_mod, re.MULTILINE)
    if not match:
        raise ValueError("go.mod does not require k8s.io/kubernetes")
    return match[1]


def control_plane_binaries(progress: Progress) -> Path:
    """The folder with `COMMANDS`."""
    go_mod, go_sum = gotool.GO_SOURCES / "go.mod", gotool.GO_SOURCES / "go.sum"
    version = kubernetes_version(go_mod.read_text("utf-8"))
    major, minor, _patch = version.removeprefix("v").split(".", 2)
    # Without these a server reports v0.0.0-master, and kubectl and kubelet refuse by version skew.
    ldflags = " ".join(f"-X {VERSION_PACKAGE}.{name}={value}" for name, value in
                       (("gitVersion", version), ("gitMajor", major), ("gitMinor", minor), ("gitTreeState", "clean")))
    packages = [f"k8s.io/kubernetes/cmd/{command}" for command in COMMANDS]

    def build(folder: Path) -> None:
        gotool.build(folder, packages, progress, ldflags=ldflags)

    return built(cache_root() / "control-plane" / key(go_mod, go_sum, ldflags, *packages), build, "control plane binaries (Go)", progress)
