# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both actions as users run them: by ansible-playbook, on a host that is never connected to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import ledger
from cluster_world import Cluster
from gpunode_lab.controlplane import ControlPlane

REPOSITORY = Path(__file__).parents[3]
ADDED_BY_ANSIBLE = {"action", "changed", "msg", "diff", "failed", "warnings", "invocation", "attempts", "exception"}


def command(folder: Path, tasks: list[dict[str, Any]], *options: str) -> list[str]:
    """An ansible-playbook command line. The host cannot be reached: whatever works there, works on the controller."""
    playbook = folder / "play.yml"
    playbook.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": tasks}], sort_keys=False), "utf-8")
    program = Path(sys.executable).with_name("ansible-playbook")
    return [str(program), "-i", "gpu-host.invalid,", str(playbook), *options]


def environment(control_plane: ControlPlane, **more: str) -> dict[str, str]:
    return {**os.environ, "K8S_AUTH_KUBECONFIG": str(control_plane.kubeconfig), **more}


def play(folder: Path, control_plane: ControlPlane, tasks: list[dict[str, Any]], *options: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and each task's result."""
    results = folder / "results"
    results.write_text("", "utf-8")
    watched = environment(
        control_plane, TASK_RESULTS=str(results), ANSIBLE_CALLBACKS_ENABLED="task_results",
        ANSIBLE_CALLBACK_PLUGINS=str(Path(__file__).parent / "callback_plugins"),
    )
    answer = subprocess.run(command(folder, tasks, *options), env=watched, capture_output=True, text=True, check=False, timeout=120)
    found = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    assert found, answer.stdout + answer.stderr
    return answer.returncode, found


def drain(node: str, **options: Any) -> dict[str, Any]:
    return {"gpunode.hygiene.node_drain": {"name": node, **options}}


def returned(module: str) -> set[str]:
    """The top-level keys that a module's RETURN documents."""
    text = (REPOSITORY / "plugins" / "modules" / f"{module}.py").read_text("utf-8")
    documented: dict[str, Any] = yaml.safe_load(text.partition('RETURN = r"""')[2].partition('"""')[0])
    return set(documented)


def ours(result: dict[str, Any]) -> set[str]:
    """The keys of a result without those that Ansible adds or documents itself."""
    return {key for key in result if not key.startswith("_")} - ADDED_BY_ANSIBLE


def test_a_node_is_drained_and_given_back_by_one_playbook(cluster: Cluster, control_plane: ControlPlane, tmp_path: Path) -> None:
    node = cluster.add_node(labels={"eks.amazonaws.com/nodegroup": "gpus"})
    cluster.owned("work", node)
    code, (cordoned, drained, again, back) = play(tmp_path, control_plane, [
        drain(node, state="cordoned", protect=True), drain(node, protect="yes", timeout="60"), drain(node), drain(node, state="uncordoned"),
    ])
    assert code == 0
    assert [result["changed"] for result in (cordoned, drained, again, back)] == [True, True, False, True]
    # Run ids were made up for each task, but the process is the same: it goes on under its first one.
    assert {result["run"] for result in (cordoned, drained, again, back)} == {cordoned["run"]}
    assert [pod["name"] for pod in drained["pods"]] == ["work"]
    assert drained["warnings"] == [f"Node {node} belongs to EKS (turn the node group's auto-repair off); it may be rebooted or replaced while it is not Ready."]
    assert back["schedulable"] is True
    assert ours(drained) <= returned("node_drain")


def test_check_mode_shows_the_plan_and_writes_nothing(cluster: Cluster, control_plane: ControlPlane, tmp_path: Path) -> None:
    node = cluster.add_node()
    cluster.owned("work", node)
    before = cluster.node(node)
    code, (drained, back) = play(tmp_path, control_plane, [drain(node), drain(node, state="uncordoned")], "--check", "--diff")
    assert (code, drained["changed"], back["changed"]) == (0, True, False)
    assert drained["diff"]["before"]["pods"] == [f"{cluster.namespace}/work"]
    assert drained["diff"]["after"]["unschedulable"] is True
    assert [(change["what"], change["where"]) for change in drained["plan"]] == [
        ("cordon", node), ("annotation", f"{node} {ledger.CLAIM}"), ("pod", f"{cluster.namespace}/work"),
    ]
    assert cluster.node(node) == before
    assert cluster.pods_on(node) == ["work"]


def test_a_refusal_says_what_was_seen_why_and_what_to_do(cluster: Cluster, control_plane: ControlPlane, tmp_path: Path) -> None:
    node = cluster.add_node()
    cluster.pod("bare", node)
    code, (result,) = play(tmp_path, control_plane, [drain(node)])
    assert (code, result["failed"], result["changed"]) == (2, True, False)
    assert result["seen"].endswith(f"{cluster.namespace}/bare: it has no controller; nothing makes it again (option force)")
    assert result["msg"].startswith(result["seen"])
    assert "gpunode_force=true" in result["remedy"]
    assert ours(result) <= returned("node_drain")


def test_async_is_refused_with_what_to_do_instead(cluster: Cluster, control_plane: ControlPlane, tmp_path: Path) -> None:
    node = cluster.add_node()
    _code, (result,) = play(tmp_path, control_plane, [{**drain(node), "async": 60, "poll": 5}])
    assert result["failed"] is True
    assert "Remove `async` and `poll`; the option `timeout` bounds the time." in result["msg"]


def test_a_killed_playbook_is_resumed_by_the_next_one(cluster: Cluster, control_plane: ControlPlane, tmp_path: Path) -> None:
    node = cluster.add_node()
    cluster.owned("slow", node, grace=100)
    tasks = [drain(node, procedure="recover", protect=True)]
    with subprocess.Popen(command(tmp_path, tasks), env=environment(control_plane), stdout=subprocess.DEVNULL, start_new_session=True) as process:
        cluster.until(lambda: "deletionTimestamp" in cluster.get_pod("slow")["metadata"], "the eviction")
        claim = ledger.read(cluster.node(node))
        assert claim is not None
        assert claim.pid == process.pid
        code, (result,) = play(tmp_path, control_plane, tasks)
        assert (code, result["failed"]) == (2, True)
        assert f"process {process.pid} on " in result["seen"]
        os.killpg(process.pid, signal.SIGKILL)
    cluster.kubectl("delete", "pod", "slow", "-n", cluster.namespace, "--force", "--grace-period=0")
    code, (drained, back) = play(tmp_path, control_plane, [*tasks, drain(node, state="uncordoned", procedure="recover")])
    assert (code, drained["run"], drained["adopted"], back["schedulable"]) == (0, claim.run, True, True)
    assert [key for key in cluster.node(node)["metadata"]["annotations"] if key != "node.alpha.kubernetes.io/ttl"] == []


def test_progress_is_shown_while_it_drains(cluster: Cluster, control_plane: ControlPlane, tmp_path: Path) -> None:
    node = cluster.add_node()
    cluster.owned("slow", node, grace=2)
    started = time.monotonic()
    answer = subprocess.run(
        command(tmp_path, [drain(node)]), env=environment(control_plane), capture_output=True, text=True,
        check=False, timeout=120,
    )
    assert time.monotonic() - started >= 2.0
    assert answer.stdout.count(f"{node}: 1 pods left") == 1


def test_the_cluster_is_read_and_the_host_found_in_it(cluster: Cluster, control_plane: ControlPlane, tmp_path: Path) -> None:
    node = cluster.add_node(gpus=2)
    info = cluster.node(node)["status"]["nodeInfo"]
    ask = {"match_machine_id": info["machineID"], "match_system_uuid": info["systemUUID"], "match_boot_id": info["bootID"]}
    module = "gpunode.hygiene.gpu_cluster_info"
    code, (found, none) = play(tmp_path, control_plane, [{module: ask}, {module: {**ask, "node": "elsewhere"}, "ignore_errors": True}])
    assert (code, found["changed"], found["matched"]) == (0, False, node)
    assert found["gpu_cluster"]["nodes"][node]["gpu_allocatable"] == 2
    assert f"Node elsewhere was named, but this host (machine id {info['machineID']}" in none["seen"]
    assert [candidate["name"] for candidate in none["candidates"]] == [node]
    assert ours(found) | ours(none) <= returned("gpu_cluster_info")


def test_the_filters_read_what_the_action_returned(cluster: Cluster, control_plane: ControlPlane, tmp_path: Path) -> None:
    node = cluster.add_node()
    code, results = play(tmp_path, control_plane, [
        {"gpunode.hygiene.gpu_cluster_info": {"nodes": [node]}, "register": "fleet"},
        {"ansible.builtin.debug": {"msg": "{{ fleet.gpu_cluster | gpunode.hygiene.expected_images('" + node + "', '6.1.0-1-amd64') }}"}},
        {"ansible.builtin.debug": {"msg": "{{ (fleet.gpu_cluster | gpunode.hygiene.node_slice('" + node + "')).name }}"}},
    ])
    assert (code, results[1]["msg"], results[2]["msg"]) == (0, [], node)
