# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver images that the operator will ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._cluster.info.gather import expected_on
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.plain import plain


def expected_images(gpu_cluster: Any, node: str, kernel_release: str = "") -> list[dict[str, str]]:
    """The images that a node will need under a kernel release.

    :raises AnsibleFilterError: when they cannot be told, with the reason.
    """
    try:
        expected = expected_on(plain(gpu_cluster), str(node), str(kernel_release))
    except HygieneError as error:
        raise AnsibleFilterError(str(error)) from error
    if expected.problems:
        raise AnsibleFilterError(f"The driver images for Node {node} cannot be told: {'; '.join(expected.problems)}.")
    return list(expected.images)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to function."""
        return {"expected_images": expected_images}
