# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""dpkg's rows, and the evidence made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.evidence import packages_evidence, selections
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.status import dependency_names, native_architecture, parse_status, read_status
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError
from hypothesis import given
from hypothesis import strategies as st

ROW = "{name}\t{name}\tamd64\t{want}\tok\t{status}\t6.8.0-117.117\t\t{depends}"


def rows(*lines: str) -> str:
    """Rows from `name want status dependency...`."""
    made = []
    for line in lines:
        name, want, status, *depends = line.split()
        made.append(ROW.format(name=name, want=want, status=status, depends=", ".join(depends)))
    return "\n".join(made) + "\n"


KERNEL = ("linux-image-6.8.0-117-generic {0} installed linux-modules-6.8.0-117-generic", "linux-modules-6.8.0-117-generic {0} installed")
METAS = ("linux-image-generic {0} installed linux-image-6.8.0-117-generic", "linux-generic {0} installed linux-image-generic")


def evidence(*lines: str, lost: tuple[str, ...] = ()) -> dict[str, Any]:
    """The evidence of a host that runs 6.8.0-117-generic."""
    return packages_evidence(parse_status(rows(*lines)), "6.8.0-117-generic", False, lost)


def test_a_row_is_read_with_its_architecture_and_all_alternatives() -> None:
    text = "libc6:i386\tlibc6\ti386\tinstall\tok\tinstalled\t2.36\tdpkg (>= 1.15)\tlibgcc-s1 | libgcc1 (>= 1:4), libcrypt1 (>= 1:4.4.10-10~)\nbroken line\n"
    [package] = parse_status(text)
    assert (package.id, package.name, package.architecture, package.want) == ("libc6:i386", "libc6", "i386", "install")
    assert package.depends == ("dpkg", "libgcc-s1", "libgcc1", "libcrypt1")


@pytest.mark.parametrize(
    ("want", "status", "present", "held"),
    [
        ("hold", "installed", True, True), ("hold", "unpacked", True, True), ("install", "installed", True, False), ("deinstall", "installed", True, False),
        ("hold", "not-installed", False, False), ("hold", "config-files", False, False), ("deinstall", "config-files", False, False),
    ],
)
def test_a_hold_counts_only_while_the_package_is_there(want: str, status: str, present: bool, held: bool) -> None:
    [package] = parse_status(rows(f"linux-image-amd64 {want} {status}"))
    assert (package.present, package.held) == (present, held)


def test_only_versioned_names_held_is_not_protected() -> None:
    found = evidence(*(line.format("hold") for line in KERNEL), *(line.format("install") for line in METAS))
    assert (found["protected"], found["metas"]) == (False, ["linux-generic", "linux-image-generic"])
    assert found["problems"] == ["held only in part; not held: linux-generic, linux-image-generic"]


def test_only_metas_held_is_not_protected() -> None:
    found = evidence(*(line.format("install") for line in KERNEL), *(line.format("hold") for line in METAS))
    assert found["protected"] is False
    assert found["problems"] == ["held only in part; not held: linux-image-6.8.0-117-generic, linux-modules-6.8.0-117-generic"]


def test_the_whole_closure_held_is_protected() -> None:
    found = evidence(*(line.format("hold") for line in (*KERNEL, *METAS)), "hello hold installed")
    closure = sorted(line.split()[0] for line in (*KERNEL, *METAS))
    metas = ["linux-generic", "linux-image-generic"]
    assert found == {"closure": closure, "held": sorted([*closure, "hello"]), "metas": metas, "protected": True, "problems": []}


def test_nothing_held_is_no_problem_but_not_protected() -> None:
    found = evidence(*(line.format("install") for line in (*KERNEL, *METAS)))
    assert (found["protected"], found["held"], found["problems"]) == (False, [], [])


def test_a_held_release_that_does_not_run_is_the_one_to_look_at() -> None:
    found = evidence(*(line.format("install") for line in KERNEL), "linux-image-6.8.0-110-generic hold installed")
    assert (found["closure"], found["protected"]) == (["linux-image-6.8.0-110-generic"], True)


def test_holds_that_protect_nothing_are_told() -> None:
    found = evidence("linux-image-7.0.0-15-generic hold config-files", "linux-image-amd64 hold not-installed", lost=("linux-generic",))
    assert found["closure"] == []
    assert found["protected"] is False
    assert found["problems"] == [
        "no image package of kernel 6.8.0-117-generic is installed",
        "the recorded hold of linux-generic is gone",
        "linux-image-7.0.0-15-generic is held but not installed, which protects nothing",
        "linux-image-amd64 is held but not installed, which protects nothing",
    ]


def test_a_half_installed_kernel_package_is_told() -> None:
    assert evidence(*(line.format("hold") for line in METAS), "linux-image-6.8.0-117-generic hold half-configured")["problems"] == [
        "linux-image-6.8.0-117-generic is half-configured"
    ]


def test_selections_are_of_what_is_there() -> None:
    packages = parse_status(rows("a hold installed", "b hold not-installed", "c deinstall config-files", "d install half-installed"))
    assert selections(packages) == {"a": "hold", "d": "install"}


def test_dpkgs_own_package_tells_the_architecture() -> None:
    assert native_architecture(parse_status(rows("hello install installed", "dpkg install installed"))) == "amd64"
    with pytest.raises(HygieneError):
        native_architecture([])


def test_a_database_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HygieneError, match="Which packages are installed is not known"):
        read_status(str(tmp_path / "nothing"))


RELATION = st.tuples(
    st.from_regex(r"[a-z0-9][a-z0-9+.-]{1,8}", fullmatch=True), st.sampled_from(["", ":any", ":i386"]), st.sampled_from(["", " (>= 1:2.0~)", "(=1)", " (<< 3)"])
)


@given(st.lists(st.lists(RELATION, min_size=1, max_size=3), max_size=4))
def test_relations_give_the_names_of_all_alternatives_once(groups: list[list[tuple[str, str, str]]]) -> None:
    text = ", ".join(" | ".join("".join(relation) for relation in group) for group in groups)
    assert dependency_names(text) == list(dict.fromkeys(name for group in groups for name, _qualifier, _version in group))


@given(st.text())
def test_a_text_without_nine_columns_gives_no_row(text: str) -> None:
    assert parse_status(text.replace("\t", " ")) == []
