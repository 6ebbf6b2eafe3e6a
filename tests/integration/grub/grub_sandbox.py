# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host with real GRUB tools and made-up kernels: a root folder that is entered in a mount namespace of its own.

/usr is the machine's; /etc, /boot, /var and /lib/modules are the sandbox's. grub-probe and grub-mkrelpath need block devices that are not there, so
stand-ins answer for them; update-grub, grub-mkconfig, its scripts, grub-editenv and grub-script-check are the real ones.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDERS = ("etc/default/grub.d", "etc/grub.d", "etc/systemd/system", "boot/grub", "var/lib/dpkg", "var/lib/apt/lists")
UUID = "6f2b0b4e-8d0c-4c7b-9a51-2f8f1f0a7d11"
KERNELS = ("6.8.0-117-generic", "6.8.0-124-generic", "7.0.0-15-generic")
_ENTER = """set -eu
root=$1; shift
mount --make-rprivate /
for name in usr dev proc tmp; do mkdir -p "$root/$name"; done
mount --bind /usr "$root/usr"
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
mount --bind "$root/cmdline" "$root/proc/cmdline"
mount --bind "$root/stubs/grub-probe" "$root/usr/sbin/grub-probe"
mount --bind "$root/stubs/grub-mkrelpath" "$root/usr/bin/grub-mkrelpath"
if [ "$SANDBOX_TOOLS" != / ]; then
  for path in usr/sbin/grub-mkconfig usr/share/grub/grub-mkconfig_lib; do mount --bind "$SANDBOX_TOOLS/$path" "$root/$path"; done
fi
[ ! -e "$root/stubs/update-grub" ] || mount --bind "$root/stubs/update-grub" "$root/usr/sbin/update-grub"
[ ! -e "$root/stubs/systemctl" ] || mount --bind "$root/stubs/systemctl" "$root/usr/bin/systemctl"
for path in $SANDBOX_BINDS; do mkdir -p "$root$path"; mount --rbind "$path" "$root$path"; done
exec chroot "$root" "$@"
"""
_PROBE = """#!/bin/sh
target= ; last=
for word in "$@"; do
  case "$last" in -t|--target) target=$word ;; esac
  case "$word" in --target=*) target=${{word#--target=}} ;; esac
  last=$word
done
case "$target" in
  device) echo /dev/vda1 ;;
  fs_uuid) echo {uuid} ;;
  fs) echo {file_system} ;;
  abstraction) {abstraction} ;;
  partmap) echo gpt ;;
  hints_string) echo --hint-bios=hd0,gpt1 ;;
  compatibility_hint) echo hd0,gpt1 ;;
  *) exit 1 ;;
esac
"""


