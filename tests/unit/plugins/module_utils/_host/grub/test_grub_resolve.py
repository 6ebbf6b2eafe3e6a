# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""menu.c's rules on the menus that real scripts of Debian 12 and 13 wrote, and on Ubuntu's shapes."""

from __future__ import annotations

from typing import Callable, Optional

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.boots import boots
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.facts import leads_to, resolve_default
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.menu import CUSTOM_CFG, Menu, run
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.resolve import after_first, first_component, leading_number, resolve

UUID = "6f2b0b4e-8d0c-4c7b-9a51-2f8f1f0a7d11"
TOP = f"gnulinux-advanced-{UUID}"
RELEASES = ("debian12", "debian13")
MenuOf = Callable[..., Menu]


def at(menu: Menu, spec: Optional[str]) -> tuple[Optional[str], bool]:
    """The release that a spec boots, and whether GRUB followed it without a fallback."""
    release, problems = leads_to(resolve(menu.entries, spec))
    return release, not problems


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("0", ("7.0.0-15-generic", True)),
        ("", ("7.0.0-15-generic", True)),
        # Two numbers per kernel: its own entry and the recovery entry.
        ("1>2", ("6.8.0-1059-azure", True)),
        ("1>4", ("6.8.0-124-generic", True)),
        ("1>6", ("6.8.0-117-generic", True)),
        # The recovery entry is no normal one.
        ("1>7", ("6.8.0-117-generic", False)),
        # Silent fallbacks: behind the end, at a submenu, to a child that is gone, without the submenu, with blanks.
        ("1>8", ("7.0.0-15-generic", False)),
        ("5", ("7.0.0-15-generic", False)),
        ("1", ("7.0.0-15-generic", False)),
        (TOP, ("7.0.0-15-generic", False)),
        (f"{TOP}>", ("7.0.0-15-generic", False)),
        (f"{TOP}>gnulinux-6.8.0-110-generic-advanced-{UUID}", ("7.0.0-15-generic", False)),
        (f"gnulinux-6.8.0-117-generic-advanced-{UUID}", ("7.0.0-15-generic", False)),
        ("Ubuntu, with Linux 6.8.0-117-generic", ("7.0.0-15-generic", False)),
        ("Advanced options for Ubuntu > Ubuntu, with Linux 6.8.0-117-generic", ("7.0.0-15-generic", False)),
        ("Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux 6.8.0-117-generic", ("7.0.0-15-generic", False)),
        # By title, by id, mixed.
        ("Advanced options for Ubuntu>Ubuntu, with Linux 6.8.0-117-generic", ("6.8.0-117-generic", True)),
        (f"{TOP}>gnulinux-6.8.0-117-generic-advanced-{UUID}", ("6.8.0-117-generic", True)),
        (f"Advanced options for Ubuntu>gnulinux-6.8.0-124-generic-advanced-{UUID}", ("6.8.0-124-generic", True)),
        # A leading digit is an index, whatever follows: 6.8.0 is 6, 0x is hexadecimal, a leading 0 octal.
        ("Advanced options for Ubuntu>6.8.0-117-generic", ("6.8.0-117-generic", True)),
        ("Advanced options for Ubuntu>6.8.0-124-generic", ("6.8.0-117-generic", True)),
        ("1>0x4", ("6.8.0-124-generic", True)),
        ("1>04", ("6.8.0-124-generic", True)),
        (" 1> 4", ("6.8.0-124-generic", True)),
        ("-1", ("7.0.0-15-generic", False)),
        ("99999999999999999999", ("7.0.0-15-generic", False)),
    ],
)
def test_the_ground_truth_menu(menu_of: MenuOf, release: str, spec: str, expected: tuple[Optional[str], bool]) -> None:
    assert at(menu_of(f"{release}/submenu"), spec) == expected


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("0", ("7.0.0-15-generic", True)),
        (f"gnulinux-6.8.0-117-generic-advanced-{UUID}", ("6.8.0-117-generic", True)),
        (f"{TOP}>gnulinux-6.8.0-117-generic-advanced-{UUID}", ("7.0.0-15-generic", False)),
        # What follows the entry is not looked at.
        (f"gnulinux-6.8.0-117-generic-advanced-{UUID}>nothing", ("6.8.0-117-generic", True)),
    ],
)
def test_a_flat_menu_has_no_submenu_in_its_paths(menu_of: MenuOf, release: str, spec: str, expected: tuple[Optional[str], bool]) -> None:
    assert at(menu_of(f"{release}/flat"), spec) == expected


