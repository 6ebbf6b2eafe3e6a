# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which Node is this host? Pure.

The host that ssh reached must be the Node that is drained, or the wrong machine is rebooted under its pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster import ledger, objects


@dataclass(frozen=True)
class Identity:
    """What the host says of itself; an empty string for what it cannot say (no DMI on some ARM machines)."""

    machine_id: str
    system_uuid: str = ""
    boot_id: str = ""


def match(nodes: Iterable[objects.Object], host: Identity, wanted: str = "") -> str:
    """The name of the one Node that is this host.

    machineID and systemUUID must agree. So must bootID, or it is the one that the node's claim recorded at its start: just after a reboot the kubelet has
    not reported the new one yet.

    :param wanted: the name the user gave; it narrows the choice and never replaces the check.
    :raises HygieneError: none, several, or another one than `wanted`; `facts.candidates` lists what was compared.
    """
    if not host.machine_id:
        raise HygieneError(
            seen="The host has no machine id",
            why="Without it the Node of this host cannot be told from the others",
            remedy="Create /etc/machine-id with `systemd-machine-id-setup` and restart the kubelet",
        )
    every = list(nodes)
    matching = [node for node in every if _machine(node, host)]
    named = [node for node in matching if not wanted or objects.name(node) == wanted]
    current = [node for node in named if _boot(node, host)]
    if len(current) == 1:
        return objects.name(current[0])
    raise _refusal(every, matching, named, current, host, wanted)


def _machine(node: objects.Object, host: Identity) -> bool:
    if _plain(objects.node_info(node, "machineID")) != _plain(host.machine_id):
        return False
    return not host.system_uuid or _plain(objects.node_info(node, "systemUUID")) in {_plain(host.system_uuid), _swapped(host.system_uuid)}


def _boot(node: objects.Object, host: Identity) -> bool:
    reported = objects.node_info(node, "bootID")
    if not host.boot_id or reported == host.boot_id:
        return True
    claim = ledger.read(node)
    return claim is not None and bool(reported) and reported == claim.boot_id


def _plain(identifier: str) -> str:
    return identifier.strip().lower().replace("-", "")


def _swapped(identifier: str) -> str:
    """SMBIOS 2.6 made the first three fields little-endian: the kernel and some firmware or tools disagree on them."""
    plain = _plain(identifier)
    if not _is_hex(plain):
        return plain
    return "".join(bytes.fromhex(field)[::-1].hex() for field in (plain[:8], plain[8:12], plain[12:16])) + plain[16:]


def _is_hex(plain: str) -> bool:
    return len(plain) == 32 and all(digit in "0123456789abcdef" for digit in plain)


def _refusal(
    every: Sequence[objects.Object],
    matching: Sequence[objects.Object],
    named: Sequence[objects.Object],
    current: Sequence[objects.Object],
    host: Identity,
    wanted: str,
) -> HygieneError:
    shown = current or named or matching or [node for node in every if not wanted or objects.name(node) == wanted]
    candidates = [
        {
            "name": objects.name(node),
            "machine_id": objects.node_info(node, "machineID"),
            "system_uuid": objects.node_info(node, "systemUUID"),
            "boot_id": objects.node_info(node, "bootID"),
        }
        for node in shown
    ]
    names = ", ".join(candidate["name"] for candidate in candidates[:10]) or "none"
    host_says = f"machine id {host.machine_id}, system UUID {host.system_uuid or 'unknown'}, boot id {host.boot_id or 'unknown'}"
    if len(current) > 1:
        seen, why = f"{len(current)} Nodes have this host's {host_says}: {names}", "Cloned machines share their ids, and the wrong one might be drained"
        remedy = "Name the Node with `node` (`gpunode_node`), and give each machine its own /etc/machine-id"
    elif named:
        seen = f"Node {names} has this host's machine id and system UUID but reports boot id {candidates[0]['boot_id']}; the host says {host.boot_id}"
        why = "The Node's kubelet speaks of another boot, so the Node's state is stale or another machine has the same ids"
        remedy = f"Wait until the kubelet reports (`kubectl get node {candidates[0]['name']}` shows Ready), then start again"
    elif matching:
        seen, why = f"Node {wanted} was named, but this host ({host_says}) is Node {names}", "The host that ssh reaches must be the Node that is drained"
        remedy = "Correct `node` (`gpunode_node`) or the host's address in the inventory"
    elif wanted and not shown:
        seen, why = f"There is no Node {wanted}", "The host can only be drained as a Node of this cluster"
        remedy = "Correct `node` (`gpunode_node`), or choose the cluster with `kubeconfig` or `context`"
    else:
        seen, why = f"None of {len(every)} Nodes has this host's ids ({host_says}); compared: {names}", "The host is not a Node of this cluster"
        remedy = "Choose the cluster with `kubeconfig` or `context`, or correct the host's address in the inventory"
    return HygieneError(seen=seen, why=why, remedy=remedy, facts={"candidates": candidates})
