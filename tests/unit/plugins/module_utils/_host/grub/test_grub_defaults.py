# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from pathlib import Path
from typing import Optional

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub import defaults, env
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.plan import drop_in

MAIN, DROP_IN = defaults.MAIN, defaults.DROP_IN


def host(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = root / ("etc/default/grub" if name == "main" else f"etc/default/grub.d/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("files", "spec", "source"),
    [
        ({"main": "GRUB_DEFAULT=0\n"}, "0", "main"),
        ({"main": "GRUB_TIMEOUT=5\n"}, "0", None),
        ({}, "0", None),
        ({"main": "#GRUB_DEFAULT=3\nGRUB_DEFAULT=1\nGRUB_DEFAULT='1>2'\n"}, "1>2", "main"),
        # A drop-in wins over the main file; only *.cfg counts; byte order, not numbers.
        ({"main": "GRUB_DEFAULT=0\n", "99-pin.cfg": "GRUB_DEFAULT=saved\n", "99-pin.cfg.bak": "GRUB_DEFAULT=7\n"}, "saved", "99-pin.cfg"),
        ({"100-x.cfg": "GRUB_DEFAULT=100\n", "40-x.cfg": "GRUB_DEFAULT=40\n"}, "40", "40-x.cfg"),
        ({"Zz.cfg": "GRUB_DEFAULT=Zz\n", "_x.cfg": "GRUB_DEFAULT=_x\n", "99.cfg": "GRUB_DEFAULT=99\n", "zz.cfg": "GRUB_DEFAULT=zz\n"}, "zz", "zz.cfg"),
        # The same value again is still the last word.
        ({"main": "GRUB_DEFAULT=0\n", "a.cfg": "GRUB_DEFAULT=0\n"}, "0", "a.cfg"),
        ({"main": "GRUB_DEFAULT=2\n", "50-cloudimg-settings.cfg": "GRUB_TIMEOUT=0\n"}, "2", "main"),
        # Shell code is code.
        ({"main": 'A=x\nGRUB_DEFAULT="$A>y"\n'}, "x>y", "main"),
        ({"main": "if true; then GRUB_DEFAULT=5; fi\n"}, "5", "main"),
        ({"main": "GRUB_DEFAULT=`echo 4`\n"}, "4", "main"),
        ({"main": "export GRUB_DEFAULT=3\n"}, "3", "main"),
        # Unquoted, the shell redirects into a file `2`, in the empty folder.
        ({"main": "GRUB_DEFAULT=1>2\n"}, "1", "main"),
        ({"main": "echo noise\nGRUB_DEFAULT=6\n"}, "6", "main"),
    ],
)
def test_the_effective_value_is_what_a_shell_makes_of_the_files(tmp_path: Path, files: dict[str, str], spec: str, source: Optional[str]) -> None:
    before = set(os.listdir("."))
    settings = defaults.read(host(tmp_path, files))
    assert settings.problem is None
    assert settings.spec == spec
    assert settings.source == (None if source is None else MAIN if source == "main" else f"{defaults.FOLDER}/{source}")
    assert set(os.listdir(".")) == before


@pytest.mark.parametrize(
    ("files", "culprit"),
    [
        ({"main": "GRUB_DEFAULT = saved\n"}, MAIN),
        ({"main": "GRUB_DEFAULT=Ubuntu, with Linux\n"}, MAIN),
        ({"main": "GRUB_DEFAULT=0\n", "50.cfg": "GRUB_X='open\n"}, f"{defaults.FOLDER}/50.cfg"),
        ({"main": "GRUB_DEFAULT=0\n", "50.cfg": "false\n", "60.cfg": "GRUB_DEFAULT=1\n"}, f"{defaults.FOLDER}/50.cfg"),
        ({"main": "GRUB_DEFAULT=0\nexit 0\n"}, MAIN),
    ],
)
def test_a_file_that_update_grub_dies_of_is_named(tmp_path: Path, files: dict[str, str], culprit: str) -> None:
    problem = defaults.read(host(tmp_path, files)).problem
    assert problem is not None
    assert problem.startswith(f"{culprit} cannot be sourced (")


def test_a_file_that_never_ends_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "_TIMEOUT", 0.5)
    problem = defaults.read(host(tmp_path, {"main": "sleep 60\n"})).problem
    assert problem is not None
    assert "did not end in time" in problem


@pytest.mark.parametrize(
    ("name", "text", "later"),
    [
        ("zzz.cfg", "GRUB_DEFAULT=0\n", True),
        ("zz-h.cfg", "  GRUB_DEFAULT=0\n", True),
        ("zzz.cfg", "true && GRUB_DEFAULT=0\n", True),
        ("zzz.cfg", ': "${GRUB_DEFAULT:=0}"\n', True),
        ("zzz.cfg", "#GRUB_DEFAULT=0\nGRUB_DEFAULT_BUTTON=1\n", False),
        ("99.cfg", "GRUB_DEFAULT=0\n", False),
        ("zzz.cfg.bak", "GRUB_DEFAULT=0\n", False),
    ],
)
def test_files_behind_ours_that_set_the_default_are_found(tmp_path: Path, name: str, text: str, later: bool) -> None:
    settings = defaults.read(host(tmp_path, {name: text}))
    assert settings.later == ((f"{defaults.FOLDER}/{name}",) if later else ())


def test_the_settings_without_a_file_or_with_another_text(tmp_path: Path) -> None:
    root = host(tmp_path, {"main": "GRUB_DEFAULT=2\n", "zz-gpunode-hygiene.cfg": "GRUB_DEFAULT=x\n"})
    assert defaults.read(root).spec == "x"
    assert defaults.read(root, {DROP_IN: None}).spec == "2"
    assert defaults.read(root, {DROP_IN: "GRUB_DEFAULT=y\n"}).spec == "y"
    assert (tmp_path / "etc/default/grub.d/zz-gpunode-hygiene.cfg").read_text() == "GRUB_DEFAULT=x\n"


def test_our_drop_in_is_read_as_the_spec_that_it_was_made_of(tmp_path: Path) -> None:
    spec = "gnulinux-advanced-/dev/mapper/vg-root>gnulinux-6.12.117+deb13-amd64-advanced-/dev/mapper/vg-root"
    assert defaults.read(host(tmp_path, {"zz-gpunode-hygiene.cfg": drop_in(spec, "6.12.117+deb13-amd64")})).spec == spec


def grubenv(*lines: str) -> str:
    return (env.SIGNATURE + "".join(f"{line}\n" for line in lines)).ljust(env.SIZE, "#")


@pytest.mark.parametrize(
    ("lines", "variables"),
    [
        ((), {}),
        (("# WARNING: Do not edit this file by tools other than grub-editenv!!!",), {}),
        (("saved_entry=1>2", "next_entry="), {"saved_entry": "1>2", "next_entry": ""}),
        ((r"a=x\\y\#z", "b=c=d"), {"a": r"x\y#z", "b": "c=d"}),
    ],
)
def test_the_environment_block(lines: tuple[str, ...], variables: dict[str, str]) -> None:
    assert env.parse(grubenv(*lines)) == variables


@pytest.mark.parametrize("text", ["", grubenv() + "#", "x" * env.SIZE, grubenv()[:-1]])
def test_what_grub_would_not_take_for_an_environment_block(text: str) -> None:
    with pytest.raises(ValueError, match="bytes|signature"):
        env.parse(text)
