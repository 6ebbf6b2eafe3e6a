# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters as a playbook uses them: on Ansible's own lazy and tagged values, and with its own error messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info.gather import Want, gather
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.engine import diagnose
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.load import load_rules
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._report.render import text
from ansible_collections.gpunode.hygiene.tests.unit.plugins.plugin_utils._diagnosis.evidence import (
    HEADERS_LOG,
    NEW,
    OLD,
    Objects,
    crashing,
    driver_pod,
    incident,
    node_object,
    policy,
)

OWN_RULE = {
    "id": "own-old-driver",
    "severity": "info",
    "summary": "Driver image {image}.",
    "facts": {"image": "derived.driver.images[0]"},
    "signs": [{"path": "derived.driver.images", "op": "matches", "value": ":580"}],
    "remedy": {"kind": "manual", "name": "Nothing."},
}
SCHEMA = json.loads((Path(__file__).parents[3] / "docs/report.schema.json").read_text(encoding="utf-8"))


def play(folder: Path, tasks: list[dict[str, Any]], variables: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run tasks on localhost; `result` ends up in result.json when a task sets it."""
    write = {"ansible.builtin.copy": {"content": "{{ result | to_json }}", "dest": str(folder / "result.json")}}
    names = {"ansible_python_interpreter": "{{ ansible_playbook_python }}", **variables}
    playbook = folder / "play.yml"
    playbook.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "vars": names, "tasks": [*tasks, write]}]), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", "-c", "local", str(playbook)]
    return subprocess.run(command, env=os.environ | {"HOME": str(folder)}, capture_output=True, text=True, timeout=120, check=False)


def result_of(folder: Path, tasks: list[dict[str, Any]], variables: dict[str, Any]) -> Any:
    done = play(folder, tasks, variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))


def cluster_evidence() -> dict[str, Any]:
    objects = {
        "Node": [node_object(kernel=NEW, version_id="26.04", gpus="0")],
        "Pod": [driver_pod([crashing()])],
        "ClusterPolicy": [policy("580", usePrecompiled=True)],
    }
    logs = {("nvidia-driver-ctr", previous): HEADERS_LOG for previous in (False, True)}
    return gather(Objects(objects, logs), Want()).evidence


def test_a_playbook_finds_the_incident_in_templated_evidence(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/own.yml").write_text(yaml.safe_dump(OWN_RULE))
    evidence = incident()
    variables = {
        "running": NEW,
        "cluster_evidence": cluster_evidence(),
        "evidence": evidence
        | {
            "host": evidence["host"] | {"kernel": evidence["host"]["kernel"] | {"running": "{{ running ~ '' }}"}},
            "cluster": "{{ cluster_evidence | gpunode.hygiene.node_slice('gpu-1') }}",
            "policy": {"supported_kernels": "{{ ['6.8.0-*-generic'] }}"},
        },
    }
    tasks: list[dict[str, Any]] = [
        {"ansible.builtin.set_fact": {"found": f"{{{{ evidence | gpunode.hygiene.diagnose(rules_dirs=['{tmp_path}/rules']) }}}}"}},
        {
            "ansible.builtin.set_fact": {
                "result": {
                    "found": "{{ found }}",
                    "act_on": "{{ found | gpunode.hygiene.of_procedure('recover_kernel_mismatch') | map(attribute='id') }}",
                    "next": f"{{{{ cluster_evidence | gpunode.hygiene.expected_images('gpu-1', '{OLD}') }}}}",
                    "now": "{{ cluster_evidence | gpunode.hygiene.expected_images('gpu-1') }}",
                }
            }
        },
    ]
    result = result_of(tmp_path, tasks, variables)
    expected = diagnose(incident(), load_rules([tmp_path / "rules"]))
    assert [finding["id"] for finding in result["found"]] == [finding.id for finding in expected]
    assert {finding["id"]: finding["summary"] for finding in result["found"]} == {finding.id: finding.summary for finding in expected}
    assert "own-old-driver" in {finding.id for finding in expected}
    assert result["act_on"] == ["kernel-headers-unavailable"]
    assert result["next"] == [{"role": "driver", "reference": f"nvcr.io/nvidia/driver:580-{OLD}-ubuntu26.04"}]
    assert result["now"] == [{"role": "driver", "reference": f"nvcr.io/nvidia/driver:580-{NEW}-ubuntu26.04"}]


def test_a_playbook_s_report_keeps_to_the_schema(tmp_path: Path) -> None:
    report = {
        "schema_version": 1,
        "run": "adhoc-1",
        "procedure": "recover_kernel_mismatch",
        "started": "2026-10-01T12:00:00Z",
        "finished": "2026-10-01T12:10:00Z",
        "verdict": "failed",
        "nodes": [
            {
                "node": "gpu-1",
                "host": "gpu-1",
                "findings": "{{ {'node': 'gpu-1'} | gpunode.hygiene.diagnose }}",
                "steps": "{{ [{'name': 'drain', 'at': 1790000000}] | gpunode.hygiene.report_steps(1790000005.5, failure='a budget blocks') }}",
                "changes": [],
                "kernel": {"before": OLD, "after": None},
                "reboots": 0,
                "gpu_capacity": {"before": 8, "after": None},
                "pods_evicted": [],
                "not_covered": [],
                "undo": "",
            }
        ],
    }
    tasks = [{"ansible.builtin.set_fact": {"result": {"report": "{{ report }}", "text": "{{ report | gpunode.hygiene.report_text }}"}}}]
    result = result_of(tmp_path, tasks, {"report": report})
    jsonschema.validate(result["report"], SCHEMA)
    assert result["report"]["nodes"][0]["steps"][0] | {"started": ""} == {
        "name": "drain", "started": "", "seconds": 5.5, "result": "failed", "msg": "a budget blocks",
    }  # fmt: skip
    assert result["text"] == text(result["report"])


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("{'host': {}} | gpunode.hygiene.diagnose", "A finding must say which node it is about"),
        ("{'node': 'n'} | gpunode.hygiene.diagnose(rules_dirs=['/nowhere'])", "The rules folder /nowhere is not a directory"),
        ("[] | gpunode.hygiene.of_procedure('x', confidence='sure')", "Findings are certain or possible"),
        ("{'nodes': {}} | gpunode.hygiene.node_slice('gpu-9')", "The evidence has no Node gpu-9"),
        ("{'nodes': {}} | gpunode.hygiene.expected_images('gpu-9')", "The evidence has no Node gpu-9"),
        ("{} | gpunode.hygiene.report_text", "The report has schema_version None"),
        ("[{}] | gpunode.hygiene.report_steps(1)", "Give each mark a name and a time"),
    ],
)
def test_an_error_says_what_to_do(tmp_path: Path, expression: str, said: str) -> None:
    done = play(tmp_path, [{"ansible.builtin.set_fact": {"result": f"{{{{ {expression} }}}}"}}], {})
    assert done.returncode == 2
    assert said in done.stdout.replace("\\'", "'")


def test_images_that_cannot_be_told_stop_the_play_with_the_reason(tmp_path: Path) -> None:
    evidence = cluster_evidence()
    evidence["nodes"]["gpu-1"]["labels"] = {"nvidia.com/gpu.present": "true"}
    done = play(tmp_path, [{"ansible.builtin.set_fact": {"result": "{{ evidence | gpunode.hygiene.expected_images('gpu-1') }}"}}], {"evidence": evidence})
    assert done.returncode == 2
    assert "The driver images for Node gpu-1 cannot be told: the node has no labels" in done.stdout