@dataclass
class Sandbox:
    """One made-up host.

    :param prefix: /boot as GRUB sees it.
    :param settings: more lines for /etc/default/grub.
    :param without_initrd: kernels whose initrd is missing.
    :param tools: the root folder that grub-mkconfig, its library and its scripts are taken from.
    """

    root: Path
    kernels: tuple[str, ...] = KERNELS
    abstraction: str = ""
    file_system: str = "ext2"
    prefix: str = "/boot"
    distributor: str = "Ubuntu"
    settings: str = ""
    without_initrd: tuple[str, ...] = ()
    tools: Path = Path("/")

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        for name in ("bin", "sbin", "lib64"):
            (self.root / name).symlink_to(f"usr/{name}")
        # /lib is a folder of links, so that its modules/ is the sandbox's own.
        (self.root / "lib/modules").mkdir(parents=True)
        for path in Path("/usr/lib").iterdir():
            if path.name != "modules":
                (self.root / "lib" / path.name).symlink_to(f"/usr/lib/{path.name}")
        for folder in (*_FOLDERS, "stubs", "root", "run", "sys"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        for script in sorted((self.tools / "etc/grub.d").iterdir()):
            shutil.copy2(script, self.root / "etc/grub.d" / script.name)
        for name in ("passwd", "group", "nsswitch.conf", "ld.so.cache", "localtime"):
            if Path("/etc", name).exists():
                shutil.copy(Path("/etc", name), self.root / "etc" / name)
        common = "GRUB_DEFAULT=0\nGRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT=quiet\n"
        self.write("etc/default/grub", f"{common}GRUB_DISTRIBUTOR={self.distributor}\n{self.settings}")
        self.write("var/lib/dpkg/status", "")
        self.write("cmdline", f"BOOT_IMAGE=/boot/vmlinuz-{self.kernels[-1]} root=UUID={UUID} ro quiet\n")
        for release in self.kernels:
            self.add_kernel(release, release not in self.without_initrd)
        self.stub_probe()
        self.run(["grub-editenv", "/boot/grub/grubenv", "create"])
        self.run(["update-grub"])

    def add_kernel(self, release: str, initrd: bool = True) -> None:
        """Put a kernel's files on the disk."""
        self.write(f"boot/vmlinuz-{release}", f"kernel {release}\n")
        if initrd:
            self.write(f"boot/initrd.img-{release}", f"initrd {release}\n")
        self.write(f"lib/modules/{release}/modules.dep", "kernel/x.ko:\n")
        self.write(f"lib/modules/{release}/kernel/x.ko", "x")

    def stub_probe(self) -> None:
        """Say again how grub-probe answers."""
        answer = f"echo {self.abstraction}" if self.abstraction else ":"
        self.write("stubs/grub-probe", _PROBE.format(uuid=UUID, abstraction=answer, file_system=self.file_system), 0o755)
        self.write("stubs/grub-mkrelpath", f'#!/bin/sh\ncase "$1" in /) echo / ;; *) echo "{self.prefix}${{1#/boot}}" ;; esac\n', 0o755)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the host."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    def text(self, path: str) -> str | None:
        """A file's text; None when there is none."""
        target = self.root / path.lstrip("/")
        return target.read_text() if target.exists() else None

    def command(self, argv: list[str]) -> tuple[list[str], dict[str, str]]:
        """How to run a program inside."""
        # The interpreter lies where no package put it, for example in a home folder, which the sandbox hides.
        binds = [] if sys.base_prefix == "/usr" else [sys.base_prefix]
        environment = {**os.environ, "SANDBOX_BINDS": " ".join([*binds, *self._shared()]), "SANDBOX_TOOLS": str(self.tools)}
        return ["unshare", "--mount", "sh", "-c", _ENTER, "sh", str(self.root), *argv], environment

    def run(self, argv: list[str], check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program inside."""
        command, environment = self.command(argv)
        completed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if check and completed.returncode != 0:
            raise AssertionError(f"{argv} ended with {completed.returncode}: {completed.stderr}")
        return completed

    def module(self, check: bool = False, by_ansible: bool = False, **arguments: Any) -> dict[str, Any]:
        """The module's answer; started by Ansible as on a real host, or, which takes a tenth of the time, by itself."""
        completed = self.run(self.ansible(check, **arguments) if by_ansible else self.direct(check, **arguments), check=False)
        start = completed.stdout.find("=> {") + len("=> ") if by_ansible else completed.stdout.find("{")
        try:
            answer: dict[str, Any] = json.loads(completed.stdout[start:])
        except ValueError:
            raise AssertionError(completed.stdout + completed.stderr) from None
        return answer

    def direct(self, check: bool = False, **arguments: Any) -> list[str]:
        """The command line that starts the module by itself."""
        given = {"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_check_mode": check, "_ansible_remote_tmp": "/tmp"}}
        return [
            "env", "HOME=/root", f"PYTHONPATH={os.environ['ANSIBLE_COLLECTIONS_PATH']}", "LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1",
            sys.executable, "-m", "ansible_collections.gpunode.hygiene.plugins.modules.grub_default", json.dumps(given),
        ]  # fmt: skip

    def ansible(self, check: bool = False, **arguments: Any) -> list[str]:
        """The command line of `ansible` for one call of the module."""
        given = json.dumps(arguments)
        options = ["--check", "--diff"] if check else []
        interpreter = "ansible_python_interpreter=/usr/bin/python3"
        ansible = str(Path(sys.executable).parent / "ansible")
        return [
            "env", "HOME=/root", f"ANSIBLE_COLLECTIONS_PATH={os.environ['ANSIBLE_COLLECTIONS_PATH']}", "ANSIBLE_STDOUT_CALLBACK=ansible.builtin.minimal",
            "ANSIBLE_NOCOLOR=1", "LC_ALL=C.UTF-8", ansible, "localhost", "-i", "localhost,", "-c", "local", "-e", interpreter, *options,
            "-m", "gpunode.hygiene.grub_default", "-a", given,
        ]  # fmt: skip

    def hashes(self) -> dict[str, str]:
        """The hash of every file of the host that is the sandbox's own."""
        found = {}
        for folder in ("etc", "boot", "var"):
            for path in sorted((self.root / folder).rglob("*")):
                name = str(path.relative_to(self.root))
                if path.is_symlink():
                    found[name] = f"-> {path.readlink()}"
                elif path.is_file():
                    found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found

    def _shared(self) -> list[str]:
        """What Ansible needs inside: the virtual environment, the collection and where its link leads."""
        collections = Path(os.environ["ANSIBLE_COLLECTIONS_PATH"])
        paths = {Path(sys.prefix), collections, (collections / "ansible_collections/gpunode/hygiene").resolve()}
        return sorted(str(path) for path in paths)
