# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shell that every host module shares: arguments in, one answer out."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable

from ansible.module_utils.basic import AnsibleModule

from .._model import Change, HygieneError


@dataclass(frozen=True)
class Answer:
    """What a changing module found and did; `changed` follows from `before` and `after`."""

    msg: str
    before: dict[str, Any]
    after: dict[str, Any]
    plan: Iterable[Change] = ()
    diff: Any = None
    extra: dict[str, Any] = field(default_factory=dict)


def serve(argument_spec: dict[str, Any], work: Callable[[dict[str, Any], bool], Answer], **options: Any) -> None:
    """Run a changing module: `work(parameters, check_mode)` gives the answer or raises HygieneError."""
    module = AnsibleModule(argument_spec=argument_spec, supports_check_mode=True, **options)
    try:
        need_root()
        answer = work(module.params, module.check_mode)
    except HygieneError as error:
        fail(module, error)
        return
    module.exit_json(
        changed=answer.before != answer.after,
        msg=answer.msg,
        before=answer.before,
        after=answer.after,
        plan=[change.as_dict() for change in answer.plan],
        diff=answer.diff if answer.diff is not None else {"before": answer.before, "after": answer.after},
        **answer.extra,
    )


def fail(module: AnsibleModule, error: HygieneError) -> None:
    """End a module with a refusal that a person can act on."""
    module.fail_json(msg=str(error), seen=error.seen, why=error.why, remedy=error.remedy, **error.facts)


def need_root() -> None:
    """:raises HygieneError: when the module does not run as root."""
    if os.geteuid() != 0:
        raise HygieneError(
            f"The module runs as user id {os.geteuid()}",
            "Kernel packages, GRUB and other users' processes can only be read and changed by root",
            "Run the task with `become: true`",
        )
