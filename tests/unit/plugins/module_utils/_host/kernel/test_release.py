# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel releases are ordered as linux-version of linux-base orders them."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.kernel.release import compare, newest_first
from hypothesis import given, settings
from hypothesis import strategies as st

# Output of `linux-version sort` (linux-base 4.9), oldest first.
SORTED = [
    "5.15.0-1021-oracle",
    "6.1-rc7-amd64",
    "6.1.0-9-amd64",
    "6.1.0-49-amd64",
    "6.1.0-49-cloud-amd64",
    "6.1.0-49-rt-amd64",
    "6.8.0-99-generic",
    "6.8.0-117-generic",
    "6.8.0-117-lowlatency",
    "6.12.117+deb13-amd64",
    "6.12.117-amd64",
    "6.19.0-60900-generic",
    "6.19.0-060901-generic",
    "6.19.0-060901rc1-generic",
    "7.0.0-15-generic",
    "7.0.0-15-generic.old",
]
RELEASES = st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,3}){0,2}(-rc[0-9])?(-trunk)?([-+.~][a-z0-9]{0,8}){0,3}", fullmatch=True)


def test_a_shuffled_list_comes_back_newest_first() -> None:
    assert newest_first(SORTED[::2] + SORTED[1::2]) == SORTED[::-1]


@pytest.mark.parametrize(("older", "newer"), list(itertools.combinations(SORTED, 2)))
def test_each_is_older_than_all_that_follow(older: str, newer: str) -> None:
    assert compare(older, newer) < 0
    assert compare(newer, older) > 0


def test_numbers_count_not_their_spelling() -> None:
    assert compare("6.19.0-060900-generic", "6.19.0-60900-generic") == 0


@given(st.lists(RELEASES, max_size=8))
@settings(derandomize=True, deadline=None)
def test_the_order_does_not_depend_on_the_order_given(releases: list[str]) -> None:
    assert newest_first(releases) == newest_first(releases[::-1])


@given(RELEASES, RELEASES, RELEASES)
@settings(derandomize=True, deadline=None)
def test_the_comparison_is_an_order(one: str, two: str, three: str) -> None:
    assert compare(one, one) == 0
    assert (compare(one, two) > 0) == (compare(two, one) < 0)
    if compare(one, two) >= 0 and compare(two, three) >= 0:
        assert compare(one, three) >= 0
