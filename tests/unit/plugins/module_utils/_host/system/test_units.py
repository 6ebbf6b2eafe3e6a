# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What systemd says, and what is made of its silence."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Callable

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.run import Completed
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.system import units
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError


def systemctl(answers: dict[str, tuple[int, str]]) -> Callable[..., Completed]:
    """A systemctl that answers by its first argument."""
    return lambda argv, timeout: Completed(tuple(argv), answers[argv[1]][0], answers[argv[1]][1], "")


def test_failed_units_are_the_first_words() -> None:
    text = "nvidia-persistenced.service loaded failed failed NVIDIA Persistence Daemon\nboot-efi.mount loaded failed failed /boot/efi\n"
    assert units.parse_failed(text) == ["boot-efi.mount", "nvidia-persistenced.service"]
    assert units.parse_failed("") == []


def test_a_degraded_system_names_its_failed_units(monkeypatch: Any) -> None:
    monkeypatch.setattr(units, "run", systemctl({"is-system-running": (1, "degraded\n"), "list-units": (0, "a.service loaded failed failed A\n")}))
    assert units.read_units() == {"state": "degraded", "failed": ["a.service"]}


@pytest.mark.parametrize("answer", ["offline\n", "unknown\n", ""])
def test_a_host_without_systemd_is_unknown(monkeypatch: Any, answer: str) -> None:
    monkeypatch.setattr(units, "run", systemctl({"is-system-running": (1, answer)}))
    with pytest.raises(HygieneError, match="systemctl is-system-running"):
        units.read_units()


def test_units_that_the_host_does_not_have_are_left_out(monkeypatch: Any) -> None:
    shown = (
        "Id=apt-daily.timer\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n\n"
        "Id=unattended-upgrades.service\nLoadState=not-found\nActiveState=inactive\nUnitFileState=\n\n"
        "Id=apt-daily-upgrade.timer\nLoadState=masked\nActiveState=inactive\nUnitFileState=masked\n"
    )
    monkeypatch.setattr(units, "run", systemctl({"show": (0, shown)}))
    assert units.read_unit_states(["x"]) == {
        "apt-daily.timer": {"active": True, "enabled": "enabled"},
        "apt-daily-upgrade.timer": {"active": False, "enabled": "masked"},
    }


def test_a_systemctl_that_hangs_is_given_up(monkeypatch: Any, tmp_path: Path) -> None:
    fake = tmp_path / "systemctl"
    fake.write_text("#!/bin/sh\nexec sleep 600\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(units, "_TIMEOUT", 0.3)
    begun = time.monotonic()
    with pytest.raises(HygieneError, match="did not end in time"):
        units.read_units()
    assert time.monotonic() - begun < 60
