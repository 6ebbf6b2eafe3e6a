# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ways to break a lab's node. Each takes the lab and a kernel release, and is done as life does it: on disk, or by a process that runs.

What a kernel then does when it is booted with `panic=15`:

    panics              its first process exits: the kernel panics and reboots
    cannot_mount_root   the initramfs finds no root file system and reboots
    corrupt_vmlinuz     GRUB cannot load it
    emergency_mode      a file system of fstab cannot be mounted: a prompt on the console, no ssh
    no_network          it comes up without a network
    hard_hang           its first process spins for ever: nothing but a reset helps
    hangs_late          it comes up, then real-time tasks take every processor: only a hardware watchdog helps
    unit_fails          it comes up, and a service that ran under the other kernel has failed
"""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from .standins.images import BUSYBOX

if TYPE_CHECKING:
    from .lab import Lab

_S_DIR, _S_FILE, _S_CHAR = 0o040755, 0o100755, 0o020600


def cpio(entries: dict[str, bytes | None]) -> bytes:
    """An initramfs in cpio's newc format: executable files, folders (None), and /dev/console.

    :param entries: {path without leading slash: content}, parents first.
    """
    parts = [_cpio_entry(name, _S_DIR if content is None else _S_FILE, content or b"") for name, content in entries.items()]
    parts += [_cpio_entry("dev", _S_DIR, b""), _cpio_entry("dev/console", _S_CHAR, b"", device=(5, 1)), _cpio_entry("TRAILER!!!", 0, b"")]
    return b"".join(parts)


def _cpio_entry(name: str, mode: int, content: bytes, device: tuple[int, int] = (0, 0)) -> bytes:
    raw_name = name.encode() + b"\0"
    fields = (0, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(raw_name), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return _padded(header + raw_name) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def panics(lab: Lab, release: str) -> None:
    """An initrd whose init exits."""
    _replace_initrd(lab, release, "echo 'init gives up'; exit 1")


def hard_hang(lab: Lab, release: str) -> None:
    """An initrd whose init spins."""
    _replace_initrd(lab, release, "echo 'init hangs'; while :; do :; done")


def cannot_mount_root(lab: Lab, release: str) -> None:
    """An initrd without the disk's driver and the root file system's."""
    lab.ssh(
        "set -e; settings=$(mktemp -d); cp -a /etc/initramfs-tools/. $settings; echo MODULES=list >$settings/conf.d/zz-fault; "
        f"mkinitramfs -d $settings -o /boot/initrd.img-{release} {release}; rm -r $settings; sync",
        timeout=600,
    )


def corrupt_vmlinuz(lab: Lab, release: str) -> None:
    """A kernel image whose header is overwritten."""
    lab.ssh(f"dd if=/dev/urandom of=/boot/vmlinuz-{release} bs=4096 count=1 conv=notrunc status=none && sync")


def emergency_mode(lab: Lab, release: str) -> None:
    """An fstab entry with a file system type that only this kernel cannot mount."""
    lab.ssh(
        "set -e; mkdir -p /srv/data; truncate -s 4M /srv/data.img; mkfs.minix /srv/data.img >/dev/null; "
        "echo '/srv/data.img /srv/data minix loop 0 0' >>/etc/fstab; systemctl daemon-reload; mount /srv/data; "
        f"rm -r /lib/modules/{release}/kernel/fs/minix; depmod {release}; sync"
    )


def no_network(lab: Lab, release: str) -> None:
    """The network interface's driver is missing from this kernel and its initrd."""
    lab.ssh(f"set -e; rm /lib/modules/{release}/kernel/drivers/net/virtio_net.ko; depmod {release}; update-initramfs -u -k {release}; sync", timeout=600)


def hangs_late(lab: Lab, release: str) -> None:
    """A service that takes all processors from PID 1, under this kernel alone."""
    loop = "taskset -c $cpu chrt -f 99 sh -c 'while :; do :; done' &"
    script = f"sysctl -q kernel.sched_rt_runtime_us=-1; for cpu in $(seq 1 $(($(nproc) - 1))) 0; do {loop} done; wait"
    unit = (f"[Unit]\nDescription=Hangs kernel {release}\nConditionKernelVersion={release}\nAfter=multi-user.target\n"
            "[Service]\nExecStart=/usr/local/sbin/lab-hang\n[Install]\nWantedBy=multi-user.target\n")
    lab.ssh("cat >/usr/local/sbin/lab-hang && chmod +x /usr/local/sbin/lab-hang", stdin=f"#!/bin/sh\n{script}\n")
    lab.ssh("cat >/etc/systemd/system/lab-hang.service && systemctl enable lab-hang.service && sync", stdin=unit)


def unit_fails(lab: Lab, release: str) -> None:
    """A service that runs under every kernel but this one."""
    unit = (f"[Unit]\nDescription=Needs another kernel than {release}\n[Service]\nType=oneshot\nRemainAfterExit=yes\n"
            f"ExecStart=/bin/sh -c 'test \"$(uname -r)\" != {release}'\n[Install]\nWantedBy=multi-user.target\n")
    lab.ssh("cat >/etc/systemd/system/lab-picky.service && systemctl enable --now lab-picky.service && sync", stdin=unit)


def missing_initrd(lab: Lab, release: str) -> None:
    """The kernel's initrd is gone."""
    lab.ssh(f"rm /boot/initrd.img-{release} && sync")


def full_boot(lab: Lab, _release: str) -> None:
    """/boot is a file system of its own with less than 1 MiB left."""
    lab.ssh(
        "set -e; size=$(($(du -sk --apparent-size /boot | cut -f1) + 12288)); mke2fs -q -t ext4 -m 0 -d /boot /var/lib/boot.img ${size}k; "
        "mount -o loop /var/lib/boot.img /boot; free=$(df --output=avail -k /boot | tail -1); "
        "fallocate -l $(((free - 512) * 1024)) /boot/left-over; test $(df --output=avail -k /boot | tail -1) -lt 1024",
        timeout=300,
    )


def held_apt_lock(lab: Lab, _release: str) -> None:
    """Another program holds dpkg's front-end lock, as apt does for the time it works."""
    code = "import fcntl, time; f = open('/var/lib/dpkg/lock-frontend', 'w'); fcntl.lockf(f, fcntl.LOCK_EX); open('/run/lab-apt-lock', 'w'); time.sleep(86400)"
    lab.ssh(f"systemd-run --quiet --unit=lab-apt-lock python3 -c {shlex.quote(code)} && timeout 30 sh -c 'until test -e /run/lab-apt-lock; do sleep 0.2; done'")


def _replace_initrd(lab: Lab, release: str, script: str) -> None:
    init = f"#!/bin/busybox sh\n{script}\n".encode()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "initrd.img"
        path.write_bytes(cpio({"bin": None, "bin/busybox": BUSYBOX.read_bytes(), "init": init}))
        lab.copy(path, f"/boot/initrd.img-{release}")
    lab.ssh("sync")
