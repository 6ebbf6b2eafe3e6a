# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter gives the chooser's answer, and its refusal as Ansible's error."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpunode.hygiene.plugins.filter.target_kernel import FilterModule

target_kernel = FilterModule().filters()["target_kernel"]
KERNEL = {"running": "7.0.0-15-generic", "installed": [{"kernel_release": "6.8.0-117-generic", "complete": True, "problems": []}]}


def test_the_newest_supported_kernel_is_the_answer() -> None:
    assert target_kernel(KERNEL, supported_kernels=["6.8.*"]) == "6.8.0-117-generic"
    assert target_kernel(KERNEL, "6.8.0-117-generic") == "6.8.0-117-generic"


def test_a_refusal_keeps_its_words() -> None:
    with pytest.raises(AnsibleFilterError, match=r"6.8.0-117-generic: no pattern matches it.*gpunode_kernel_release"):
        target_kernel(KERNEL, supported_kernels=["5.*"])


@pytest.mark.parametrize("wrong", [None, "7.0.0-15-generic", []])
def test_anything_but_the_kernel_part_is_refused(wrong: object) -> None:
    with pytest.raises(AnsibleFilterError, match="is wanted here"):
        target_kernel(wrong)
