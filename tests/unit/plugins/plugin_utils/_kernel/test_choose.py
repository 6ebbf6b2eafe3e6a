# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The target is the newest kernel that is complete and supported, or a refusal that names every candidate."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.kernel.release import compare
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._kernel.choose import choose
from hypothesis import given, settings
from hypothesis import strategies as st

OLD, NEW = "6.8.0-117-generic", "7.0.0-15-generic"
SUPPORTED = ["6.8.0-*-generic"]


def row(release: str, *problems: str) -> dict[str, Any]:
    return {"kernel_release": release, "complete": not problems, "problems": list(problems)}


def kernel(*rows: dict[str, Any], running: str = NEW) -> dict[str, Any]:
    return {"running": running, "installed": list(rows)}


@pytest.mark.parametrize(
    ("rows", "patterns", "target"),
    [
        ([row(NEW), row(OLD)], SUPPORTED, OLD),
        ([row("6.8.0-99-generic"), row(OLD), row(NEW)], SUPPORTED, OLD),
        ([row(NEW), row("6.8.0-124-generic", "there is no initrd"), row(OLD)], SUPPORTED, OLD),
        ([row(NEW), row(OLD), row("6.8.0-117-lowlatency")], SUPPORTED, OLD),
        ([row(NEW), row(OLD)], ["5.*", NEW], NEW),
        ([row("6.12.117+deb13-amd64"), row("6.12.9+deb13-amd64")], ["6.12.*-amd64"], "6.12.117+deb13-amd64"),
    ],
)
def test_the_newest_complete_supported_kernel_is_taken(rows: list[dict[str, Any]], patterns: list[str], target: str) -> None:
    assert choose(kernel(*rows), "", patterns) == target
    assert choose(kernel(*rows[::-1]), "", patterns) == target


def test_the_running_kernel_is_taken_only_when_it_is_supported_or_asked_for() -> None:
    with pytest.raises(HygieneError, match="No installed kernel is complete and matches"):
        choose(kernel(row(NEW)), "", SUPPORTED)
    assert choose(kernel(row(NEW)), NEW, SUPPORTED) == NEW


def test_the_answer_is_the_same_after_the_node_has_moved() -> None:
    assert choose(kernel(row(NEW), row(OLD), running=OLD), "", SUPPORTED) == OLD


def test_a_refusal_names_each_kernel_and_why_it_is_not_taken() -> None:
    with pytest.raises(HygieneError) as refused:
        choose(kernel(row(NEW), row(OLD, "there is no initrd /boot/initrd.img-6.8.0-117-generic"), row("5.15.0-1-generic", "a", "b")), "", SUPPORTED)
    assert refused.value.seen == (
        "No installed kernel is complete and matches 6.8.0-*-generic: "
        "7.0.0-15-generic (running): no pattern matches it; "
        "6.8.0-117-generic: there is no initrd /boot/initrd.img-6.8.0-117-generic; "
        "5.15.0-1-generic: no pattern matches it, a, b"
    )
    assert "gpunode_supported_kernels" in refused.value.remedy


def test_without_a_wish_nothing_is_guessed() -> None:
    with pytest.raises(HygieneError, match=r"Installed are: 7.0.0-15-generic, 6.8.0-117-generic.*Set gpunode_supported_kernels"):
        choose(kernel(row(NEW), row(OLD)))


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("6.8.0-999-generic", "Kernel 6.8.0-999-generic is asked for, but it is not installed. Complete on disk: 7.0.0-15-generic; running: 7.0.0-15-generic"),
        (OLD, "Kernel 6.8.0-117-generic is asked for, but no initrd; no modules. Complete on disk: 7.0.0-15-generic; running: 7.0.0-15-generic"),
    ],
)
def test_an_asked_kernel_that_is_not_complete_is_refused(asked: str, why: str) -> None:
    with pytest.raises(HygieneError) as refused:
        choose(kernel(row(NEW), row(OLD, "no initrd", "no modules")), asked, SUPPORTED)
    assert refused.value.seen == why


def test_nothing_is_chosen_from_an_inventory_that_was_not_read() -> None:
    with pytest.raises(HygieneError, match="is not known"):
        choose({"running": NEW, "installed": None}, OLD)
    with pytest.raises(HygieneError, match="none is installed"):
        choose(kernel(), "", SUPPORTED)


RELEASE = st.builds("{}.{}.0-{}-{}".format, st.integers(5, 7), st.integers(0, 12), st.integers(1, 130), st.sampled_from(["generic", "lowlatency"]))
ROW = st.builds(lambda release, whole: row(release, *([] if whole else ["broken"])), RELEASE, st.booleans())
ROWS = st.lists(ROW, unique_by=lambda one: one["kernel_release"])
PATTERNS = st.lists(st.sampled_from(["6.*", "5.*-generic", "*-lowlatency", "6.8.0-*-generic", "*", "8.*"]), min_size=1)


@given(ROWS, PATTERNS, st.randoms(use_true_random=False))
@settings(derandomize=True, deadline=None)
def test_the_choice_is_complete_supported_unbeaten_and_independent_of_the_order(rows: list[dict[str, Any]], patterns: list[str], random: Any) -> None:
    fit = [one["kernel_release"] for one in rows if one["complete"] and any(fnmatch.fnmatchcase(one["kernel_release"], pattern) for pattern in patterns)]
    shuffled = list(rows)
    random.shuffle(shuffled)
    if not fit:
        with pytest.raises(HygieneError):
            choose(kernel(*rows), "", patterns)
        return
    target = choose(kernel(*rows), "", patterns)
    assert target in fit
    assert all(compare(target, other) >= 0 for other in fit)
    assert choose(kernel(*shuffled), "", patterns) == target
