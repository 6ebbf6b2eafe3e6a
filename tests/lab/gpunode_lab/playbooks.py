# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a playbook of the collection against a lab, as its user would: plain `ansible-playbook` over ssh."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .cache import cache_root, key

REPOSITORY = Path(__file__).resolve().parents[3]
_RECAP = re.compile(r"^(?P<host>\S+)\s+: ok=\d+\s+changed=(?P<changed>\d+)\s+unreachable=(?P<unreachable>\d+)\s+failed=(?P<failed>\d+)", re.MULTILINE)


@dataclass(frozen=True)
class PlaybookRun:
    """How a playbook ended. `rc` is negative when it was killed."""

    rc: int
    output: str
    report_dir: Path

    @property
    def changed(self) -> int:
        """The recap's `changed=` over all hosts."""
        return sum(int(found["changed"]) for found in _RECAP.finditer(self.output))

    @property
    def report(self) -> dict[str, Any]:
        """The newest JSON report."""
        newest = max(self.report_dir.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        report: dict[str, Any] = json.loads(newest.read_text())
        return report

    @property
    def node(self) -> dict[str, Any]:
        """The only node of the newest report."""
        [node] = self.report["nodes"]
        found: dict[str, Any] = node
        return found


def recovery_variables(supported_kernel: str) -> dict[str, Any]:
    """What the lab's owner tells the recovery: the kernel that the drivers support, and that these workloads may lose their data."""
    return {
        "gpunode_supported_kernels": [supported_kernel],
        "gpunode_expected_gpus": 1,  # the machine has no NVIDIA device on its PCI bus to count
        "gpunode_delete_emptydir_data": True,
        "gpunode_force": True,
        "gpunode_image_insecure": True,  # the lab's registry speaks plain HTTP on loopback
    }


def survey(**answers: Any) -> dict[str, str]:
    """Every variable of the playbooks as AWX sends it: as a string, the default where there is no answer."""
    variables: dict[str, dict[str, Any]] = yaml.safe_load((REPOSITORY / "docs" / "variables.yml").read_text("utf-8"))
    return {name: _typed(answers.get(name, variable["default"])) for name, variable in variables.items()}


def _typed(value: Any) -> str:
    """What a person types into a survey for a value."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)


def environment(kubeconfig: Path) -> dict[str, str]:
    """What a user has in the environment: the cluster, and a collections path with this checkout as gpunode.hygiene."""
    return {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),
        "ANSIBLE_COLLECTIONS_PATH": str(collections_path()),
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_PIPELINING": "1",  # each file copied by ssh costs the emulated node a second
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "PYTHONUNBUFFERED": "1",
    }


def collections_path() -> Path:
    """A folder in which `ansible_collections/gpunode/hygiene` is this checkout; one for each, so that two clones do not fight."""
    path = cache_root() / "collections" / key(str(REPOSITORY))
    link = path / "ansible_collections" / "gpunode" / "hygiene"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.exists():
        link.symlink_to(REPOSITORY)
    return path


def run_playbook(
    name: str,
    inventory: Path,
    kubeconfig: Path,
    report_dir: Path,
    variables: Mapping[str, Any],
    *arguments: str,
    kill_when: Callable[[str], bool] | None = None,
    echo: bool = False,
) -> PlaybookRun:
    """Run `gpunode.hygiene.<name>`.

    :param variables: extra variables, handed over as JSON.
    :param arguments: further ansible-playbook options, `--check` for example.
    :param kill_when: called with every line of output; once it is true, the run and its forks get SIGKILL.
    :param echo: print the output as it comes.
    """
    report_dir.mkdir(parents=True, exist_ok=True)
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        f"gpunode.hygiene.{name}",
        "-i",
        str(inventory),
        "-e",
        json.dumps({"gpunode_report_dir": str(report_dir), **variables}),
        *arguments,
    ]
    lines = []
    with subprocess.Popen(
        command, env=environment(kubeconfig), cwd=report_dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if echo:
                print(line, end="", flush=True)
            if kill_when and kill_when(line):
                os.killpg(process.pid, signal.SIGKILL)
                kill_when = None
    return PlaybookRun(process.returncode, "".join(lines), report_dir)
