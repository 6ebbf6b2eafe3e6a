# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What os-release, the reboot marker and systemd-detect-virt say."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.run import Completed
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.system import os_release
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('ID=ubuntu\nVERSION_ID="26.04"\n', {"ID": "ubuntu", "VERSION_ID": "26.04"}),
        ("ID='debian'\n# a remark\n\nVERSION_CODENAME=trixie", {"ID": "debian", "VERSION_CODENAME": "trixie"}),
        ('NAME="A \\"quoted\\" name"\nEMPTY=\n', {"NAME": 'A "quoted" name', "EMPTY": ""}),
        ('BROKEN="no end\nID=ubuntu\nno assignment\n=x\n', {"ID": "ubuntu"}),
    ],
)
def test_assignments_are_read_as_a_shell_would(text: str, values: dict[str, str]) -> None:
    assert os_release.parse_os_release(text) == values


def test_the_leapt_host_is_26_04(leapt: Any) -> None:
    assert os_release.read_os(str(leapt)) == {
        "id": "ubuntu",
        "version_id": "26.04",
        "codename": "resolute",
        "reboot_required": False,
        "reboot_required_by": [],
    }


def test_who_asks_for_a_reboot_is_named_once(leapt: Any) -> None:
    leapt.write("run/reboot-required", "*** System restart required ***\n")
    leapt.write("run/reboot-required.pkgs", "linux-image-7.0.0-15-generic\nlinux-base\nlinux-base\n")
    found = os_release.read_os(str(leapt))
    assert (found["reboot_required"], found["reboot_required_by"]) == (True, ["linux-base", "linux-image-7.0.0-15-generic"])


def test_debian_testing_has_no_version(host: Any) -> None:
    host.write("usr/lib/os-release", "ID=debian\nVERSION_CODENAME=forky\n")
    assert os_release.read_os(str(host))["version_id"] is None


def test_no_os_release_at_all_is_an_error(host: Any) -> None:
    with pytest.raises(FileNotFoundError, match="neither /etc/os-release nor"):
        os_release.read_os(str(host))


@pytest.mark.parametrize(("rc", "out"), [(0, "kvm"), (1, "none"), (0, "docker")])
def test_the_virtualization_is_what_systemd_says(monkeypatch: Any, rc: int, out: str) -> None:
    monkeypatch.setattr(os_release, "run", lambda argv, timeout: Completed(tuple(argv), rc, f"{out}\n", ""))
    assert os_release.read_virtualization() == out


@pytest.mark.parametrize("rc", [None, 127])
def test_no_answer_is_an_error_not_bare_metal(monkeypatch: Any, rc: Any) -> None:
    monkeypatch.setattr(os_release, "run", lambda argv, timeout: Completed(tuple(argv), rc, "", ""))
    with pytest.raises(HygieneError, match="is not known"):
        os_release.read_virtualization()
