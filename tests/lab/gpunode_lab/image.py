# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The node's disk: root filesystem, the older kernel, kubelet, keys and settings, made bootable by GRUB's own installer inside the machine."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from . import aptrepo, chroot, dockerarchive, gotool
from .accelerator import identity
from .archive import Archive, Kernel
from .binaries import control_plane_binaries, kubernetes_version
from .cache import built, cache_root, key
from .controlplane import SERVICE_ADDRESS, kubeconfig_text
from .pki import Authority
from .ports import free_ports
from .process import ProcessTable
from .progress import Progress
from .rootfs import build_rootfs
from .ssh import Connection, make_key
from .vm import Ports, VirtualMachine, make_overlay

NODE = "gpu-node-1"
PAUSE_IMAGE = "registry.k8s.io/pause:3.6"
GUEST_FILES = Path(__file__).resolve().parents[1] / "guest"
DISK_BYTES = 10 << 30
SECTOR = 512
PARTITION_START = 1 << 20  # room for GRUB's core image after the partition table
FILESYSTEM = "6770756e-6f64-4e2d-8c61-622d726f6f74"  # UUID of the root filesystem
GUEST_REPOSITORY = "http://10.0.2.2:8080/"
_LATER = "apt-daily.timer", "apt-daily-upgrade.timer", "unattended-upgrades.service", "e2scrub_all.timer", "fstrim.timer", "dpkg-db-backup.timer"


@dataclass(frozen=True)
class Image:
    """A built node image.

    :param folder: `disk.qcow2`, `pki/` (the cluster's authority), `ssh/` (client and host key).
    """

    folder: Path

    @property
    def disk(self) -> Path:
        """The disk, never written again."""
        return self.folder / "disk.qcow2"

    @property
    def pki(self) -> Path:
        """The authority whose certificate the kubelet trusts."""
        return self.folder / "pki"

    @property
    def ssh_key(self) -> Path:
        """The private key that root@node accepts."""
        return self.folder / "ssh" / "client"

    @property
    def host_key(self) -> str:
        """The node's public host key, for known_hosts."""
        return (self.folder / "ssh" / "host.pub").read_text("ascii")


def image_key(kernel: Kernel, repository: Path) -> str:
    """What the image depends on."""
    folder = Path(__file__).parent
    sources = [folder / f"{name}.py" for name in ("image", "rootfs", "chroot", "pki", "dockerarchive")]
    go = [gotool.GO_SOURCES / "go.mod", gotool.GO_SOURCES / "cmd" / "pause"]
    return key(GUEST_FILES, *sources, *go, kernel.release, kernel.version, repository.name, identity())


def build_image(progress: Progress) -> Image:
    """The node image; needs root and a reachable archive the first time."""
    repository = aptrepo.build(progress)
    kernel = aptrepo.kernels(Archive()).older

    def build(folder: Path) -> None:
        _Builder(folder, kernel, repository, progress).build()

    return Image(built(cache_root() / "image" / image_key(kernel, repository), build, "node image", progress))


