# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Survey text and real lists give the same list."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpunode.hygiene.plugins.filter.as_list import as_list


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["a", "b"], ["a", "b"]),
        (("a",), ["a"]),
        ("a, b", ["a", "b"]),
        ("a\nb c,", ["a", "b", "c"]),
        ("", []),
        ([], []),
    ],
)
def test_lists_and_text_become_the_same_list(value: object, words: list[str]) -> None:
    assert as_list(value) == words


@pytest.mark.parametrize("value", [3, {"a": 1}, None])
def test_anything_else_is_refused_by_name(value: object) -> None:
    with pytest.raises(AnsibleFilterError, match=type(value).__name__):
        as_list(value)
