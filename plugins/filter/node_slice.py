# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One node's part of the cluster's evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info import gather
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.plain import plain


def node_slice(gpu_cluster: Any, node: str) -> dict[str, Any]:
    """What the cluster knows about one node, with what the fleet shares.

    :raises AnsibleFilterError: when the evidence has no such node.
    """
    try:
        return gather.node_slice(plain(gpu_cluster), str(node))
    except HygieneError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to function."""
        return {"node_slice": node_slice}
