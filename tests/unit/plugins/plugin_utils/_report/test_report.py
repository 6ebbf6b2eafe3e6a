# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports: steps from marks, the text, and the schema that both sides agree on."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import Change, HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.engine import diagnose
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.load import load_rules
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._report.render import duration, text
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._report.steps import steps
from ansible_collections.gpunode.hygiene.tests.unit.plugins.plugin_utils._diagnosis.evidence import incident

SCHEMA = json.loads((Path(__file__).parents[5] / "docs/report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
MARKS = [{"name": "preflight", "at": 1790000000.25}, {"name": "drain", "at": 1790000001.5}, {"name": "boot", "at": 1790000063}]


def report() -> dict[str, Any]:
    """A run that was carried out."""
    return {
        "schema_version": 1,
        "run": "20260921T133320Z-3f2a1c",
        "procedure": "recover_kernel_mismatch",
        "started": "2026-09-21T13:33:20Z",
        "finished": "2026-09-21T13:47:51Z",
        "verdict": "done",
        "nodes": [
            {
                "node": "gpu-1",
                "host": "gpu-1.example.com",
                "findings": [finding.as_dict() for finding in diagnose(incident(), load_rules()) if finding.severity == "critical"],
                "steps": steps(MARKS, 1790000871),
                "changes": [
                    Change("hold", "linux-generic", "install", "hold", "apt-mark unhold linux-generic").as_dict(),
                    Change("file", "/etc/default/grub.d/zz-gpunode-hygiene.cfg", None, "GRUB_DEFAULT=x\nGRUB_SAVEDEFAULT=false\n", "rm").as_dict(),
                ],
                "kernel": {"before": "7.0.0-15-generic", "after": "6.8.0-117-generic"},
                "reboots": 1,
                "gpu_capacity": {"before": 0, "after": 8},
                "pods_evicted": ["ml/trainer-0"],
                "not_covered": ["A hard hang of the trial boot: the host has no watchdog."],
                "undo": "ansible-playbook gpunode.hygiene.undo -l gpu-1.example.com -e gpunode_run=20260921T133320Z-3f2a1c",
            }
        ],
    }


TEXT = """\
# recover_kernel_mismatch: done

Run 20260921T133320Z-3f2a1c, 2026-09-21T13:33:20Z to 2026-09-21T13:47:51Z (14 min 31 s)

## gpu-1 (host gpu-1.example.com)

- kernel: 7.0.0-15-generic -> 6.8.0-117-generic
- GPUs: 0 -> 8
- reboots: 1

### Found

- critical, certain: **gpu-capacity-zero** The node has NVIDIA GPUs, but Kubernetes can allocate none of them (nvidia.com/gpu: 0).
- critical, certain: **kernel-headers-unavailable** The driver container finds no headers for kernel 7.0.0-15-generic in its archive and cannot build \
the driver (76 restarts).

### Steps

- preflight: ok in 1.2 s
- drain: ok in 1 min 2 s
- boot: ok in 13 min 28 s

### Changed

- hold linux-generic: install -> hold
- file /etc/default/grub.d/zz-gpunode-hygiene.cfg: none -> GRUB_DEFAULT=x...

### Evicted

- ml/trainer-0

### Not covered

- A hard hang of the trial boot: the host has no watchdog.

### Undo

- `ansible-playbook gpunode.hygiene.undo -l gpu-1.example.com -e gpunode_run=20260921T133320Z-3f2a1c`
"""


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_report_keeps_to_the_schema_and_reads_well() -> None:
    VALIDATOR.validate(report())
    assert text(report()) == TEXT


def test_nothing_done_and_nothing_found_is_said() -> None:
    quiet = report() | {"verdict": "nothing_to_do"}
    quiet["nodes"][0] |= {"findings": [], "changes": [], "pods_evicted": [], "not_covered": [], "undo": "", "host": "gpu-1", "reboots": 0}
    quiet["nodes"][0] |= {"kernel": {"before": "6.8.0-117-generic", "after": "6.8.0-117-generic"}, "gpu_capacity": {"before": None, "after": None}}
    VALIDATOR.validate(quiet)
    lines = text(quiet).splitlines()
    assert lines[0] == "# recover_kernel_mismatch: nothing to do"
    assert lines[4:13] == ["## gpu-1", "", "- kernel: 6.8.0-117-generic", "- GPUs: none", "- reboots: 0", "", "### Found", "", "- nothing"]
    assert lines[-3:] == ["### Changed", "", "- nothing"]


def test_a_plan_does_not_claim_to_be_done() -> None:
    plan = text(report() | {"verdict": "planned"})
    assert plan.startswith("# recover_kernel_mismatch: planned, nothing changed\n")
    assert "### Would be changed\n" in plan
    assert "### Would be evicted\n" in plan


def test_a_failed_step_says_why() -> None:
    failed = report() | {"verdict": "failed"}
    failed["nodes"][0]["steps"] = steps(MARKS, 1790000064, "The host did not come back.")
    VALIDATOR.validate(failed)
    assert "- drain: ok in 1 min 2 s\n- boot: failed in 1.0 s: The host did not come back.\n" in text(failed)


def test_what_is_missing_is_named_beside_a_possible_finding() -> None:
    doubtful = report()
    doubtful["nodes"][0]["findings"] = [doubtful["nodes"][0]["findings"][1] | {"confidence": "possible", "missing": ["the log", "the kernel"]}]
    assert "(76 restarts). To be certain, collect: the log, the kernel.\n" in text(doubtful)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema_version",), 2), (("verdict",), "ok"), (("run",), "../x"), (("started",), "yesterday"), (("extra",), 1),
        (("nodes", 0, "reboots"), -1), (("nodes", 0, "kernel"), {"before": "x"}), (("nodes", 0, "pods_evicted"), ["trainer"]),
        (("nodes", 0, "findings", 0, "severity"), "fatal"), (("nodes", 0, "changes", 0, "more"), 1), (("nodes", 0, "steps", 0, "result"), "skipped"),
    ],
)  # fmt: skip
def test_the_schema_refuses(path: tuple[Any, ...], value: Any) -> None:
    broken = copy.deepcopy(report())
    part: Any = broken
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    assert not VALIDATOR.is_valid(broken)


def test_another_version_and_a_report_with_gaps_are_refused() -> None:
    with pytest.raises(HygieneError, match="The report has schema_version 2"):
        text(report() | {"schema_version": 2})
    for gap in ("nodes", "verdict", "started"):
        with pytest.raises(HygieneError, match="A text with gaps would hide what happened"):
            text({key: value for key, value in report().items() if key != gap})


def test_steps_last_until_the_next_one() -> None:
    assert steps(MARKS, 1790000871) == [
        {"name": "preflight", "started": "2026-09-21T14:13:20Z", "seconds": 1.2, "result": "ok", "msg": ""},
        {"name": "drain", "started": "2026-09-21T14:13:21Z", "seconds": 61.5, "result": "ok", "msg": ""},
        {"name": "boot", "started": "2026-09-21T14:14:23Z", "seconds": 808.0, "result": "ok", "msg": ""},
    ]
    assert steps([], 0) == []
    assert [step["seconds"] for step in steps(MARKS, 0)] == [1.2, 61.5, 0.0]
    with pytest.raises(HygieneError, match="Give each mark a name and a time"):
        steps([{"name": "x"}], 0)


@pytest.mark.parametrize(("seconds", "expected"), [(0, "0.0 s"), (59.94, "59.9 s"), (60, "1 min 0 s"), (119.6, "2 min 0 s"), (3661, "1 h 1 min 1 s")])
def test_durations(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected
