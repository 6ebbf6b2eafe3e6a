# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files are seen whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host import files


def test_a_written_file_has_its_text_and_mode(tmp_path: Path) -> None:
    path = str(tmp_path / "drop-in.cfg")
    files.write_atomic(path, "A=1\n", 0o640)
    assert files.read_text(path) == "A=1\n"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640


def test_bytes_that_are_not_utf8_survive(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"caf\xe9\n")
    files.write_atomic(str(path), files.read_text(str(path)) or "")
    assert path.read_bytes() == b"caf\xe9\n"


@pytest.mark.parametrize("failing", ["replace", "fsync", "fchmod"])
def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    path = tmp_path / "f"
    path.write_text("old")

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, failing, full)
    with pytest.raises(OSError, match="No space left"):
        files.write_atomic(str(path), "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


def test_reading_and_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    assert files.read_text(str(tmp_path / "none" / "f")) is None
    files.remove(str(tmp_path / "f"))
