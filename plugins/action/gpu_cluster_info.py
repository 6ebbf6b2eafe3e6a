# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.action import ControllerAction, connect
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info.gather import PARTS, Want, gather
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info.source import Folder, Server, Source
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.node_match import Identity, match
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.options import CONNECTION_SPEC


class ActionModule(ControllerAction):
    """Read the cluster's GPU side; documented in plugins/modules/gpu_cluster_info.py."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "parts": {"type": "list", "elements": "str", "choices": list(PARTS), "default": list(PARTS)},
        "nodes": {"type": "list", "elements": "str", "default": []},
        "logs_of": {"type": "list", "elements": "str"},
        "log_lines": {"type": "int", "default": 40},
        "path": {"type": "path"},
        "match_machine_id": {"type": "str"},
        "match_system_uuid": {"type": "str"},
        "match_boot_id": {"type": "str"},
        "node": {"type": "str"},
        **CONNECTION_SPEC,
    }
    CONSTRAINTS: ClassVar[dict[str, Any]] = {"required_by": {name: ["match_machine_id"] for name in ("match_system_uuid", "match_boot_id", "node")}}

    def work(self, arguments: dict[str, Any], _check_mode: bool) -> dict[str, Any]:
        """See `ControllerAction.work`; nothing is ever changed."""
        source: Source = Folder(Path(arguments["path"])) if arguments["path"] else Server(connect(arguments))
        want = Want(
            parts=tuple(arguments["parts"]),
            nodes=tuple(name for name in arguments["nodes"] if name),
            logs_of=None if arguments["logs_of"] is None else tuple(arguments["logs_of"]),
            log_lines=arguments["log_lines"],
        )
        gathered = gather(source, want)
        nodes = gathered.evidence["nodes"]
        result = {"changed": False, "msg": f"Read {len(nodes)} Nodes.", "gpu_cluster": gathered.evidence}
        if arguments["match_machine_id"] is not None:
            host = Identity(arguments["match_machine_id"], arguments["match_system_uuid"] or "", arguments["match_boot_id"] or "")
            result["matched"] = match(gathered.nodes, host, arguments["node"] or "")
            result["msg"] = f"The host is Node {result['matched']}, one of {len(nodes)}."
        return result
