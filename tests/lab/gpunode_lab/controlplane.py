# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.

Usage, without any virtual machine (ready in about 4 s; the first call on a machine builds the binaries, about 4 min)::

    from gpunode_lab.controlplane import ControlPlane

    with ControlPlane(tmp_path / "cp") as cp:             # starts; stops at the end, also when the process is killed
        cp.kubeconfig                                     # Path; cluster-admin, context "lab"
        cp.url                                            # "https://127.0.0.1:<port>"
        cp.kubectl("get", "nodes", "-o", "json").stdout   # real kubectl; raises CalledProcessError (check=False to look)
        cp.kubectl("apply", "-f", "-", stdin=manifest)
        cp.user_kubeconfig("viewer", groups=["readers"])  # Path; another user, for RBAC tests
        cp.pause("kube-apiserver"); cp.resume("kube-apiserver")      # SIGSTOP and SIGCONT: an API server that hangs
        cp.stop_server("kube-apiserver"); cp.start_server("kube-apiserver")   # one that is gone and comes back
        cp.stop(); cp.start()                             # all of it; the etcd data in the folder stays

RBAC is on; there are no nodes until a kubelet or `gpunode_lab.kwok` makes some. Names are real throughout, nothing is mocked.
In a pytest suite keep one per session (fixture scope "session") and one namespace per test.
"""

from __future__ import annotations

import base64
import http.client
import os
import shutil
import signal
import ssl
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from .binaries import control_plane_binaries
from .cache import cache_root
from .errors import LabError
from .pki import Authority, Pair, signing_key
from .ports import free_ports
from .process import ProcessTable
from .progress import Progress

SERVICE_RANGE = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"  # the first of the range is the service `kubernetes`
HOST_FROM_GUEST = "10.0.2.2"  # QEMU user networking: the guest's name for the host's 127.0.0.1
SERVERS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


class ControlPlane:
    """One control plane in one folder (keys, etcd data, logs, pid files).

    :param folder: where it lives; started again there, it has the same data and identity.
    :param hosts: extra {name: loopback address} that the API server alone sees, so that it reaches a kubelet by its node's name (needs root).
    :param tied: end the servers when the starting thread ends.
    """

    def __init__(self, folder: Path, *, hosts: dict[str, str] | None = None, tied: bool = True, progress: Progress | None = None) -> None:
        self.folder = folder
        self.hosts = hosts or {}
        self.tied = tied
        self.progress = progress or Progress(cache_root() / "durations.json")
        self.processes = ProcessTable(folder / "run")
        self.kubeconfig = folder / "admin.kubeconfig"
        self.authority = Authority(folder / "pki")
        self._port_file = folder / "run" / "ports"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The API server's port on 127.0.0.1; known once started."""
        return self._ports()["kube-apiserver"]

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def binaries(self) -> Path:
        """The folder with kube-apiserver, kubectl, kubelet and so on."""
        return control_plane_binaries(self.progress)

    def start(self, patience: float = 90.0) -> None:
        """Start all servers and wait until the API answers and the controllers work.

        :raises LabError: etcd is missing, or a server ended or did not become ready within `patience` seconds.
        """
        self.launch()
        try:
            self.wait_ready(patience)
        except LabError:
            self.stop()
            raise

    def launch(self) -> None:
        """Start all servers that do not run yet, on new ports, without waiting."""
        if not self.running():
            self.stop()
            self._choose_ports()
            for name in SERVERS:
                self.start_server(name)

    def stop(self) -> None:
        """Stop all servers, the API's users first; safe to repeat."""
        for name in (*(set(self.processes.names()) - set(SERVERS)), *reversed(SERVERS)):
            self.processes.stop(name)

    def running(self) -> bool:
        """Whether every server's process is there."""
        return all(self.processes.get(name) for name in SERVERS)

    def start_server(self, name: str) -> None:
        """Start one of `SERVERS` with the ports chosen by `start`."""
        command = {
            "etcd": self._etcd, "kube-apiserver": self._apiserver, "kube-controller-manager": self._controller_manager, "kube-scheduler": self._scheduler,
        }[name]()
        self.processes.start(name, command, tied=self.tied)

    def start_companion(self, name: str, command: Sequence[str]) -> None:
        """Start another program that belongs to this control plane and ends with it."""
        self.processes.start(name, command, tied=self.tied)

    def stop_server(self, name: str) -> None:
        """Stop one of `SERVERS`."""
        self.processes.stop(name)

    def pause(self, name: str) -> None:
        """Make one of `SERVERS` hang."""
        self._signal(name, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let a paused one go on."""
        self._signal(name, signal.SIGCONT)

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run the real kubectl as cluster-admin; `check=False` to look at a failure instead of raising `CalledProcessError`."""
        command = [str(self.binaries / "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        answer = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=timeout)
        if check and answer.returncode:
            raise subprocess.CalledProcessError(answer.returncode, command, answer.stdout, f"{answer.stderr}")
        return answer

    def user_kubeconfig(self, user: str, *, groups: Sequence[str] = (), url: str | None = None, path: Path | None = None) -> Path:
        """A kubeconfig with a client certificate for `user` in `groups`; self-contained."""
        pair = self.authority.issue(f"user-{user.replace(':', '-')}", user, groups=groups)
        path = path or self.folder / f"{user.replace(':', '-')}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(kubeconfig_text(url or self.url, self.authority.pair.certificate, pair), "utf-8")
        return path

    def wait_ready(self, patience: float) -> None:
        """Wait for /readyz and for the controllers' first fruit, the default service account."""
        admin = self.authority.issue("admin", "lab-admin", groups=["system:masters"])
        context = ssl.create_default_context(cafile=str(self.authority.pair.certificate))
        context.load_cert_chain(admin.certificate, admin.key)
        deadline = time.monotonic() + patience
        for path in ("/readyz", "/api/v1/namespaces/default/serviceaccounts/default"):
            while _status(self.port, path, context) != 200:
                self._demand_alive()
                if time.monotonic() > deadline:
                    raise LabError(f"The API server does not answer {path} with 200 within {patience:.0f} s", f"Read the logs in {self.processes.folder}")
                time.sleep(0.1)

    def _demand_alive(self) -> None:
        for name in SERVERS:
            if not self.processes.get(name):
                raise LabError(f"{name} ended: {self.processes.tail(name)}", f"Read {self.processes.log(name)}")

    def _signal(self, name: str, number: signal.Signals) -> None:
        process = self.processes.get(name)
        if not process:
            raise LabError(f"{name} does not run", f"Call start_server({name!r}) first")
        os.kill(process.pid, number)

    def _choose_ports(self) -> None:
        etcd, peer, api, manager, scheduler = free_ports(5)
        ports = {"etcd": etcd, "etcd-peer": peer, "kube-apiserver": api, "kube-controller-manager": manager, "kube-scheduler": scheduler}
        self._port_file.parent.mkdir(parents=True, exist_ok=True)
        self._port_file.write_text(yaml.safe_dump(ports), "ascii")
        for component in ("kube-controller-manager", "kube-scheduler"):
            self.user_kubeconfig(f"system:{component}", path=self.folder / f"{component}.kubeconfig")
        self.user_kubeconfig("admin", groups=["system:masters"], path=self.kubeconfig)

    def _ports(self) -> dict[str, int]:
        try:
            ports: dict[str, int] = yaml.safe_load(self._port_file.read_text("ascii"))
        except FileNotFoundError as error:
            raise LabError(f"The control plane in {self.folder} was never started", "Call start() first") from error
        return ports

    def _etcd(self) -> list[str]:
        program = shutil.which("etcd")
        if not program:
            raise LabError("There is no etcd on PATH", "Install the package etcd-server (its service need not run)")
        ports = self._ports()
        client, peer = f"http://127.0.0.1:{ports['etcd']}", f"http://127.0.0.1:{ports['etcd-peer']}"
        return [
            program, "--name=lab", f"--data-dir={self.folder / 'etcd'}", f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=lab={peer}", "--log-level=warn", "--logger=zap",
            # A member that is restored on other ports keeps its data: its address is only ever its own.
            "--force-new-cluster",
        ]

    def _apiserver(self) -> list[str]:
        ports = self._ports()
        pki = self.authority
        server = pki.issue("apiserver", "kube-apiserver", hosts=["127.0.0.1", HOST_FROM_GUEST, SERVICE_ADDRESS, "localhost", "kubernetes.default.svc"])
        to_kubelet = pki.issue("apiserver-kubelet-client", "kube-apiserver-kubelet-client", groups=["system:masters"])
        tokens = signing_key(pki.folder / "service-accounts.key")
        command = [
            str(self.binaries / "kube-apiserver"), f"--etcd-servers=http://127.0.0.1:{ports['etcd']}",
            "--bind-address=127.0.0.1", f"--secure-port={ports['kube-apiserver']}", f"--advertise-address={HOST_FROM_GUEST}",
            f"--service-cluster-ip-range={SERVICE_RANGE}", "--authorization-mode=Node,RBAC", "--allow-privileged=true",
            f"--client-ca-file={pki.pair.certificate}", f"--tls-cert-file={server.certificate}", f"--tls-private-key-file={server.key}",
            f"--kubelet-certificate-authority={pki.pair.certificate}", f"--kubelet-client-certificate={to_kubelet.certificate}",
            f"--kubelet-client-key={to_kubelet.key}", "--kubelet-preferred-address-types=Hostname",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={tokens}", f"--service-account-signing-key-file={tokens}",
            # Long waits on shutdown serve load balancers, which are not here.
            "--shutdown-delay-duration=0s",
            # It asks etcd for watch progress, which Debian's 3.4 cannot give, and logs a timeout every few seconds.
            "--feature-gates=SizeBasedListCostEstimate=false",
        ]
        if not self.hosts:
            return command
        hosts = self.folder / "hosts"
        lines = [Path("/etc/hosts").read_text("utf-8"), *(f"{address} {name}" for name, address in self.hosts.items())]
        hosts.write_text("\n".join(lines) + "\n", "utf-8")
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(hosts), *command]

    def _controller_manager(self) -> list[str]:
        kubeconfig = self.folder / "kube-controller-manager.kubeconfig"
        return [
            str(self.binaries / "kube-controller-manager"), f"--kubeconfig={kubeconfig}", "--use-service-account-credentials=true", "--leader-elect=false",
            "--bind-address=127.0.0.1", f"--secure-port={self._ports()['kube-controller-manager']}", f"--root-ca-file={self.authority.pair.certificate}",
            f"--service-account-private-key-file={signing_key(self.authority.folder / 'service-accounts.key')}",
        ]

    def _scheduler(self) -> list[str]:
        return [
            str(self.binaries / "kube-scheduler"), f"--kubeconfig={self.folder / 'kube-scheduler.kubeconfig'}", "--leader-elect=false",
            "--bind-address=127.0.0.1", f"--secure-port={self._ports()['kube-scheduler']}",
        ]


def kubeconfig_text(url: str, authority: Path, pair: Pair) -> str:
    """A self-contained kubeconfig with one context, `lab`."""
    cluster = {"server": url, "certificate-authority-data": _base64(authority)}
    user = {"client-certificate-data": _base64(pair.certificate), "client-key-data": _base64(pair.key)}
    return yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": cluster}], "users": [{"name": "lab", "user": user}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
    })


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")


def _status(port: int, path: str, context: ssl.SSLContext) -> int | None:
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except ssl.SSLCertVerificationError:
        raise
    except OSError:
        return None
    finally:
        connection.close()
