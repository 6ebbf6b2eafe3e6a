# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""dpkg's locks, with real processes holding them; its journal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.holds import demand_finished
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.lock import holder, package_lock
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError

HOLD = "import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.lockf(f,fcntl.LOCK_EX); print('locked',flush=True); sys.stdin.read()"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "var/lib/dpkg/updates").mkdir(parents=True)
    (tmp_path / "var/lib/apt/lists").mkdir(parents=True)
    return tmp_path


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Another process with the lock on a file; it ends with the block."""
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        yield other.pid
        other.communicate()


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("name", ["var/lib/dpkg/lock-frontend", "var/lib/dpkg/lock", "var/lib/apt/lists/lock"])
def test_who_has_a_lock_is_named_and_nothing_is_touched(root: Path, name: str, write: bool) -> None:
    with locked(root / name) as pid:
        assert holder(str(root / name)) == pid
        with pytest.raises(HygieneError) as refusal, package_lock(0.2, write, str(root)):
            pytest.fail("the lock is somebody else's")
    assert refusal.value.seen.startswith(f"{root}/{name} is locked by process {pid} ({sys.executable} -c")
    assert refusal.value.seen.endswith("(waited 0.2 s)")
    assert "nothing was changed" in refusal.value.why


def test_a_lock_that_is_given_up_in_time_is_taken(root: Path) -> None:
    lock = root / "var/lib/dpkg/lock-frontend"
    waiting = "import fcntl,sys,time; f=open(sys.argv[1],'w'); fcntl.lockf(f,fcntl.LOCK_EX); print('locked',flush=True); time.sleep(0.5)"
    with subprocess.Popen([sys.executable, "-c", waiting, str(lock)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with package_lock(30, True, str(root)):
            assert other.wait() == 0


def test_while_it_is_taken_others_see_it_and_afterwards_not(root: Path) -> None:
    lock = str(root / "var/lib/dpkg/lock-frontend")
    probe = [sys.executable, "-c", "import fcntl,sys; fcntl.lockf(open(sys.argv[1],'w'),fcntl.LOCK_EX|fcntl.LOCK_NB)", lock]
    with package_lock(0, True, str(root)):
        assert b"BlockingIOError" in subprocess.run(probe, capture_output=True, check=False).stderr
    assert subprocess.run(probe, check=False).returncode == 0


def test_a_look_without_writing_creates_no_lock_file(root: Path) -> None:
    with package_lock(0, False, str(root)):
        assert files(root) == []
    assert holder(str(root / "var/lib/dpkg/lock-frontend")) is None


def test_a_host_without_dpkg_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HygieneError, match="lock-frontend cannot be opened") as refusal, package_lock(0, True, str(tmp_path)):
        pytest.fail("there is nothing to lock")
    assert refusal.value.remedy == "Run this on a writable host that has dpkg"


def test_an_error_inside_gives_the_lock_back(root: Path) -> None:
    with pytest.raises(ValueError, match="inside"), package_lock(0, True, str(root)):
        raise ValueError("inside")
    assert not [entry for entry in os.listdir("/proc/self/fd") if os.path.realpath(f"/proc/self/fd/{entry}").endswith("lock-frontend")]


@pytest.mark.parametrize(("names", "refused"), [([], False), (["tmp.i"], False), (["0000", "tmp.i"], True)])
def test_dpkgs_journal_tells_an_interrupted_run(root: Path, names: list[str], refused: bool) -> None:
    for name in names:
        (root / "var/lib/dpkg/updates" / name).touch()
    if refused:
        with pytest.raises(HygieneError) as refusal:
            demand_finished(str(root))
        assert refusal.value.remedy == "Run `dpkg --configure -a`"
        assert "0000" in refusal.value.seen
    else:
        demand_finished(str(root))
