# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shell that every controller-side action shares: arguments in, one answer out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

from ansible.plugins.action import ActionBase
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import client, options


class ControllerAction(ActionBase):
    """An action that works on the controller alone; subclasses set `ARGUMENTS` and write `work`.

    :cvar ARGUMENTS: the argument spec.
    :cvar CONSTRAINTS: `mutually_exclusive`, `required_if` and so on.
    """

    ARGUMENTS: ClassVar[dict[str, Any]] = {}
    CONSTRAINTS: ClassVar[dict[str, Any]] = {}
    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = True  # refused below, with what to do instead

    def work(self, arguments: dict[str, Any], check_mode: bool, /) -> dict[str, Any]:
        """The result's keys. :raises HygieneError: a refusal or failure."""
        raise NotImplementedError

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Validate, work, answer."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        try:
            self._refuse_async()
            _validation, arguments = self.validate_argument_spec(argument_spec=self.ARGUMENTS, **self.CONSTRAINTS)
            result.update(self.work(arguments, bool(self._task.check_mode)))
        except HygieneError as error:
            result.update(failed=True, changed=False, msg=str(error), seen=error.seen, why=error.why, remedy=error.remedy, **error.facts)
        return result

    def _refuse_async(self) -> None:
        if self._task.async_val:
            raise HygieneError(
                seen=f"The task {self._task.action} has `async: {self._task.async_val}`",
                why="It works on the controller and shows its progress, which a background job cannot",
                remedy="Remove `async` and `poll`; the option `timeout` bounds the time",
            )


def connect(arguments: dict[str, Any]) -> client.Api:
    """The API server that the connection options name. :raises HygieneError: see `client.connect`."""
    return client.connect(options.resolve(arguments, os.environ, Path.home()))
