# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The node is upgraded by accident and rebooted; its driver image has no headers for the new kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import aptrepo
from ..errors import LabError
from ..standins import capacity
from ..standins.deploy import BARE_POD, DRIVER, NAMESPACE, WORKLOADS, manifest, pods, wait_until, waiting_reason

if TYPE_CHECKING:
    from ..lab import Lab

DRIVER_CONTAINER = "nvidia-driver-ctr"
MESSAGE = "Could not resolve Linux kernel version"

_UPGRADE = "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get -y dist-upgrade"


def replay(lab: Lab) -> None:
    """From a healthy node on the older kernel to the driver pod's CrashLoopBackOff on the newer one; nothing is set by hand that the accident did not set.

    :raises LabError: the lab is not in the state that the accident starts from, or does not get into the incident.
    """
    running = lab.ssh("uname -r").stdout.strip()
    if running != lab.older_kernel or capacity(lab) != 1:
        raise LabError(f"The node runs {running} with {capacity(lab)} GPUs; the accident starts on {lab.older_kernel} with 1", "Run `lab down` and `lab up`")
    aptrepo.publish(lab.repository, "B")
    with lab.progress.step("the node is upgraded"):
        lab.ssh(_UPGRADE, timeout=1800)
        # Weeks later nobody can read who did it.
        lab.ssh("rm -f /var/log/apt/history.log* /var/log/apt/term.log*")
    with lab.progress.step("the node reboots into the newer kernel"):
        lab.ssh("systemctl reboot", check=False)
        lab.wait_until_it_goes_down()
        lab.wait_ssh(300)
        running = lab.ssh("uname -r").stdout.strip()
        if running != lab.newer_kernel:
            raise LabError(f"The node came back on {running}, not on {lab.newer_kernel}", f"Read {lab.serial}")
        lab.wait_node_ready()
    with lab.progress.step("the driver pod crash-loops"):
        wait_until(lab, "the driver pod is in CrashLoopBackOff", lambda: [waiting_reason(pod, DRIVER_CONTAINER) for pod in pods(lab, NAMESPACE, DRIVER)]
                   == ["CrashLoopBackOff"], 900)
        wait_until(lab, "nvidia.com/gpu is 0", lambda: capacity(lab) == 0, 60)
        _demand_message(lab)
    # The kubelet could not give the pod its GPU back, so it failed; its owner starts it again, and it stays Pending.
    lab.kubectl("delete", "pod", "-n", WORKLOADS, BARE_POD, "--wait=true", "--ignore-not-found")
    lab.kubectl("apply", "-f", "-", stdin=manifest(f"{BARE_POD}.yaml"))
    wait_until(lab, "the GPU pod is Pending", lambda: [pod["status"]["phase"] for pod in pods(lab, WORKLOADS, "app=notebook")] == ["Pending"], 60)
    wait_until(lab, "the trainer runs", lambda: [pod["status"]["phase"] for pod in pods(lab, WORKLOADS, "app=trainer")] == ["Running"] * 2, 120)


def _demand_message(lab: Lab) -> None:
    log = lab.kubectl("logs", "-n", NAMESPACE, "-l", DRIVER, "-c", DRIVER_CONTAINER, "--tail=-1", check=False).stdout
    if MESSAGE not in log:
        raise LabError(f"The driver's log does not say {MESSAGE!r}: {log}", "Look with `kubectl logs`")
