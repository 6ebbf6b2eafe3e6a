# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The virtual machine: QEMU with a serial log, a control socket, user networking, and a running state that can be saved and restored."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .accelerator import CPUS, MEMORY_MB, PROGRAM, accelerator
from .cache import key
from .errors import LabError
from .process import ProcessTable


@dataclass(frozen=True)
class Ports:
    """Where the machine is reached and what it reaches.

    :param ssh: port on 127.0.0.1 that leads to the guest's ssh.
    :param kubelet_address: loopback address whose port 10250 leads to the guest's kubelet; one a lab, since the port is the Node object's.
    :param api: the API server's port on 127.0.0.1.
    :param repository: the apt repository's port on 127.0.0.1.
    """

    ssh: int
    kubelet_address: str
    api: int
    repository: int


def make_overlay(path: Path, backing: Path) -> None:
    """A qcow2 whose unwritten parts are read from `backing`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    backing_format = "raw" if backing.suffix == ".raw" else "qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(backing), "-F", backing_format, str(path)], check=True, capture_output=True)


class VirtualMachine:
    """One QEMU in one folder (overlay disk, serial log, control socket)."""

    def __init__(self, folder: Path, processes: ProcessTable) -> None:
        self.folder = folder
        self.processes = processes
        self.disk = folder / "disk.qcow2"
        self.serial = folder / "serial.log"

    def start(self, ports: Ports, uuid: str, *, direct: Sequence[str] = (), incoming: Path | None = None) -> None:
        """Start it.

        :param direct: further QEMU arguments, for example to boot a kernel without a boot loader.
        :param incoming: a saved running state; the machine then waits for `resume`.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        control = self._control()
        control.unlink(missing_ok=True)
        # The guest reads this by length, and a restored guest remembers the length: it must not vary.
        words = f"{ports.api} {ports.repository}".ljust(31)
        command: list[str | Path] = [
            PROGRAM, "-name", "gpu-node-1", "-nodefaults", "-uuid", uuid,
            "-machine", "pc", "-accel", accelerator(), "-cpu", "max", "-smp", str(CPUS), "-m", str(MEMORY_MB),
            "-display", "none", "-rtc", "base=utc",
            "-chardev", f"file,id=serial,path={self.serial},append=on", "-serial", "chardev:serial",
            "-qmp", f"unix:{control},server=on,wait=off",
            # A crash of the host may lose the lab; a crash of the guest loses only what is not in QEMU yet.
            "-drive", f"file={self.disk},format=qcow2,if=virtio,cache=unsafe,discard=unmap",
            "-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{ports.ssh}-:22,hostfwd=tcp:{ports.kubelet_address}:10250-:10250",
            "-device", "virtio-net-pci,netdev=net", "-device", "virtio-rng-pci",
            "-fw_cfg", f"name=opt/gpunode.lab/ports,string={words}\n", *direct,
        ]
        if incoming:
            command += ["-incoming", f"exec:cat {incoming}"]
        self.processes.start("qemu", command)
        self._wait_control()
        if incoming:
            self._wait_runstate({"paused", "postmigrate", "prelaunch"}, unwanted={"inmigrate"})

    def running(self) -> bool:
        """Whether QEMU is there (the guest may hang)."""
        return self.processes.get("qemu") is not None

    def stop(self) -> None:
        """End QEMU, as when the plug is pulled."""
        self.processes.stop("qemu")

    def wait_power_off(self, patience: float) -> None:
        """Wait until the guest has switched itself off.

        :raises LabError: it has not within `patience` seconds.
        """
        deadline = time.monotonic() + patience
        while self.running():
            if time.monotonic() > deadline:
                raise LabError(f"The machine did not power off within {patience:.0f} s", f"Read {self.serial}")
            time.sleep(0.3)
        self.processes.stop("qemu")

    def reset(self) -> None:
        """The reset button."""
        self._command("system_reset")

    def add_device(self, driver: str) -> None:
        """Plug in a PCI device, such as a watchdog (`i6300esb`), which resets the machine when it is armed and no longer fed."""
        self._command("device_add", driver=driver)

    def resume(self) -> None:
        """Let a restored or paused machine run."""
        self._command("cont")

    def pause(self) -> None:
        """Hold the machine's processors and clock."""
        self._command("stop")

    def save(self, state: Path) -> None:
        """Write the paused machine's running state to a file; afterwards it can only be stopped."""
        self._command("migrate-set-parameters", **{"max-bandwidth": 8 << 30})
        self._command("migrate", uri=f"exec:cat > {state}")
        deadline = time.monotonic() + 180
        while True:
            status = self._command("query-migrate")
            if status.get("status") == "completed":
                return
            if status.get("status") in ("failed", "cancelled") or time.monotonic() > deadline:
                raise LabError(f"QEMU did not save the machine's state: {status}", "Make room on the disk of the cache")
            time.sleep(0.1)

    def _control(self) -> Path:
        # A socket's path has at most 107 bytes, a cache folder may be longer.
        return Path(tempfile.gettempdir()) / f"gpunode-lab-{key(str(self.folder))}.qmp"

    def _wait_control(self) -> None:
        deadline = time.monotonic() + 15
        while not self._control().exists():
            self.demand_running()
            if time.monotonic() > deadline:
                raise LabError("QEMU opened no control socket within 15 s", f"Read {self.processes.log('qemu')}")
            time.sleep(0.05)

    def _wait_runstate(self, wanted: set[str], *, unwanted: set[str]) -> None:
        deadline = time.monotonic() + 120
        while True:
            status = str(self._command("query-status")["status"])
            if status in wanted:
                return
            if status not in unwanted or time.monotonic() > deadline:
                raise LabError(f"QEMU is {status}, not {' or '.join(sorted(wanted))}", f"Read {self.processes.log('qemu')}")
            time.sleep(0.1)

    def demand_running(self) -> None:
        """
        :raises LabError: QEMU ended; its last words are in the message.
        """
        if not self.running():
            raise LabError(f"QEMU ended: {self.processes.tail('qemu')}", f"Read {self.processes.log('qemu')}")

    def _command(self, name: str, **arguments: Any) -> dict[str, Any]:
        self.demand_running()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(str(self._control()))
            with connection.makefile("rw", encoding="utf-8") as stream:
                stream.readline()  # greeting
                answer: dict[str, Any] = {}
                for request in ({"execute": "qmp_capabilities"}, {"execute": name, "arguments": arguments}):
                    stream.write(json.dumps(request) + "\n")
                    stream.flush()
                    while not {"return", "error"} & (answer := json.loads(stream.readline())).keys():
                        continue
        if "error" in answer:
            raise LabError(f"QEMU refused {name}: {answer['error'].get('desc')}", f"Read {self.processes.log('qemu')}")
        result: dict[str, Any] = answer["return"]
        return result
