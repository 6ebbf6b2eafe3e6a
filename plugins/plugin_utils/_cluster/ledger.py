# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The claim on a node: who maintains it, and what was taken and must be given back. Pure.

It is one annotation of the Node, written in the same patch as the first change, so that it lives and dies with what it describes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import objects
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.process import Owner

CLAIM = "gpunode.hygiene/maintenance"
KEEP_CORDONED = "gpunode.hygiene/keep-cordoned"
TIME = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class Claim:
    """What the annotation says.

    :ivar started, renewed: UTC times as `2026-10-01T12:00:00Z`.
    :ivar cordoned: whether we cordoned the node; false when it was cordoned before us.
    :ivar labels, annotations: those we set, with the values found before; None for absent.
    :ivar boot_id: the node's boot id when the run started.
    """

    run: str
    procedure: str
    controller: str
    pid: int
    started: str
    renewed: str
    cordoned: bool
    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    boot_id: str = ""

    @property
    def owner(self) -> Owner:
        """The process that holds the claim."""
        return Owner(self.controller, self.pid)

    def render(self) -> str:
        """The annotation's value: compact JSON."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)


def parse(text: str, node: str) -> Claim:
    """The claim in an annotation's value.

    :raises HygieneError: it is not one; what it held can then not be given back by itself.
    """
    try:
        fields = json.loads(text)
        claim = Claim(**fields)
        _time(claim.started)
        _time(claim.renewed)
        if not isinstance(claim.pid, int) or not isinstance(claim.labels, dict) or not isinstance(claim.annotations, dict):
            raise TypeError("a field has the wrong type")
    except (ValueError, TypeError) as error:
        raise HygieneError(
            seen=f"The annotation {CLAIM} of node {node} is not a claim that this version can read ({error}): {text[:200]}",
            why="It may record a cordon and labels that have to be given back, and another run may be at work",
            remedy=f"When no other run is at work, remove it with `kubectl annotate node {node} {CLAIM}-` and start again",
        ) from error
    return claim


def read(node: objects.Object) -> Claim | None:
    """The node's claim, or None when there is none. :raises HygieneError: as `parse`."""
    text = objects.annotations_of(node).get(CLAIM)
    return None if text is None else parse(text, objects.name(node))


class Standing(Enum):
    """What a claim means to the one who asks."""

    FREE = "free"
    OURS = "ours"
    ADOPTED = "adopted"
    TAKEN_OVER = "taken over"


@dataclass(frozen=True)
class Seeker:
    """Who asks for the node: this run."""

    run: str
    procedure: str
    owner: Owner
    ttl: timedelta
    take_over: bool = False


def stand(claim: Claim | None, node: str, seeker: Seeker, alive: bool | None, now: datetime) -> Standing:
    """Whether the seeker may work under this claim.

    A claim is adopted by the same run or procedure when its process is dead or has not renewed it for `ttl`.

    :param alive: whether the claim's process still runs; None when that cannot be known from this controller.
    :raises HygieneError: someone else holds the node.
    """
    if claim is None:
        return Standing.FREE
    if claim.owner == seeker.owner:
        return Standing.OURS
    idle = max(now - _time(claim.renewed), timedelta())
    if alive:
        raise _held(claim, node, idle, "Its process is at work on this controller", f"Wait for it, or stop process {claim.pid} first")
    same = seeker.run == claim.run or seeker.procedure == claim.procedure
    orphaned = alive is False or idle > seeker.ttl
    if same and (orphaned or seeker.take_over):
        return Standing.ADOPTED
    if seeker.take_over:
        return Standing.TAKEN_OVER
    if orphaned:
        raise _held(
            claim, node, idle, f"It was left by another procedure than {seeker.procedure}, which knows how to finish it",
            f"Run {claim.procedure} again to finish it, or set `take_over: true` (`gpunode_take_over=true`)",
        )
    left = int((seeker.ttl - idle).total_seconds() // 60) + 1
    raise _held(
        claim, node, idle, "Whether that controller is still at work cannot be seen from here",
        f"Wait {left} min without a sign of it, or set `take_over: true` (`gpunode_take_over=true`) when you know that it is gone",
    )


def _held(claim: Claim, node: str, idle: timedelta, why: str, remedy: str) -> HygieneError:
    return HygieneError(
        seen=f"Node {node} is claimed by run {claim.run} of {claim.procedure} (process {claim.pid} on {claim.controller}, "
        f"since {claim.started}, last sign {int(idle.total_seconds() // 60)} min ago)",
        why=why,
        remedy=remedy,
        facts={"claim": asdict(claim)},
    )


def held(claim: Claim | None, standing: Standing, seeker: Seeker, node: objects.Object, now: datetime) -> Claim:
    """The claim as the seeker holds it from now on: a new one, or the old one with its record of what was taken."""
    stamp = now.strftime(TIME)
    if claim is None:
        return Claim(
            run=seeker.run, procedure=seeker.procedure, controller=seeker.owner.controller, pid=seeker.owner.pid, started=stamp, renewed=stamp,
            cordoned=not objects.is_unschedulable(node), boot_id=objects.node_info(node, "bootID"),
        )
    renewed = replace(claim, controller=seeker.owner.controller, pid=seeker.owner.pid, renewed=stamp)
    if standing is not Standing.TAKEN_OVER:
        return renewed
    return replace(renewed, run=seeker.run, procedure=seeker.procedure, started=stamp, boot_id=objects.node_info(node, "bootID"))


def _time(text: str) -> datetime:
    parsed = objects.moment(text)
    if parsed is None:
        raise ValueError("a time is missing")
    return parsed
