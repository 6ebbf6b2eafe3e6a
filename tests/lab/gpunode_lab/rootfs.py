# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The node's root filesystem without kernels: Debian with systemd, ssh, containerd and the rest, as debootstrap and apt make it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from . import chroot
from .archive import KEYRING, SUITE, Archive
from .cache import built, cache_root, key
from .errors import LabError
from .progress import Progress

PACKAGES = (
    # a Debian server that Ansible reaches
    "systemd", "systemd-sysv", "dbus", "udev", "kmod", "openssh-server", "python3", "python3-apt", "sudo", "iproute2", "procps", "psmisc", "less",
    # what boots it
    "grub-pc", "initramfs-tools", "busybox", "zstd",
    # what a node of Kubernetes needs
    "containerd", "runc", "containernetworking-plugins", "nftables", "iptables", "conntrack", "socat", "ethtool",
    # what upgrades it by itself
    "unattended-upgrades", "apt-utils", "lsof",
)

_NO_SERVICES = "#!/bin/sh\nexit 101\n"  # policy-rc.d: nothing is started inside the chroot


def build_rootfs(progress: Progress) -> Path:
    """The folder `root` with the filesystem; needs root and a reachable archive."""
    archive = Archive()

    def build(folder: Path) -> None:
        _build(folder, archive)

    entry = cache_root() / "rootfs" / key(SUITE, *PACKAGES, Path(__file__).read_bytes(), *archive.sources.values())
    return built(entry, build, "node image: root filesystem", progress) / "root"


def _build(folder: Path, archive: Archive) -> None:
    root, log = folder / "root", folder / "build.log"
    command = ["debootstrap", "--variant=minbase", f"--keyring={KEYRING}", "--include=ca-certificates", SUITE, str(root), archive.sources[SUITE]]
    with open(log, "ab") as output:
        answer = subprocess.run(["nice", "-n", "5", *command], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False)
    if answer.returncode:
        raise LabError(f"debootstrap of {SUITE} from {archive.sources[SUITE]} failed ({answer.returncode})", "Make the Debian archive reachable, as root")
    (root / "etc/apt/sources.list").write_text(archive.sources_list(), "utf-8")
    (root / "etc/apt/apt.conf.d/10lab").write_text('APT::Install-Recommends "false";\nAcquire::Languages "none";\nAcquire::Retries "3";\n', "utf-8")
    (root / "etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n", "ascii")
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text(_NO_SERVICES, "ascii")
    policy.chmod(0o755)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    shutil.copy("/etc/hosts", root / "etc/hosts")
    (root / "usr/share/keyrings").mkdir(parents=True, exist_ok=True)
    shutil.copy(KEYRING, root / "usr/share/keyrings")
    debconf = "grub-pc grub-pc/install_devices_empty boolean true\ngrub-pc grub-pc/install_devices multiselect\n"
    (root / "root/debconf").write_text(debconf, "ascii")
    steps = (["debconf-set-selections", "/root/debconf"], ["apt-get", "update"], ["apt-get", "-y", "dist-upgrade"],
             ["apt-get", "-y", "install", *PACKAGES], ["apt-get", "clean"])
    for words in steps:
        chroot.run(root, words, log=log)
    for path in (policy, root / "etc/dpkg/dpkg.cfg.d/unsafe-io", root / "root/debconf", root / "etc/resolv.conf", root / "etc/machine-id"):
        path.unlink(missing_ok=True)
