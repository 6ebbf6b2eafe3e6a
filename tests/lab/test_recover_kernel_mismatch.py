# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The recovery on a real node: what it refuses, what it survives, and what a trial boot that fails leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gpunode_lab import faults
from gpunode_lab.lab import Lab
from gpunode_lab.playbooks import PlaybookRun, recovery_variables, run_playbook, survey

NODE = "gpu-node-1"
PLAYBOOK = "recover_kernel_mismatch"

Recover = Callable[..., PlaybookRun]


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A node in the incident, for one test alone."""
    with Lab.started(request.node.name, snapshot="incident") as started:
        yield started


@pytest.fixture
def recover(lab: Lab, tmp_path: Path) -> Recover:
    """Run the playbook as a user would."""

    def run(
        *arguments: str, playbook: str = PLAYBOOK, kill_when: Callable[[str], bool] | None = None, kubeconfig: Path | None = None, **variables: Any
    ) -> PlaybookRun:
        return run_playbook(
            playbook,
            lab.inventory,
            kubeconfig or lab.kubeconfig,
            tmp_path / "reports",
            {**recovery_variables(lab.older_kernel), **variables},
            *arguments,
            kill_when=kill_when,
        )

    return run


def node_object(lab: Lab) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.kubectl("get", "node", NODE, "-o", "json").stdout)
    return found


def what_a_person_set(lab: Lab) -> dict[str, Any]:
    """Spec, labels and annotations of the Node."""
    found = node_object(lab)
    return {"spec": found["spec"], "labels": found["metadata"]["labels"], "annotations": found["metadata"].get("annotations", {})}


def host_files(lab: Lab) -> str:
    """The hash of every file that a dry run must leave alone."""
    skipped = "-path /var/lib/kubelet -o -path /var/lib/containerd"  # their programs write there all the time
    return lab.ssh(f"find /etc /boot /var/lib /var/cache/apt \\( {skipped} \\) -prune -o -type f -print0 | sort -z | xargs -0 sha256sum").stdout


def running_kernel(lab: Lab) -> str:
    return lab.ssh("uname -r").stdout.strip()


def boots(lab: Lab) -> int:
    """How often the machine has booted since it was made (wtmp's boot records)."""
    return int(lab.ssh("last -x reboot | grep -c '^reboot'").stdout)


def held(lab: Lab) -> list[str]:
    return sorted(lab.ssh("apt-mark showhold").stdout.split())


def default_is(lab: Lab, kernel_release: str) -> bool:
    """What the boot menu does, told by other means than the collection's resolver: the drop-in, and what really boots is tested elsewhere."""
    drop_in = lab.ssh("cat /etc/default/grub.d/zz-gpunode-hygiene.cfg 2>/dev/null || true").stdout
    return kernel_release in drop_in


def failure(run: PlaybookRun) -> str:
    """Why the last step failed."""
    step = run.node["steps"][-1]
    assert step["result"] == "failed", step
    return str(step["msg"])


def assert_left_on_the_previous_kernel(lab: Lab, run: PlaybookRun, reason: str) -> None:
    lab.wait_ssh()
    assert run.rc == 2, run.output
    assert reason in failure(run)
    assert running_kernel(lab) == lab.newer_kernel
    assert not default_is(lab, lab.older_kernel)
    assert "gpunode-trial" not in lab.ssh("cat /boot/grub/custom.cfg 2>/dev/null || true").stdout
    assert "next_entry=gpunode-trial" not in lab.ssh("grub-editenv - list").stdout
    assert node_object(lab)["spec"].get("unschedulable") is True


def assert_given_back(lab: Lab) -> None:
    """Holds and boot default are what they were in the incident."""
    assert held(lab) == []
    assert not default_is(lab, lab.older_kernel)
    assert lab.ssh("grep -c 'set default=\"0\"' /boot/grub/grub.cfg").stdout.strip() == "1"


@pytest.mark.sample(1)
@pytest.mark.parametrize("fault", ["panics", "cannot_mount_root", "corrupt_vmlinuz", "emergency_mode", "no_network"])
def test_a_trial_boot_that_fails_ends_on_the_previous_kernel_still_cordoned(lab: Lab, recover: Recover, fault: str) -> None:
    getattr(faults, fault)(lab, lab.older_kernel)
    before = boots(lab)
    run = recover(gpunode_confirm_within=150, gpunode_reboot_timeout=300)
    assert_left_on_the_previous_kernel(lab, run, f"came back on {lab.newer_kernel}, not on {lab.older_kernel}")
    assert boots(lab) >= before + 1


@pytest.mark.sample(1)
@pytest.mark.parametrize("hook", [True, False], ids=["power-cycled by the user's command", "reported as stuck with what to do"])
def test_a_hard_hang_ends_on_the_previous_kernel(lab: Lab, recover: Recover, *, hook: bool) -> None:
    faults.hard_hang(lab, lab.older_kernel)
    run = recover(gpunode_reboot_timeout=90, gpunode_power_cycle_command=lab.power_cycle_command if hook else "")
    if hook:
        assert_left_on_the_previous_kernel(lab, run, f"came back on {lab.newer_kernel}, not on {lab.older_kernel}")
        return
    assert run.rc == 2, run.output
    assert "power-cycle it by its BMC" in failure(run)
    assert node_object(lab)["spec"]["unschedulable"] is True
    lab.reset()
    lab.wait_ssh()
    assert running_kernel(lab) == lab.newer_kernel


def test_a_hang_after_the_start_is_ended_by_the_hardware_watchdog_that_the_trial_arms(lab: Lab, recover: Recover) -> None:
    lab.machine.add_device("i6300esb")
    faults.hangs_late(lab, lab.older_kernel)
    run = recover(gpunode_confirm_within=1500, gpunode_reboot_timeout=900)
    assert_left_on_the_previous_kernel(lab, run, f"came back on {lab.newer_kernel}, not on {lab.older_kernel}")


REFUSALS: dict[str, tuple[Callable[[Lab, str], object] | None, dict[str, Any], str]] = {
    "a kernel that is not installed": (None, {"gpunode_kernel_release": "6.1.0-1-amd64"}, "6.1.0-1-amd64"),
    "a kernel without initrd": (faults.missing_initrd, {}, "initrd"),
    "a full /boot": (faults.full_boot, {}, "/boot has"),
    "a held apt lock": (faults.held_apt_lock, {"gpunode_lock_timeout": 5}, "lock"),
    "a cordon placed by somebody else": (lambda lab, _release: lab.kubectl("cordon", NODE), {}, "is cordoned by kubectl"),
    "an API server that cannot be reached": (None, {"kubeconfig": "unreachable"}, "API server"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_work_is_refused_with_nothing_changed(lab: Lab, recover: Recover, case: str) -> None:
    break_it, variables, words = REFUSALS[case]
    variables = dict(variables)
    kubeconfig = lab.unreachable_kubeconfig() if variables.pop("kubeconfig", "") else None
    if break_it:
        break_it(lab, lab.older_kernel)
    before = (host_files(lab), what_a_person_set(lab))
    run = recover(kubeconfig=kubeconfig, **variables)
    assert run.rc == 2
    assert words in failure(run)
    assert (host_files(lab), what_a_person_set(lab)) == before


def test_a_dry_run_shows_the_whole_plan_and_writes_nothing(lab: Lab, recover: Recover) -> None:
    before = (host_files(lab), what_a_person_set(lab))
    run = recover("--check", "--diff")
    assert run.rc == 0, run.output
    assert (host_files(lab), what_a_person_set(lab)) == before
    whats = {change["what"] for change in run.node["changes"]}
    assert {"cordon", "hold", "next_entry"} <= whats
    assert any("/trainer" in pod for pod in run.node["pods_evicted"])


def test_a_cordon_placed_by_somebody_else_survives_a_recovery_that_accepts_it_and_undo_gives_back_the_rest(lab: Lab, recover: Recover, tmp_path: Path) -> None:
    lab.kubectl("cordon", NODE)
    # As from a survey: every variable is a string.
    answers = survey(**recovery_variables(lab.older_kernel), gpunode_accept_cordon=True, gpunode_report_dir=str(tmp_path / "reports"))
    run = recover(**answers)
    assert run.rc == 0, run.output
    assert running_kernel(lab) == lab.older_kernel
    assert node_object(lab)["spec"]["unschedulable"] is True
    assert default_is(lab, lab.older_kernel)
    assert f"linux-image-{lab.older_kernel}" in held(lab)
    assert lab.ssh("systemctl show --property=RuntimeWatchdogUSec --value").stdout.strip() == "3min"

    before = (host_files(lab), what_a_person_set(lab))
    planned = recover("--check", "--diff", playbook="undo", **answers)
    assert planned.rc == 0, planned.output
    assert {change["what"] for change in planned.node["changes"]} >= {"hold", "file"}
    assert (host_files(lab), what_a_person_set(lab)) == before

    undone = recover(playbook="undo", **answers)
    assert undone.rc == 0, undone.output
    assert_given_back(lab)
    assert node_object(lab)["spec"]["unschedulable"] is True
    again = recover(playbook="undo")
    assert (again.rc, again.changed) == (0, 0), again.output


@pytest.mark.sample(0)  # in `make test-full`
def test_a_host_outside_kubernetes_is_recovered_between_the_users_own_drain_and_undrain(lab: Lab, recover: Recover, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\necho $1 >> {calls}\n")
    hook.chmod(0o755)
    answers = survey(
        gpunode_cluster=False,
        gpunode_supported_kernels=[lab.older_kernel],
        gpunode_drain_command=f"{hook} drain",
        gpunode_undrain_command=f"{hook} undrain",
        gpunode_report_dir=str(tmp_path / "reports"),
    )
    node = what_a_person_set(lab)
    before = boots(lab)
    run = recover(kubeconfig=lab.unreachable_kubeconfig(), **answers)
    assert run.rc == 0, run.output
    assert calls.read_text().split() == ["drain", "undrain"]
    assert running_kernel(lab) == lab.older_kernel
    assert default_is(lab, lab.older_kernel)
    assert boots(lab) == before + 1
    lab.wait_node_ready()
    assert what_a_person_set(lab) == node

    undone = recover(playbook="undo", kubeconfig=lab.unreachable_kubeconfig(), **answers)
    assert undone.rc == 0, undone.output
    assert_given_back(lab)


KILL_POINTS = {
    "after the drain": "TASK [gpunode.hygiene.kernel_pin : Pin the kernel]",
    "after the pin": "TASK [gpunode.hygiene.boot_kernel : Set what boots next]",
    "after the one-shot entry": "TASK [gpunode.hygiene.verified_reboot : Reboot and wait]",
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("point", [*KILL_POINTS, "right after the reboot"])
def test_a_run_killed_anywhere_finishes_when_started_again_with_one_reboot_in_all(lab: Lab, recover: Recover, point: str) -> None:
    before = boots(lab)
    # The tasks are seen twice: first in the rehearsal.
    seen = {"count": 0}
    wanted = 1 if "entry" in point or "reboot" in point else 2

    def reached(line: str) -> bool:
        seen["count"] += line.startswith(KILL_POINTS.get(point, KILL_POINTS["after the one-shot entry"]))
        if seen["count"] < wanted:
            return False
        if point == "right after the reboot":
            lab.wait_until_it_goes_down()
        return True

    killed = recover(kill_when=reached)
    assert killed.rc == -9
    lab.wait_ssh()
    run = recover()
    assert run.rc == 0, run.output
    assert running_kernel(lab) == lab.older_kernel
    assert boots(lab) == before + 1
    assert node_object(lab)["spec"].get("unschedulable") is None