def partition_table(start: int, size: int) -> bytes:
    """A master boot record without code whose only partition, of type Linux, goes from `start` to `size` (bytes)."""
    no_geometry = b"\xfe\xff\xff"  # cylinder, head and sector that say: use the sector numbers
    entry = b"\x80" + no_geometry + b"\x83" + no_geometry + struct.pack("<II", start // SECTOR, (size - start) // SECTOR)
    return bytes(446) + entry.ljust(64, b"\0") + b"\x55\xaa"


class _Builder:
    def __init__(self, folder: Path, kernel: Kernel, repository: Path, progress: Progress) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.kernel = kernel
        self.repository = repository
        self.progress = progress
        self.log = folder / "build.log"

    def build(self) -> None:
        rootfs = build_rootfs(self.progress)
        with self.progress.step("node image: kernel, kubelet, settings"):
            subprocess.run(["cp", "-a", "--reflink=auto", str(rootfs), str(self.root)], check=True)
            self._install_kernel()
            self._write_settings()
            self._write_programs()
            self._write_keys()
        with self.progress.step("node image: file system"):
            self._make_disk()
        with self.progress.step("node image: first boot and installation of GRUB"):
            self._first_boot()
        shutil.rmtree(self.root)

    def _install_kernel(self) -> None:
        (self.root / "usr/share/keyrings/gpunode-lab.gpg").write_bytes((self.repository / "key.gpg").read_bytes())
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        (self.root / "etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n", "ascii")
        sources = self.root / "etc/apt/sources.list.d/lab.list"
        sources.write_text("deb [signed-by=/usr/share/keyrings/gpunode-lab.gpg] file:/srv/lab-repository ./\n", "ascii")
        metas = [f"{meta}={self.kernel.version}" for meta in aptrepo.METAS]
        for words in (["apt-get", "update"], ["apt-get", "-y", "install", *self.kernel.packages, *metas], ["apt-get", "clean"]):
            chroot.run(self.root, words, log=self.log, mounts=[(self.repository, "/srv/lab-repository")])
        (self.root / "srv/lab-repository").rmdir()
        for name in ("etc/apt/sources.list", "etc/apt/sources.list.d/lab.list", "etc/resolv.conf", "etc/dpkg/dpkg.cfg.d/unsafe-io"):
            (self.root / name).unlink()
        shutil.rmtree(self.root / "var/lib/apt/lists")
        (self.root / "var/lib/apt/lists/partial").mkdir(parents=True)

    def _write_settings(self) -> None:
        shutil.copytree(GUEST_FILES, self.root, dirs_exist_ok=True, symlinks=True)
        self._write("etc/hostname", f"{NODE}\n")
        self._write("etc/fstab", f"UUID={FILESYSTEM} / ext4 errors=remount-ro 0 1\n")
        self._write("etc/machine-id", "")  # systemd writes a real one at the first boot
        self._write("etc/resolv.conf", "")
        self._write("etc/apt/sources.list.d/lab.sources",
                    f"Types: deb\nURIs: {GUEST_REPOSITORY}\nSuites: ./\nSigned-By: /usr/share/keyrings/gpunode-lab.gpg\n")
        chroot.run(self.root, ["systemctl", "enable", "systemd-networkd", "ssh", "containerd", "kubelet", "lab-ports"], log=self.log)
        chroot.run(self.root, ["systemctl", "disable", *_LATER], log=self.log)
        chroot.run(self.root, ["systemctl", "mask", "systemd-networkd-wait-online.service"], log=self.log)

    def _write_programs(self) -> None:
        shutil.copy(control_plane_binaries(self.progress) / "kubelet", self.root / "usr/local/bin/kubelet")
        programs = built(cache_root() / "pause" / key(gotool.GO_SOURCES / "cmd" / "pause"), self._build_pause, "pause (Go)", self.progress)
        dockerarchive.write(self.root / "var/lib/lab/images/pause.tar", [PAUSE_IMAGE], {"pause": programs / "pause"}, entrypoint=["/pause"])

    def _build_pause(self, folder: Path) -> None:
        gotool.build(folder, ["./cmd/pause"], self.progress)

    def _write_keys(self) -> None:
        authority = Authority(self.folder / "pki")
        client = authority.issue("kubelet-client", f"system:node:{NODE}", groups=["system:nodes"])
        server = authority.issue("kubelet-server", f"system:node:{NODE}", groups=["system:nodes"], hosts=[NODE, "10.0.2.15"])
        inside = self.root / "etc/kubernetes/pki"
        inside.mkdir(parents=True)
        shutil.copy(authority.pair.certificate, inside / "ca.crt")
        shutil.copy(server.certificate, inside / "kubelet.crt")
        shutil.copy(server.key, inside / "kubelet.key")
        kubeconfig = kubeconfig_text(f"https://{SERVICE_ADDRESS}:443", authority.pair.certificate, client)
        self._write("etc/kubernetes/kubelet.kubeconfig", kubeconfig, mode=0o600)
        make_key(self.folder / "ssh" / "client")
        make_key(self.folder / "ssh" / "host")
        for path in (self.root / "etc/ssh").glob("ssh_host_*"):
            path.unlink()
        shutil.copy(self.folder / "ssh" / "host", self.root / "etc/ssh/ssh_host_ed25519_key")
        shutil.copy(self.folder / "ssh" / "host.pub", self.root / "etc/ssh/ssh_host_ed25519_key.pub")
        self._write("root/.ssh/authorized_keys", (self.folder / "ssh" / "client.pub").read_text("ascii"), mode=0o600)

    def _make_disk(self) -> None:
        raw = self.folder / "disk.raw"
        with open(raw, "wb") as disk:
            disk.write(partition_table(PARTITION_START, DISK_BYTES))
            disk.truncate(DISK_BYTES)
        size = (DISK_BYTES - PARTITION_START) // 1024
        options = f"offset={PARTITION_START},lazy_itable_init=0,lazy_journal_init=0"
        subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", "-E", options, "-U", FILESYSTEM, "-d", str(self.root), str(raw), f"{size}k"],
                       check=True, capture_output=True)

    def _first_boot(self) -> None:
        raw, scratch = self.folder / "disk.raw", self.folder / "first-boot"
        machine = VirtualMachine(scratch, ProcessTable(scratch / "run"))
        make_overlay(machine.disk, raw)
        port = free_ports(1)[0]
        node = Connection(port, self.folder / "ssh" / "client", scratch / "known_hosts")
        node.trust((self.folder / "ssh" / "host.pub").read_text("ascii"))
        # The kernel is started by QEMU itself: nothing on the disk can boot yet.
        kernel = ["-kernel", str(self.root / f"boot/vmlinuz-{self.kernel.release}"), "-initrd", str(self.root / f"boot/initrd.img-{self.kernel.release}"),
                  "-append", f"root=UUID={FILESYSTEM} console=ttyS0,115200 systemd.mask=kubelet.service"]
        machine.start(Ports(port, "127.0.0.1", 1, 1), str(uuid.uuid4()), direct=kernel)
        try:
            node.wait(240, machine.demand_running)
            for command in (
                "echo grub-pc grub-pc/install_devices multiselect /dev/vda | debconf-set-selections",
                "update-initramfs -u -k all", "grub-install /dev/vda", "update-grub", "ctr -n k8s.io images import /var/lib/lab/images/pause.tar", "sync",
            ):
                node.run(command, timeout=300)
            node.run("systemctl poweroff", check=False)
            machine.wait_power_off(90)
        finally:
            machine.stop()
        subprocess.run(["qemu-img", "convert", "-O", "qcow2", str(machine.disk), str(self.folder / "disk.qcow2")], check=True, capture_output=True)
        (self.folder / "image.json").write_text(json.dumps({
            "kernel": self.kernel.release, "kubernetes": kubernetes_version((gotool.GO_SOURCES / "go.mod").read_text("utf-8")),
        }), "ascii")
        shutil.rmtree(scratch)
        raw.unlink()

    def _write(self, name: str, text: str, mode: int = 0o644) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.touch(mode)
        path.write_text(text, "utf-8")
        path.chmod(mode)
