# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from ansible.utils.display import Display
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import RUN_ID, HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.action import ControllerAction, connect
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.drain.filters import Rules
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.ledger import Seeker
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.maintain import Maintenance, Wish
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.options import CONNECTION_SPEC
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.process import this_owner
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.progress import Progress

SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class ActionModule(ControllerAction):
    """Cordon, drain or give back a node; documented in plugins/modules/node_drain.py."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["cordoned", "drained", "uncordoned"], "default": "drained"},
        "run": {"type": "str"},
        "procedure": {"type": "str", "default": "adhoc"},
        "timeout": {"type": "int", "default": 1800},
        "grace_period": {"type": "int", "default": -1},
        "delete_emptydir_data": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
        "pod_selector": {"type": "str", "default": ""},
        "skip_wait_for_delete_timeout": {"type": "int", "default": 0},
        "claim_ttl": {"type": "int", "default": 30},
        "take_over": {"type": "bool", "default": False},
        "protect": {"type": "bool", "default": False},
        "expect_kernel": {"type": "str", "default": ""},
        "expect_boot_id": {"type": "str", "default": ""},
        **CONNECTION_SPEC,
    }

    def work(self, arguments: dict[str, Any], check_mode: bool) -> dict[str, Any]:
        """See `ControllerAction.work`."""
        display = Display()
        seeker = Seeker(
            run=_run(arguments["run"]),
            procedure=arguments["procedure"],
            owner=this_owner(),
            ttl=timedelta(minutes=arguments["claim_ttl"]),
            take_over=arguments["take_over"],
        )
        wish = Wish(
            node=arguments["name"],
            seeker=seeker,
            timeout=float(arguments["timeout"]),
            grace_period=None if arguments["grace_period"] < 0 else arguments["grace_period"],
            rules=Rules(arguments["force"], arguments["delete_emptydir_data"], arguments["skip_wait_for_delete_timeout"]),
            pod_selector=arguments["pod_selector"],
            protect=arguments["protect"],
            expect_kernel=arguments["expect_kernel"] or "",
            expect_boot_id=arguments["expect_boot_id"] or "",
            own_pod=_own_pod(os.environ),
            check_mode=check_mode,
        )
        maintenance = Maintenance(connect(arguments), wish, Progress(display.display))
        act = {"cordoned": maintenance.cordoned, "drained": maintenance.drained, "uncordoned": maintenance.uncordoned}[arguments["state"]]
        outturn = act()
        answer = outturn.answer(seeker)
        if wish.protect and arguments["state"] != "uncordoned":
            answer["warnings"] = maintenance.warnings()
        return answer


def _run(given: str | None) -> str:
    if not given:
        return f"adhoc-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    if not RUN_ID.match(given):
        raise HygieneError(
            seen=f"run is {given!r}", why="A run id names folders and records", remedy="Use up to 64 letters, digits, dots, dashes and underscores",
        )
    return given


def _own_pod(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """(namespace, name) of the pod in which Ansible runs (AWX), or None outside a cluster."""
    if "KUBERNETES_SERVICE_HOST" not in environment or not SERVICE_ACCOUNT_NAMESPACE.exists():
        return None
    return SERVICE_ACCOUNT_NAMESPACE.read_text("utf-8").strip(), environment.get("HOSTNAME", "")
