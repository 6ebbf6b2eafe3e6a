# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes each task's result as one line of JSON to the file in TASK_RESULTS (ansible-core has no such callback of its own)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible.parsing.ajson import AnsibleJSONEncoder
from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    """The callback."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "task_results"

    def _write(self, result: Any, failed: bool) -> None:
        with Path(os.environ["TASK_RESULTS"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps({**result._result, "failed": failed}, cls=AnsibleJSONEncoder) + "\n")

    def v2_runner_on_ok(self, result: Any) -> None:
        """A task that went well."""
        self._write(result, failed=False)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A task that failed."""
        self._write(result, failed=True)
