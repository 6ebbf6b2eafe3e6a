# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The main job, shown: a node in the incident, the playbook over ssh, and what is true afterwards. Ends with 1 when anything is not."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))

from gpunode_lab import aptrepo
from gpunode_lab.image import NODE
from gpunode_lab.lab import Lab
from gpunode_lab.playbooks import PlaybookRun, recovery_variables, run_playbook

PLAYBOOK = "recover_kernel_mismatch"


@dataclass(frozen=True)
class Seen:
    """What is true of the node at one time, told without the collection."""

    kernel: str
    boots: int
    gpus: str
    schedulable: bool
    pods: dict[str, str]


def look(lab: Lab) -> Seen:
    """Ask the host and the API server."""
    node: dict[str, Any] = json.loads(lab.kubectl("get", "node", NODE, "-o", "json").stdout)
    pods: list[dict[str, Any]] = json.loads(lab.kubectl("get", "pods", "-n", "ml", "-o", "json").stdout)["items"]
    return Seen(
        kernel=lab.ssh("uname -r").stdout.strip(),
        boots=int(lab.ssh("journalctl --list-boots --no-pager | wc -l").stdout),
        gpus=node["status"]["capacity"].get("nvidia.com/gpu", "none"),
        schedulable=not node["spec"].get("unschedulable", False),
        pods={pod["metadata"]["uid"]: f"{pod['metadata']['name']} {pod['status']['phase']}" for pod in pods},
    )


def installed_kernels(lab: Lab) -> list[str]:
    """What dpkg says is installed."""
    return sorted(lab.ssh("dpkg-query -W -f '${db:Status-Status} ${Package}\\n' 'linux-image-[0-9]*' | sed -n 's/^installed linux-image-//p'").stdout.split())


def headline(text: str) -> None:
    """A line that is found again in a long output."""
    print(f"\n=== {text}", flush=True)


def recover(lab: Lab, reports: Path) -> PlaybookRun:
    """As a user runs it."""
    return run_playbook(PLAYBOOK, lab.inventory, lab.kubeconfig, reports, recovery_variables(lab.older_kernel), echo=True)


def main() -> int:
    """Run the demo; 0 when all that it claims is so."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with Lab.started("demo", snapshot="incident") as lab, tempfile.TemporaryDirectory(prefix="gpunode-demo-") as folder:
        before = look(lab)
        headline(f"The incident: {NODE} runs {before.kernel}, has {before.gpus} GPUs; its driver pod cannot find headers for that kernel")
        print(lab.kubectl("get", "pods", "-A", "-o", "wide").stdout)

        headline(f"ansible-playbook gpunode.hygiene.{PLAYBOOK}")
        first = recover(lab, Path(folder))
        after = look(lab)

        headline("The same playbook once more")
        second = recover(lab, Path(folder))

        headline("A newer kernel is published, and the node upgrades for real")
        aptrepo.publish(lab.repository, "C")
        lab.ssh("apt-get -q update && apt-get -qy dist-upgrade", timeout=900)
        held = installed_kernels(lab)

        headline("Control: the same upgrade without the holds")
        lab.ssh("apt-mark showhold | xargs -r apt-mark unhold && apt-get -qy dist-upgrade", timeout=1800)
        control = installed_kernels(lab)

    pulled = ", ".join(sorted(set(control) - set(held))) or "none"
    claims = {
        f"kernel {before.kernel} -> {after.kernel}": first.rc == 0 and after.kernel != before.kernel,
        f"reboots: {after.boots - before.boots}": after.boots - before.boots == 1,
        f"GPU capacity {before.gpus} -> {after.gpus}": (before.gpus, after.gpus) == ("0", "1"),
        f"pods evicted: {len(first.node['pods_evicted'])}; now {', '.join(sorted(after.pods.values()))}": bool(first.node["pods_evicted"])
        and all(text.endswith("Running") for text in after.pods.values()),
        f"node schedulable: {after.schedulable}": after.schedulable,
        f"second run: changed={second.changed}": (second.rc, second.changed) == (0, 0),
        f"newer kernel after dist-upgrade with our holds: {pulled} not pulled": not set(held) - {before.kernel, after.kernel},
        f"newer kernel in the control without holds: {pulled} pulled": bool(set(control) - set(held)),
    }
    headline("Result")
    for text, is_so in claims.items():
        print(f"{'ok  ' if is_so else 'FAIL'}  {text}")
    return 0 if all(claims.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
