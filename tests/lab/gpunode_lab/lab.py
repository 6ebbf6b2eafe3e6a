# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A lab: one node, its control plane and its apt repository, in one folder; several may run side by side.

::

    with Lab.started("my-test", snapshot="incident") as lab:      # restored in seconds; the first time the snapshot is made
        lab.ssh("uname -r").stdout; lab.kubectl("get", "nodes").stdout
        lab.kubeconfig; lab.inventory                             # for ansible-playbook
        lab.save("here"); lab.restore("here")                     # the running machine, its disk and the cluster's data
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import random
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from . import aptrepo, gotool, registry
from .accelerator import identity
from .archive import Archive
from .cache import built, cache_root, key
from .controlplane import SERVICE_ADDRESS, ControlPlane
from .errors import LabError
from .image import NODE, Image, build_image
from .ports import free_ports
from .process import ProcessTable
from .progress import Progress
from .requirements import demand
from .ssh import Connection
from .vm import Ports, VirtualMachine, make_overlay

BASE = "base"
INCIDENTS = {"incident": "kernel_mismatch"}  # short names of snapshots
_PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class State:
    """What a lab's folder remembers in `lab.json`."""

    snapshot: str
    uuid: str
    ports: dict[str, Any]

    @property
    def vm_ports(self) -> Ports:
        """The machine's ports."""
        return Ports(**self.ports)


@functools.cache
def _kernels() -> aptrepo.Kernels:
    return aptrepo.kernels(Archive())


def incident_module(name: str) -> ModuleType:
    """The code that replays an incident: `replay(lab)`.

    :raises LabError: there is no such incident.
    """
    known = sorted(path.stem for path in (_PACKAGE / "incidents").glob("[a-z]*.py"))
    if name not in known:
        raise LabError(f"There is no incident {name}", f"Choose one of {', '.join(known)}")
    return importlib.import_module(f"gpunode_lab.incidents.{name}")


def folder_name(name: str) -> str:
    """A lab's name as it is where it has at most 60 letters, digits, `.`, `_` and `-`; otherwise shortened, and still different from every other."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name)
    return name if plain == name and len(name) <= 60 else f"{plain[:48]}-{key(name)[:8]}"


def inventory_text(connection: Connection) -> str:
    """An Ansible inventory (YAML) with the node, checked against the lab's own known_hosts."""
    options = ["-F", "/dev/null", "-o", f"UserKnownHostsFile={connection.known_hosts}", "-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes"]
    host = {
        "ansible_host": "127.0.0.1", "ansible_port": connection.port, "ansible_user": "root", "ansible_ssh_private_key_file": str(connection.key),
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_common_args": shlex.join(options),
    }
    return json.dumps({"all": {"children": {"gpu_nodes": {"hosts": {NODE: host}}}}}, indent=2) + "\n"


def kubelet_address() -> str:
    """A loopback address whose port 10250 is free. The port is part of the Node object and thus of snapshots; so labs differ in the address."""
    for _attempt in range(100):
        address = f"127.{random.randint(64, 127)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener, contextlib.suppress(OSError):
            listener.bind((address, 10250))
            return address
    raise LabError("No loopback address has a free port 10250", "End what listens there: ss -ltnp sport = :10250")


