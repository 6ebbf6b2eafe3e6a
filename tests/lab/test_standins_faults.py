# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The faults are what they claim to be, shown without the collection: each broken kernel is booted once by an entry of the test's own."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gpunode_lab import faults
from gpunode_lab.lab import Lab

# What the console says when the broken kernel is booted.
SIGNS = {
    "panics": "Kernel panic - not syncing: Attempted to kill init",
    "cannot_mount_root": "ALERT!  UUID=",
    "corrupt_vmlinuz": "error: invalid magic number",
    "emergency_mode": "You are in emergency mode",
    "no_network": "gpu-node-1 login:",
    "hard_hang": "init hangs",
    "unit_fails": "gpu-node-1 login:",
}
REBOOTS = {"panics", "cannot_mount_root", "corrupt_vmlinuz"}


@pytest.mark.quick
def test_an_initramfs_is_one_that_cpio_reads(tmp_path: Path) -> None:
    archive = faults.cpio({"bin": None, "bin/tool": b"\x7fELF odd length", "init": b"#!/bin/tool\n"})
    subprocess.run(["cpio", "-idm", "--quiet"], input=archive, cwd=tmp_path, check=True)
    assert (tmp_path / "bin/tool").read_bytes() == b"\x7fELF odd length"
    assert (tmp_path / "init").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "dev/console").stat().st_rdev == (5 << 8) + 1


# They share one lab. Every fault is also met in test_recover_kernel_mismatch.py, so only `make test-full` looks at them by themselves.
pytestmark = pytest.mark.xdist_group("test_standins_faults")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.started("faults", snapshot="incident") as started:
        started.save("whole")
        yield started


@pytest.fixture
def whole(lab: Lab) -> Iterator[Lab]:
    yield lab
    lab.restore("whole")


def boot_once(lab: Lab, release: str) -> int:
    """Boot `release` once by an entry that reboots when it fails; the serial log's length before."""
    entry = (f"menuentry 'once' --id once {{\n insmod part_msdos\n insmod ext2\n search --no-floppy --file --set=root /boot/vmlinuz-{release}\n"
             f" if linux /boot/vmlinuz-{release} root=UUID=$(findmnt -no UUID /) ro console=ttyS0,115200 panic=15 systemd.show_status=1; then\n"
             f"  if initrd /boot/initrd.img-{release}; then\n   boot\n  fi\n fi\n reboot\n}}\n")
    lab.ssh(f"cat >/boot/grub/custom.cfg <<ENTRY\n{entry}ENTRY\ngrub-script-check /boot/grub/custom.cfg && grub-reboot once && sync")
    before = len(lab.serial.read_bytes())
    lab.ssh("systemctl reboot", check=False)
    return before


def wait_for(condition: Callable[[], bool], patience: float) -> bool:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(1)
    return True


@pytest.mark.sample(0)
@pytest.mark.parametrize("fault", SIGNS)
def test_a_broken_kernel_fails_the_way_its_name_says(whole: Lab, fault: str) -> None:
    lab = whole
    getattr(faults, fault)(lab, lab.older_kernel)
    before = boot_once(lab, lab.older_kernel)

    def console() -> str:
        return lab.serial.read_bytes()[before:].decode("utf-8", "replace")

    assert wait_for(lambda: SIGNS[fault] in console(), 240), console()[-3000:]
    if fault in REBOOTS:
        lab.wait_ssh(300)
        assert lab.ssh("uname -r").stdout.strip() == lab.newer_kernel
    elif fault == "unit_fails":
        lab.wait_ssh(120)
        assert lab.ssh("uname -r").stdout.strip() == lab.older_kernel
        assert "lab-picky.service" in lab.ssh("systemctl --failed --plain --no-legend").stdout
    else:
        time.sleep(30)
        assert lab.ssh("true", check=False, timeout=30).returncode != 0
        lab.reset()
        lab.wait_ssh(300)
        assert lab.ssh("uname -r").stdout.strip() == lab.newer_kernel


@pytest.mark.sample(0)
def test_a_full_boot_has_less_than_a_mebibyte_left_and_its_files(whole: Lab) -> None:
    before = whole.ssh("cd /boot && find . -type f ! -path './lost+found*' -exec sha256sum {} + | sort").stdout
    faults.full_boot(whole, whole.older_kernel)
    assert int(whole.ssh("df --output=avail -k /boot | tail -1").stdout) < 1024
    assert whole.ssh("cd /boot && find . -type f ! -name left-over -exec sha256sum {} + | sort").stdout == before


@pytest.mark.sample(0)
def test_a_held_lock_makes_apt_wait(whole: Lab) -> None:
    faults.held_apt_lock(whole, whole.older_kernel)
    answer = whole.ssh("apt-get -y -oDPkg::Lock::Timeout=1 install --reinstall less", check=False)
    assert answer.returncode == 100
    assert "Could not get lock /var/lib/dpkg/lock-frontend" in answer.stderr


@pytest.mark.sample(0)
def test_a_missing_initrd_is_missing(whole: Lab) -> None:
    faults.missing_initrd(whole, whole.older_kernel)
    assert whole.ssh(f"ls /boot/initrd.img-{whole.older_kernel}", check=False).returncode == 2
    assert whole.ssh(f"ls /boot/vmlinuz-{whole.older_kernel}").returncode == 0
