# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel that a node shall move to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._kernel.choose import choose


def target_kernel(kernel: Any, kernel_release: str = "", supported_kernels: list[str] | None = None) -> str:
    """The release asked for, or the newest complete one that a pattern supports.

    :raises AnsibleFilterError: when the host has none, or the input is not a host's `kernel` part.
    """
    if not isinstance(kernel, Mapping):
        raise AnsibleFilterError(f"The `kernel` part of gpu_host is wanted here; this is a {type(kernel).__name__}: {kernel!r}")
    try:
        return choose(kernel, kernel_release, supported_kernels or ())
    except HygieneError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to function."""
        return {"target_kernel": target_kernel}
