# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.action import ControllerAction
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._registry.credentials import Credentials, default_config, read_config
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._registry.lookup import look_up
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._registry.transport import Transport


class ActionModule(ControllerAction):
    """Ask registries for driver images; documented in plugins/modules/driver_image_info.py."""

    ARGUMENTS: ClassVar[dict[str, Any]] = {
        "images": {"type": "list", "elements": "str", "required": True},
        "auth": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "registry": {"type": "str", "required": True},
                "username": {"type": "str", "required": True},
                "password": {"type": "str", "required": True, "no_log": True},
            },
        },
        "docker_config": {"type": "path"},
        "insecure": {"type": "bool", "default": False},
        "ca_path": {"type": "path"},
        "timeout": {"type": "float", "default": 10.0},
    }

    def work(self, arguments: dict[str, Any], _check_mode: bool) -> dict[str, Any]:
        """See `ControllerAction.work`; nothing is ever changed."""
        named = arguments["docker_config"]
        config = read_config(Path(named) if named else default_config(), needed=bool(named))
        transport = Transport(arguments["timeout"], arguments["insecure"], arguments["ca_path"] or "")
        answers = look_up(arguments["images"], transport, Credentials(arguments["auth"], config))
        states = Counter(answer.state for answer in answers)
        return {
            "changed": False,
            "msg": f"Of {len(answers)} images {states['exists']} exist, {states['missing']} are missing, {states['unknown']} cannot be told.",
            "images": [answer.as_dict() for answer in answers],
        }