@pytest.mark.parametrize("release", RELEASES)
def test_the_title_correction_of_10_linux_never_applies(menu_of: MenuOf, release: str) -> None:
    menu = menu_of(f"{release}/old_title")
    assert menu.default == "Ubuntu, with Linux 6.8.0-117-generic"
    assert leads_to(resolve_default(menu))[0] == "7.0.0-15-generic"


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("grubenv", "expected"),
    [
        ({}, ("6.12.117+deb13-amd64", True)),
        ({"saved_entry": "1>1"}, ("6.1.0-40-amd64", True)),
        ({"saved_entry": f"{TOP}>gnulinux-6.1.0-35-amd64-advanced-{UUID}"}, ("6.1.0-35-amd64", True)),
        ({"saved_entry": "gone"}, ("6.12.117+deb13-amd64", False)),
        ({"saved_entry": "1>1", "next_entry": "1>2"}, ("6.1.0-35-amd64", True)),
        # It is restored behind the choice of the default, so it counts from the boot after.
        ({"saved_entry": "1>1", "prev_saved_entry": "1>2"}, ("6.1.0-40-amd64", True)),
    ],
)
def test_saved_and_one_shot_entries_come_from_the_environment_block(
    menu_of: MenuOf, release: str, grubenv: dict[str, str], expected: tuple[Optional[str], bool]
) -> None:
    menu = menu_of(f"{release}/separate_boot", **grubenv)
    assert at(menu, menu.default) == expected


@pytest.mark.parametrize("spec", ["1>0", f"{TOP}>gnulinux-6.8.0-1059-azure-advanced-{UUID}"])
def test_doubled_linux_lines_are_one_kernel(menu_of: MenuOf, spec: str) -> None:
    assert at(menu_of("ubuntu/partuuid"), spec) == ("6.8.0-1059-azure", True)


def test_a_failed_boot_without_initrd_brings_the_previous_one_shot_entry_back(menu_of: MenuOf) -> None:
    menu = menu_of("ubuntu/partuuid", initrdfail="1", prev_entry="1>1")
    assert menu.default == "1>1"
    assert at(menu, menu.default) == ("6.8.0-1021-azure", True)


def test_different_linux_lines_are_no_certain_kernel(menu_text: Callable[[str], str]) -> None:
    line = "/boot/vmlinuz-6.8.0-1059-azure root=PARTUUID=8f8e0b7a-01 ro console=ttyS0 panic=-1"
    text = menu_text("ubuntu/partuuid").replace(line, "/boot/vmlinuz-6.8.0-1 ro")
    assert at(run(text, {}, {}), "0") == (None, False)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        # Normal and recovery entry share their id: the first one wins.
        ("gnulinux-advanced-rpool/ROOT/ubuntu_g3x8d1>gnulinux-rpool/ROOT/ubuntu_g3x8d1-6.8.0-117-generic", ("6.8.0-117-generic", True)),
        ("1>3", ("6.8.0-117-generic", False)),
        ("Advanced options for Ubuntu 24.04.1 LTS>* Ubuntu 24.04.1 LTS, with Linux 6.8.0-124-generic", ("6.8.0-124-generic", True)),
        ("2>0>1", ("6.8.0-117-generic", True)),
        ("2>0", ("6.8.0-117-generic", False)),
    ],
)
def test_zfs_menus_have_shared_ids_and_three_levels(menu_of: MenuOf, spec: str, expected: tuple[Optional[str], bool]) -> None:
    assert at(menu_of("ubuntu/zfs"), spec) == expected


def test_a_literal_greater_sign_in_a_title_is_doubled_in_a_spec() -> None:
    inner = "menuentry 'c' { linux /vmlinuz-1.0; }\nmenuentry 'd>>e' --id x { linux /vmlinuz-2.0; }"
    menu = run(f"submenu 'a>b' {{ {inner} }}\nmenuentry z {{ linux /vmlinuz-3.0; }}", {}, {})
    assert at(menu, "a>>b>d>>>>e") == ("2.0", True)
    assert at(menu, "a>b>x") == ("1.0", False)
    assert resolve(menu.entries, "a>>b>x").path == "a>>b>x"


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("12abc", 12), (" \t3", 3), ("0x1F", 31), ("0xg", None), ("010", 8), ("08", 8), ("x1", None), ("-1", None), ("", None), ("6.8", 6), ("٣", None)],
)
def test_numbers_are_read_as_grub_strtoul_reads_them(text: str, number: Optional[int]) -> None:
    assert leading_number(text) == number