class Lab:
    """One lab by name; the object may be made in any process to look at or use a running lab.

    :param name: any text; see `folder_name`.
    :param cache: where labs and what they are built from lie; default: the project's cache.
    """

    def __init__(self, name: str = "default", cache: Path | None = None, progress: Progress | None = None) -> None:
        if cache:
            os.environ["GPUNODE_CACHE"] = str(cache)
        self.name = folder_name(name)
        self.folder = cache_root() / "labs" / self.name
        self.progress = progress or Progress(cache_root() / "durations.json")
        self.processes = ProcessTable(self.folder / "run")
        self.machine = VirtualMachine(self.folder / "vm", self.processes)
        self.repository = self.folder / "repository"
        self.inventory = self.folder / "inventory.yml"

    @classmethod
    @contextlib.contextmanager
    def started(cls, name: str, snapshot: str = BASE) -> Iterator[Lab]:
        """A fresh lab that is taken down at the end."""
        lab = cls(name)
        lab.down()
        try:
            lab.up(snapshot)
            yield lab
        finally:
            lab.down()

    # -- what it is made of -------------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """See `State`.

        :raises LabError: the lab is not up.
        """
        try:
            return State(**json.loads((self.folder / "lab.json").read_text("ascii")))
        except FileNotFoundError as error:
            raise LabError(f"The lab {self.name} is not up", "Run `lab up` first") from error

    @property
    def connection(self) -> Connection:
        """ssh to the node."""
        return Connection(self.state.vm_ports.ssh, self.folder / "ssh" / "client", self.folder / "ssh" / "known_hosts")

    @property
    def control_plane(self) -> ControlPlane:
        """The API server and its companions, in this lab's folder."""
        hosts = {NODE: self.state.vm_ports.kubelet_address}
        return ControlPlane(self.folder / "control-plane", hosts=hosts, tied=False, progress=self.progress)

    @property
    def kubeconfig(self) -> Path:
        """cluster-admin."""
        return self.folder / "control-plane" / "admin.kubeconfig"

    @property
    def serial(self) -> Path:
        """What GRUB, the kernel and systemd print."""
        return self.machine.serial

    @property
    def older_kernel(self) -> str:
        """The release of the kernel that the drivers support."""
        return _kernels().older.release

    @property
    def newer_kernel(self) -> str:
        """The release of the kernel that the accident installed."""
        return _kernels().newer.release

    @property
    def power_cycle_command(self) -> str:
        """A shell command that presses this lab's reset button, as a user's hook would through a BMC."""
        return shlex.join([sys.executable, str(_PACKAGE.parent / "lab"), "--name", self.name, "reset"])

    def environment(self) -> dict[str, str]:
        """What `lab env` prints."""
        return {"KUBECONFIG": str(self.kubeconfig), "ANSIBLE_INVENTORY": str(self.inventory), "GPUNODE_LAB": self.name}

    # -- up and down --------------------------------------------------------------------------------------------------------------------

    def up(self, snapshot: str = BASE) -> None:
        """Restore the lab from a snapshot: `base`, `incident` or an incident's name; makes the snapshot when the cache has none.

        :raises LabError: it runs already from another snapshot, or something does not work.
        """
        snapshot = INCIDENTS.get(snapshot, snapshot)
        if self.running():
            if self.state.snapshot != snapshot:
                raise LabError(f"The lab {self.name} is up from {self.state.snapshot}", "Run `lab down` first, or choose another --name")
            self.progress.say(f"lab {self.name} is up already")
            return
        if (self.folder / "lab.json").exists():
            self.progress.say(f"lab {self.name}: leftovers of a lab that did not end with `lab down`; taking them down")
        self.down()
        demand()
        saved = ensure_snapshot(snapshot, self.progress)
        with self.progress.step("lab up"):
            self._restore(saved, snapshot)

    def boot(self, image: Image) -> None:
        """Start the lab from the bare node image, with an empty cluster, and wait until the node is Ready."""
        self.down()
        shutil.copytree(image.pki, self.folder / "control-plane" / "pki")
        self._prepare_access(image.folder / "ssh", image.host_key)
        subprocess.run(["cp", "-al", str(aptrepo.build(self.progress)), str(self.repository)], check=True)
        make_overlay(self.machine.disk, image.disk)
        self._write_state("image", str(uuid.uuid4()))
        self._launch_servers()
        self.machine.start(self.state.vm_ports, self.state.uuid)
        self.control_plane.start()
        self.wait_ssh(240)
        self.wait_node_ready()

    def down(self) -> None:
        """Stop everything of this lab and remove its folder; safe to repeat."""
        self.machine.stop()
        registry.leave(self.name)
        if self.folder.exists():
            ControlPlane(self.folder / "control-plane", progress=self.progress).stop()
            for name in self.processes.names():
                self.processes.stop(name)
            shutil.rmtree(self.folder)

    def running(self) -> bool:
        """Whether its machine and servers are all there."""
        return (self.folder / "lab.json").exists() and self.machine.running() and self.control_plane.running() and self.processes.get("repository") is not None

    def status(self) -> dict[str, str]:
        """{part: what it does}, for people."""
        if not self.folder.exists():
            return {"lab": "down"}
        parts = {"lab": f"up from {self.state.snapshot}" if self.running() else "incomplete: run `lab down`"}
        parts["machine"] = "running" if self.machine.running() else "gone"
        parts["control plane"] = "running" if self.control_plane.running() else "gone"
        parts["apt repository"] = "served" if self.processes.get("repository") else "gone"
        if self.running():
            node = self.kubectl("get", "node", NODE, "--no-headers", "-o", "wide", check=False)
            parts["node"] = (node.stdout or node.stderr).strip()
            kernel = self.ssh("uname -r", check=False, timeout=20)
            parts["kernel"] = kernel.stdout.strip() or "the node does not answer"
        return parts

    # -- use ----------------------------------------------------------------------------------------------------------------------------

    def ssh(self, command: str, timeout: float = 120, *, check: bool = True, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a shell command as root on the node."""
        return self.connection.run(command, timeout=timeout, check=check, stdin=stdin)

    def copy(self, local: Path, remote: str) -> None:
        """Copy a file or folder to the node."""
        self.connection.copy(local, remote)

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run kubectl as cluster-admin."""
        return self.control_plane.kubectl(*arguments, stdin=stdin, check=check, timeout=timeout)

    def reset(self) -> None:
        """Press the machine's reset button."""
        self.machine.reset()

    def wait_ssh(self, patience: float = 240) -> None:
        """Wait until a command runs on the node."""
        try:
            self.connection.wait(patience, self.machine.demand_running)
        except LabError as error:
            lines = "\n".join(self.serial.read_text("utf-8", "replace").splitlines()[-8:])
            raise LabError(f"{error.seen}; the console ends with:\n{lines}\n", f"Read {self.serial}") from error

    def wait_until_it_goes_down(self, patience: float = 120) -> None:
        """Wait until the node no longer answers ssh, as when it reboots.

        :raises LabError: it still answers after `patience` seconds.
        """
        deadline = time.monotonic() + patience
        while self.connection.run("test ! -e /run/nologin", check=False, timeout=15).returncode == 0:
            if time.monotonic() > deadline:
                raise LabError(f"The node still answers after {patience:.0f} s", "See on its console why it does not reboot")
            time.sleep(0.5)

    def wait_node_ready(self, patience: float = 180) -> None:
        """Wait until the Node is Ready with the running boot's id.

        :raises LabError: it is not within `patience` seconds.
        """
        boot_id = self.ssh("cat /proc/sys/kernel/random/boot_id").stdout.strip()
        path = '{.status.nodeInfo.bootID} {.status.conditions[?(@.type=="Ready")].status}'
        deadline = time.monotonic() + patience
        while True:
            found = self.kubectl("get", "node", NODE, "-o", f"jsonpath={path}", check=False)
            if found.stdout.split() == [boot_id, "True"]:
                return
            if time.monotonic() > deadline:
                logs = self.ssh("journalctl -u kubelet -n 8 --no-pager -o cat", check=False).stdout
                raise LabError(f"{NODE} is not Ready within {patience:.0f} s: {(found.stdout or found.stderr).strip()}; the kubelet says: {logs}",
                               "Look with `lab ssh journalctl -u kubelet`")
            time.sleep(1)

    def unreachable_kubeconfig(self) -> Path:
        """A kubeconfig of this cluster in which the API server's port is one that nobody listens on."""
        path = self.folder / "unreachable.kubeconfig"
        path.touch(0o600)
        path.write_text(self.kubeconfig.read_text("utf-8").replace(self.control_plane.url, f"https://127.0.0.1:{free_ports(1)[0]}"), "utf-8")
        return path

    # -- snapshots ----------------------------------------------------------------------------------------------------------------------

    def save(self, name: str) -> None:
        """Save the lab as it runs under a name of its own; it goes on running."""
        target = self.folder / "saved" / name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        self.save_to(target)
        self._restore(target, self.state.snapshot)

    def restore(self, name: str) -> None:
        """Bring back what `save` saved.

        :raises LabError: nothing was saved under that name.
        """
        saved = self.folder / "saved" / name
        if not (saved / "snapshot.json").exists():
            raise LabError(f"The lab {self.name} saved nothing as {name}", f"Call save({name!r}) first")
        self._restore(saved, self.state.snapshot)

    def save_to(self, folder: Path) -> None:
        """Move the lab's running state into `folder`; the lab's processes are stopped."""
        self.ssh("sync")
        self.machine.pause()
        self.machine.save(folder / "memory")
        self.machine.stop()
        self.control_plane.stop()
        self.machine.disk.rename(folder / "disk.qcow2")
        shutil.copytree(self.folder / "control-plane" / "etcd", folder / "etcd")
        shutil.copytree(self.folder / "control-plane" / "pki", folder / "pki")
        shutil.copytree(self.folder / "ssh", folder / "ssh")
        subprocess.run(["cp", "-al", str(self.repository), str(folder / "repository")], check=True)
        (folder / "snapshot.json").write_text(json.dumps({"uuid": self.state.uuid}), "ascii")

    def _restore(self, saved: Path, snapshot: str) -> None:
        self.machine.stop()
        plane = self.folder / "control-plane"
        ControlPlane(plane, progress=self.progress).stop()
        for part in ("etcd", "pki"):
            shutil.rmtree(plane / part, ignore_errors=True)
            shutil.copytree(saved / part, plane / part)
        shutil.rmtree(self.repository, ignore_errors=True)
        subprocess.run(["cp", "-al", str(saved / "repository"), str(self.repository)], check=True)
        self._prepare_access(saved / "ssh", (saved / "ssh" / "host.pub").read_text("ascii"))
        self.machine.disk.unlink(missing_ok=True)
        make_overlay(self.machine.disk, saved / "disk.qcow2")
        self._write_state(snapshot, json.loads((saved / "snapshot.json").read_text("ascii"))["uuid"])
        self._launch_servers()
        self.machine.start(self.state.vm_ports, self.state.uuid, incoming=saved / "memory")
        self.control_plane.start()
        self.machine.resume()
        self.wait_ssh(60)
        # Neither the clock nor the ports are what they were when the machine was saved, and its connections lead nowhere.
        self.ssh(f"date -s @{time.time():.0f}; hwclock --systohc --utc; /usr/local/sbin/lab-ports; conntrack -F; ss -K dst {SERVICE_ADDRESS}")
        self.wait_heartbeat(time.time())

    def wait_heartbeat(self, since: float, patience: float = 90) -> None:
        """Wait until the kubelet has renewed its lease after `since` (seconds since the epoch), and the Node is Ready."""
        deadline = time.monotonic() + patience
        while True:
            lease = self.kubectl("get", "lease", "-n", "kube-node-lease", NODE, "-o", "jsonpath={.spec.renewTime}", check=False).stdout
            if lease and _seconds(lease) >= since - 1:
                return self.wait_node_ready()
            if time.monotonic() > deadline:
                raise LabError(f"The kubelet of {NODE} has not renewed its lease for {patience:.0f} s", "Look with `lab ssh journalctl -u kubelet`")
            time.sleep(0.5)

    # -- pieces -------------------------------------------------------------------------------------------------------------------------

    def _prepare_access(self, keys: Path, host_key: str) -> None:
        target = self.folder / "ssh"
        target.mkdir(parents=True, exist_ok=True)
        for name in ("client", "client.pub", "host.pub"):
            shutil.copy(keys / name, target / name)
        self._host_key = host_key

    def _write_state(self, snapshot: str, machine: str) -> None:
        ssh, repository = free_ports(2)
        ports = Ports(ssh=ssh, kubelet_address=kubelet_address(), api=0, repository=repository)
        self._save_state(State(snapshot, machine, asdict(ports)))
        self.connection.trust(self._host_key)
        self.inventory.write_text(inventory_text(self.connection), "utf-8")

    def _save_state(self, state: State) -> None:
        (self.folder / "lab.json").write_text(json.dumps(asdict(state)), "ascii")

    def _launch_servers(self) -> None:
        state = self.state
        self.processes.start("repository", [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", self.repository,
                                            str(state.vm_ports.repository)])
        registry.join(self.name)
        self.control_plane.launch()
        self._save_state(State(state.snapshot, state.uuid, {**state.ports, "api": self.control_plane.port}))


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def snapshot_key(snapshot: str, image: Image) -> str:
    """What a snapshot depends on: the image, the stand-ins, this code, QEMU, and for an incident its replay."""
    sources = [_PACKAGE / "standins", gotool.GO_SOURCES, _PACKAGE.parent / "modules", _PACKAGE / "modules.py", _PACKAGE / "aptrepo.py"]
    parts: list[str | bytes | Path] = [image.folder.name, identity(), *(path for path in sources if path.exists())]
    if snapshot != BASE:
        parts.append(Path(str(incident_module(snapshot).__file__)))
    return key(*parts)


def ensure_snapshot(snapshot: str, progress: Progress) -> Path:
    """The folder of a snapshot in the cache, made when it is not there."""
    image = build_image(progress)
    entry = cache_root() / "snapshots" / f"{snapshot}-{snapshot_key(snapshot, image)}"

    def build(folder: Path) -> None:
        lab = Lab(f"building-{entry.name}", progress=progress)
        try:
            if snapshot == BASE:
                from . import standins  # imports this module

                lab.boot(image)
                standins.deploy(lab)
            else:
                lab.down()
                lab._restore(ensure_snapshot(BASE, progress), BASE)  # pylint: disable=protected-access  # the same module
                incident_module(snapshot).replay(lab)
            lab.save_to(folder)
        finally:
            lab.down()

    return built(entry, build, f"snapshot {snapshot}", progress)


def all_labs() -> list[str]:
    """The names of the labs that have a folder."""
    folder = cache_root() / "labs"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
