# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the eviction API answers, in words and decisions. Pure (registry/core/pod/storage/eviction.go, kubectl pkg/drain/drain.go)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.client import ApiError

ACCEPTED, GONE, BLOCKED, RETRY, FATAL = "accepted", "gone", "blocked", "retry", "fatal"
SEVERAL_BUDGETS = "more than one PodDisruptionBudget"
_BUDGET = re.compile(r"disruption budget (\S+)")


@dataclass(frozen=True)
class Outcome:
    """What one eviction came to.

    :ivar budget: name of the PodDisruptionBudget that refused, when the server named it.
    :ivar wait: seconds the server asks to wait before the next try; 0 when it does not say.
    """

    kind: str
    text: str = ""
    budget: str = ""
    wait: float = 0.0


def of_error(error: ApiError) -> Outcome:
    """What a refused eviction means."""
    if error.status == 404:
        return Outcome(GONE)
    if error.status == 409:
        # Either the precondition on the UID failed (another pod has the name now, ours is gone) or the object changed under the request.
        return Outcome(GONE) if "UID in the precondition" in error.message else Outcome(RETRY, error.message)
    if error.status == 429:
        causes = [cause.get("message", "") for cause in error.causes if cause.get("reason") == "DisruptionBudget"]
        if not causes and "disruption budget" not in error.message:
            return Outcome(RETRY, error.message, wait=error.retry_after or 0.0)
        text = "; ".join(cause for cause in causes if cause) or error.message
        named = _BUDGET.search(text) if causes else None
        return Outcome(BLOCKED, text, named.group(1) if named else "", error.retry_after or 0.0)
    if error.status == 403 and error.has_cause("NamespaceTerminating"):
        # The namespace controller deletes the pod; an eviction never succeeds there.
        return Outcome(RETRY, "its namespace is being deleted")
    if error.status >= 500 and SEVERAL_BUDGETS not in error.message:
        return Outcome(RETRY, error.message or f"HTTP status {error.status}", wait=error.retry_after or 0.0)
    return Outcome(FATAL, error.message or f"HTTP status {error.status}")