@pytest.mark.parametrize(
    ("spec", "first", "rest"),
    [("a>b>c", "a", "b>c"), ("a>>b>c", "a>b", "c"), ("a>>>b", "a>", "b"), ("a>", "a", None), ("a", "a", None), (">b", "", "b"), ("a>>>>", "a>>", None)],
)
def test_specs_are_split_at_single_signs(spec: str, first: str, rest: Optional[str]) -> None:
    assert (first_component(spec), after_first(spec)) == (first, rest)


def test_custom_cfg_adds_entries_and_may_set_the_default(menu_of: MenuOf) -> None:
    menu = menu_of("debian12/submenu", custom="menuentry 'mine' { linux /boot/vmlinuz-9.9; }\nset default=mine\n")
    assert at(menu, menu.default) == ("9.9", True)
    assert menu.default_origin == CUSTOM_CFG


def test_a_custom_cfg_with_a_syntax_error_defines_nothing(menu_of: MenuOf) -> None:
    menu = menu_of("debian12/submenu", custom="menuentry 'mine' {\nset default=mine\n")
    assert menu.default == "0"
    assert len(menu.invalid) == 1
    assert CUSTOM_CFG in menu.invalid[0]


def test_what_depends_on_the_machine_is_not_certain() -> None:
    text = "if hwmatch x 3; then set default=1; menuentry a { linux /vmlinuz-1.0; }; fi\nmenuentry b --id b { linux /vmlinuz-2.0; }"
    menu = run(text, {}, {})
    assert not menu.default_known
    assert [entry.certain for entry in menu.entries] == [False, True]
    assert at(menu, "b") == ("2.0", False)
    assert resolve_default(menu).problems[-1] == "what `default` is depends on what GRUB finds at boot"


@pytest.mark.parametrize(
    ("platform", "grubenv", "timeout"), [("pc", {}, 0), ("pc", {"recordfail": "1"}, 30), ("efi", {}, 0)]
)
def test_the_timeout_is_the_one_that_grub_would_use(menu_of: MenuOf, platform: str, grubenv: dict[str, str], timeout: int) -> None:
    assert menu_of("ubuntu/zfs", platform=platform, **grubenv).timeout == timeout


@pytest.mark.parametrize(("line", "timeout"), [("set timeout=-1", -1), ("unset timeout", None), ("set timeout=x", None), ("set timeout=5", 5)])
def test_a_timeout_without_number_is_none(line: str, timeout: Optional[int]) -> None:
    assert run(f"set timeout=3\n{line}", {}, {}).timeout == timeout


def test_commands_that_bring_a_menu_from_elsewhere_are_told() -> None:
    assert run("configfile /other.cfg", {}, {}).problems == ("/boot/grub/grub.cfg uses `configfile`, which cannot be followed",)


def test_restrictions_are_read() -> None:
    menu = run("set superusers=root\nmenuentry a { true; }\nmenuentry b --unrestricted { true; }\nmenuentry c --users jo { true; }", {}, {})
    assert menu.superusers == "root"
    assert [entry.users for entry in menu.entries] == ["", None, "jo"]


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("/boot/vmlinuz-6.8.0-117-generic", "6.8.0-117-generic"),
        ("/vmlinuz-6.12.117+deb13-amd64", "6.12.117+deb13-amd64"),
        ("($root)/boot/vmlinuz-6.8.0-117-generic.efi.signed", "6.8.0-117-generic"),
        ("/boot/vmlinuz-6.8.0-117-generic.old", "6.8.0-117-generic.old"),
        ("/boot/Image", None),
    ],
)
def test_the_release_is_in_the_images_name(image: str, release: Optional[str]) -> None:
    (entry,) = run(f"menuentry a {{ linux {image} ro\ninitrd /x }}", {}, {}).entries
    assert boots(entry).kernel_release == release
