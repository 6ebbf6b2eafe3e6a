# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading apt's simulations, judging them, and the copies they work on."""

from __future__ import annotations

import re

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.closure import Closure
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.simulate import Move, Violation, parse_moves, violations, with_selections
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.status import Package
from hypothesis import given
from hypothesis import strategies as st

# As apt 2.6 and 3.0 print it.
SIMULATION = """\
Reading package lists...
Building dependency tree...
The following NEW packages will be installed:
  linux-image-6.8.0-124-generic
Inst base-files [12.4+deb12u8] (12.4+deb12u9 Debian:12.9/stable [amd64]) []
Inst linux-image-6.8.0-124-generic (6.8.0-124.124 Ubuntu:24.04/noble-updates, Ubuntu:24.04/noble-security [amd64])
Inst libc6:i386 [2.36-9] (2.36-10 Debian:12.9/stable [i386]) [libc6:amd64 on libc6:i386]
Remv linux-generic [6.8.0-117.117] [linux-headers-generic:amd64 ]
Purg linux-tools-generic [6.8.0-117.117]
Conf linux-image-6.8.0-124-generic (6.8.0-124.124 Ubuntu:24.04/noble-updates [amd64])
"""
MOVES = [
    Move("base-files", "upgrade", "12.4+deb12u8", "12.4+deb12u9"),
    Move("linux-image-6.8.0-124-generic", "install", "", "6.8.0-124.124"),
    Move("libc6:i386", "upgrade", "2.36-9", "2.36-10"),
    Move("linux-generic", "remove", "6.8.0-117.117", ""),
    Move("linux-tools-generic", "remove", "6.8.0-117.117", ""),
]
STATUS = """\
Package: linux-generic
Status: install ok installed
Architecture: amd64
Description: text
 Status: install ok installed
 Package: other

Package: libfoo
Status: install ok installed
Architecture: i386

Package: libfoo
Architecture: amd64
Status: deinstall ok config-files
"""


def there(*names: str) -> list[Package]:
    return [
        Package("dpkg", "dpkg", "amd64", "install", "ok", "installed", "1", ()),
        *(Package(name, name.partition(":")[0], name.partition(":")[2] or "amd64", "install", "ok", "installed", "1", ()) for name in names),
    ]


def test_a_simulation_is_read_whole() -> None:
    assert parse_moves(SIMULATION) == MOVES


@pytest.mark.parametrize(
    ("command", "move", "barred"),
    [
        ("dist-upgrade", Move("linux-image-6.8.0-124-generic", "install", "", "2"), True),
        ("dist-upgrade", Move("linux-image-6.8.0-117-generic", "upgrade", "1", "2"), True),
        ("dist-upgrade", Move("linux-generic", "remove", "1", ""), True),
        ("dist-upgrade", Move("linux-image-6.8.0-110-generic", "remove", "1", ""), True),
        ("dist-upgrade", Move("linux-image-6.8.0-110-generic", "upgrade", "1", "2"), False),
        ("dist-upgrade", Move("linux-image-6.1.0-56-arm64:arm64", "upgrade", "1", "2"), True),
        ("dist-upgrade", Move("linux-modules-nvidia-560-generic", "install", "", "2"), True),
        ("dist-upgrade", Move("linux-firmware", "upgrade", "1", "2"), False),
        ("dist-upgrade", Move("linux-libc-dev:i386", "install", "", "2"), False),
        ("dist-upgrade", Move("hello", "remove", "1", ""), False),
        ("autoremove", Move("linux-image-6.8.0-110-generic", "remove", "1", ""), False),
        ("autoremove", Move("linux-image-6.8.0-117-generic", "remove", "1", ""), True),
    ],
)
def test_what_a_pin_does_not_allow(command: str, move: Move, barred: bool) -> None:
    pinned = ("linux-image-6.8.0-117-generic", "linux-image-6.1.0-56-arm64:arm64")
    closure = Closure(("6.8.0-117-generic",), pinned, ("linux-generic",), ())
    packages = there(*closure.names, "linux-image-6.8.0-110-generic", "linux-firmware")
    assert violations(command, [move], packages, closure) == ([move] if barred else [])


def test_a_violation_says_what_would_move_and_who_wants_it() -> None:
    found = Violation("linux-image-6.8.0-124-generic", "install", "", "6.8.0-124.124", "apt-get dist-upgrade", ("oem-meta",))
    assert str(found) == "apt-get dist-upgrade would install linux-image-6.8.0-124-generic (6.8.0-124.124), wanted by oem-meta"
    assert str(Violation("linux-generic", "upgrade", "1", "2", "apt-get dist-upgrade", ())) == "apt-get dist-upgrade would upgrade linux-generic (1 -> 2)"


def test_selections_are_put_into_the_copy_and_nothing_else_changes() -> None:
    changed = with_selections(STATUS, {"linux-generic": "hold", "libfoo:amd64": "hold", "absent": "hold"})
    assert changed == STATUS.replace("linux-generic\nStatus: install", "linux-generic\nStatus: hold").replace("Status: deinstall", "Status: hold")
    assert with_selections(STATUS, {}) == STATUS


@given(st.lists(st.sampled_from(["linux-generic", "libfoo:i386", "libfoo:amd64"]), unique=True), st.sampled_from(["hold", "install", "deinstall"]))
def test_only_first_words_of_status_lines_change(names: list[str], selection: str) -> None:
    changed = with_selections(STATUS, dict.fromkeys(names, selection))
    assert re.sub(r"(?m)^Status: \S+", "Status:", changed) == re.sub(r"(?m)^Status: \S+", "Status:", STATUS)
    assert len(re.findall(rf"(?m)^Status: {selection} ", changed)) >= len(names)


@given(st.text(alphabet="Inst Remv[]()ab1\n"))
def test_any_output_is_read_without_error(text: str) -> None:
    assert all(move.action in ("install", "upgrade", "remove") for move in parse_moves(text))
