# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's GRUB made of a fixture's menu, for the tests beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.defaults import Settings
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.facts import ONCE_VARIABLES, Host, Probe
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.menu import CUSTOM_CFG, GRUB_CFG, GRUBENV, Menu, run

FIXTURES = Path(__file__).parent / "fixtures"
UUID = "6f2b0b4e-8d0c-4c7b-9a51-2f8f1f0a7d11"


@pytest.fixture
def menu_text() -> Callable[[str], str]:
    """The text of a fixture's grub.cfg, by name."""
    return lambda name: (FIXTURES / f"{name}.cfg").read_text(encoding="utf-8")


@pytest.fixture
def menu_of(menu_text: Callable[[str], str]) -> Callable[..., Menu]:
    """The menu of a fixture with an environment block and a custom.cfg."""

    def make(name: str, custom: Optional[str] = None, platform: str = "pc", **grubenv: str) -> Menu:
        return run(menu_text(name), {CUSTOM_CFG: custom, GRUBENV: "#"}, grubenv, platform)

    return make


@pytest.fixture
def host_of(menu_text: Callable[[str], str]) -> Callable[..., Host]:
    """A sound host with a fixture's menu; keywords replace fields, `edit` changes the text of grub.cfg."""

    def make(name: str = "debian12/submenu", edit: Callable[[str], str] = str, **changed: Any) -> Host:
        text = edit(menu_text(name))
        custom, grubenv = changed.get("custom"), changed.pop("grubenv", {})
        files = {CUSTOM_CFG: custom, GRUBENV: "#", GRUB_CFG: text}
        lasting = {key: value for key, value in grubenv.items() if key not in ONCE_VARIABLES}
        fields: dict[str, Any] = {
            "loader": "grub",
            "bypassed": (),
            "kexec": False,
            "platform": "pc",
            "settings": Settings({"GRUB_DEFAULT": "0"}, "/etc/default/grub", (), None),
            "grub_cfg": text,
            "custom": None,
            "grubenv": grubenv,
            "grubenv_text": "#",
            "grubenv_problem": None,
            "menu": run(text, files, lasting),
            "following": run(text, files, grubenv),
            "menu_problem": None,
            "custom_script": None,
            "probe": Probe("/boot", UUID, (), "ext2", ()),
            "drop_in": None,
            "unit": None,
            "links": (),
        }
        return Host(**{**fields, **changed})

    return make
