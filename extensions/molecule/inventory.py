#!/usr/bin/env python3
# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ansible inventory of the lab named `molecule`: its node, and what its owner tells the playbooks. Empty while the lab is down."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "lab"))

from gpunode_lab.lab import Lab
from gpunode_lab.playbooks import recovery_variables


def inventory(lab: Lab) -> dict[str, Any]:
    """In the form that Ansible asks of inventory scripts (`_meta`, so that it calls once)."""
    if not lab.inventory.exists():
        return {"_meta": {"hostvars": {}}}
    hosts: dict[str, Any] = json.loads(lab.inventory.read_text("utf-8"))["all"]["children"]["gpu_nodes"]["hosts"]
    variables = {
        **recovery_variables(lab.older_kernel),
        "gpunode_kubeconfig": str(lab.kubeconfig),
        "gpunode_report_dir": str(lab.folder / "reports"),
        "verify_kubectl": f"{lab.control_plane.binaries / 'kubectl'} --kubeconfig={lab.kubeconfig}",
    }
    return {"gpu_nodes": {"hosts": list(hosts), "vars": variables}, "_meta": {"hostvars": hosts}}


if __name__ == "__main__":
    print(json.dumps(inventory(Lab("molecule"))))
