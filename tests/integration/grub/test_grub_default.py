# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""grub_default through Ansible, with the real update-grub and its scripts."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.boots import rows
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.menu import CUSTOM_CFG, GRUB_CFG, run
from ansible_collections.gpunode.hygiene.plugins.modules import grub_default
from grub_menus import FIXTURES, MENUS, generate
from grub_sandbox import KERNELS, UUID, Sandbox

pytestmark = [pytest.mark.quick, pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace of its own needs root")]

OLD, MIDDLE, NEW = KERNELS
DROP_IN = "/etc/default/grub.d/zz-gpunode-hygiene.cfg"
DEADMAN = "/etc/systemd/system/gpunode-trial-deadman.service"
SPEC = f"gnulinux-advanced-{UUID}>gnulinux-{OLD}-advanced-{UUID}"
# update-grub that first does something else.
_BROKEN = "#!/bin/sh\n{0}\nexec grub-mkconfig -o /boot/grub/grub.cfg\n"


@pytest.fixture
def host(tmp_path: Path) -> Sandbox:
    """A host with three kernels, the newest of which is the default."""
    return Sandbox(tmp_path / "host")


def without_records(hashes: dict[str, str]) -> dict[str, str]:
    """All but the undo records and dpkg's lock file."""
    return {name: value for name, value in hashes.items() if not name.startswith(("var/lib/gpunode-hygiene/", "var/lib/dpkg/lock"))}


def grubenv(host: Sandbox) -> list[str]:
    """The variables of the environment block, read by GRUB's own tool."""
    return host.run(["grub-editenv", "/boot/grub/grubenv", "list"]).stdout.split()


def default_line(host: Sandbox) -> str:
    """The default in grub.cfg, as text."""
    return [line.strip() for line in (host.text(GRUB_CFG) or "").splitlines() if line.strip().startswith("set default=")][-1]


def test_the_default_is_set_once_and_given_back_byte_for_byte(host: Sandbox) -> None:
    before = host.hashes()
    planned = host.module(check=True, by_ansible=True, kernel_release=OLD, run="r1")
    assert host.hashes() == before
    done = host.module(by_ansible=True, kernel_release=OLD, run="r1")
    assert done["changed"], done
    assert done["after"] == planned["after"]
    assert done["before"]["default"]["kernel_release"] == NEW
    assert default_line(host) == f'set default="{SPEC}"'
    again = host.module(by_ansible=True, kernel_release=OLD)
    assert (again["changed"], again["plan"], again["run"]) == (False, [], "")
    record = json.loads(host.text("/var/lib/gpunode-hygiene/runs/r1/grub_default.json") or "")
    assert [(change["where"], change["before"]) for change in record["changes"]] == [(DROP_IN, None), (GRUB_CFG, "0")]
    assert not host.module(check=True, by_ansible=True, state="absent", run="r0")["changed"]
    back = host.module(by_ansible=True, state="absent", run="r1")
    assert back["changed"], back
    assert back["after"] == done["before"]
    assert without_records(host.hashes()) == before
    assert not host.module(by_ansible=True, state="absent")["changed"]


def test_a_trial_is_written_once_and_taken_away_byte_for_byte(host: Sandbox) -> None:
    host.write(CUSTOM_CFG, "menuentry own --id own { true; }")
    (host.root / "run/systemd/system").mkdir(parents=True)
    host.write("stubs/systemctl", '#!/bin/sh\necho "$@" >> /root/systemctl\n', 0o755)
    before = host.hashes()
    planned = host.module(check=True, by_ansible=True, kernel_release=OLD, mode="once", run="r1")
    assert host.hashes() == before
    done = host.module(by_ansible=True, kernel_release=OLD, mode="once", run="r1")
    assert done["changed"], done
    assert done["after"] == planned["after"]
    assert grubenv(host) == ["next_entry=gpunode-trial"]
    assert default_line(host) == 'set default="0"'
    assert "within 900 s" in (host.text(DEADMAN) or "")
    for target in ("sysinit", "emergency", "rescue"):
        assert os.readlink(host.root / f"etc/systemd/system/{target}.target.wants/gpunode-trial-deadman.service") == DEADMAN
    assert not host.module(by_ansible=True, kernel_release=OLD, mode="once")["changed"]
    # GRUB takes the one-shot entry away when it boots it.
    host.run(["grub-editenv", "/boot/grub/grubenv", "set", "next_entry="])
    back = host.module(by_ansible=True, state="absent", mode="once", run="r1")
    assert back["changed"], back
    assert host.text("/root/systemctl") == "stop gpunode-trial-deadman.service\ndaemon-reload\n"
    host.run(["grub-editenv", "/boot/grub/grubenv", "unset", "next_entry"])
    assert without_records(host.hashes()) == before
    assert not host.module(by_ansible=True, state="absent", mode="once")["changed"]


def test_systemd_takes_the_unit_as_it_is_meant(host: Sandbox, tmp_path: Path) -> None:
    (host.root / "run/systemd/system").mkdir(parents=True)
    host.write("stubs/systemctl", "#!/bin/sh\n", 0o755)
    assert host.module(kernel_release=OLD, mode="once", run="r1")["changed"]
    unit = tmp_path / "gpunode-trial-deadman.service"
    unit.write_text(host.text(DEADMAN) or "")
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")


@pytest.mark.parametrize(
    "how",
    [
        "exit 1",
        "echo broken > /boot/grub/grub.cfg; exit 1",
        "echo x > /boot/grub/grub.cfg.new; exit 1",
        "echo 'set default=2' >> /etc/grub.d/40_custom",
    ],
)
def test_an_update_grub_that_fails_or_gives_another_default_leaves_all_as_found(host: Sandbox, how: str) -> None:
    custom = host.text("/etc/grub.d/40_custom")
    before = without_records(host.hashes())
    host.write("stubs/update-grub", _BROKEN.format(how), 0o755)
    answer = host.module(kernel_release=OLD, run="r1")
    assert answer.get("failed") is True
    assert answer["remedy"]
    host.write("etc/grub.d/40_custom", custom or "", 0o755)
    assert without_records(host.hashes()) == before


def test_a_run_killed_between_the_drop_in_and_update_grub_is_completed(host: Sandbox) -> None:
    before = without_records(host.hashes())
    host.write("stubs/update-grub", _BROKEN.format("sleep 600"), 0o755)
    command, environment = host.command(host.ansible(kernel_release=OLD, run="r1"))
    process = subprocess.Popen(command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while host.text(DROP_IN) is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert host.text(DROP_IN) is not None
    for pid in _family(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    assert host.text(DROP_IN) is not None
    assert default_line(host) == 'set default="0"'
    (host.root / "stubs/update-grub").unlink()
    assert host.module(kernel_release=OLD, run="r1")["changed"]
    assert default_line(host) == f'set default="{SPEC}"'
    assert host.module(state="absent", run="r1")["changed"]
    assert without_records(host.hashes()) == before


def _family(pid: int) -> list[int]:
    """A process and all below it, parents first: nobody shall see a child die and clean up."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for known in found:
        found.extend(parents.get(known, []))
    return found


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda host: (host.root / f"boot/initrd.img-{OLD}").unlink(), f"there is no initrd /boot/initrd.img-{OLD}"),
        (lambda host: host.write(f"boot/vmlinuz-{OLD}", ""), f"the kernel image /boot/vmlinuz-{OLD} is empty"),
        (lambda host: host.write("etc/default/grub.d/zzz.cfg", "GRUB_DEFAULT=0\n"), "/etc/default/grub.d/zzz.cfg sets GRUB_DEFAULT"),
        (lambda host: host.write("etc/default/grub.d/50.cfg", "GRUB_DEFAULT = saved\n"), "/etc/default/grub.d/50.cfg cannot be sourced"),
        (lambda host: host.run(["grub-editenv", "/boot/grub/grubenv", "set", "next_entry=1>2"]), "a one-shot entry for the next boot: '1>2'"),
        (lambda host: host.write("sys/kernel/kexec_loaded", "1\n"), "GRUB would be passed by"),
        (lambda host: host.write(".dockerenv", ""), "this is a container"),
    ],
)
def test_a_refusal_changes_nothing(host: Sandbox, prepare: object, said: str) -> None:
    assert callable(prepare)
    prepare(host)
    before = without_records(host.hashes())
    for mode in ("permanent", "once") if "zzz" not in said and "50.cfg" not in said else ("permanent",):
        answer = host.module(kernel_release=OLD, mode=mode, confirm_within=0, run="r1")
        assert answer.get("failed") is True
        assert said in answer["msg"]
        assert without_records(host.hashes()) == before


@pytest.mark.parametrize(("abstraction", "file_system"), [("lvm", "ext2"), ("diskfilter", "ext2"), ("", "btrfs"), ("", "zfs")])
def test_where_grub_cannot_write_a_trial_is_refused_and_a_default_is_not(tmp_path: Path, abstraction: str, file_system: str) -> None:
    host = Sandbox(tmp_path / "host", abstraction=abstraction, file_system=file_system)
    before = without_records(host.hashes())
    answer = host.module(kernel_release=OLD, mode="once", confirm_within=0)
    assert f"/boot/grub lies on {abstraction or file_system}" in answer["msg"]
    assert "mode: permanent" in answer["remedy"]
    assert without_records(host.hashes()) == before
    assert host.module(kernel_release=OLD)["after"]["default"]["kernel_release"] == OLD


def test_what_a_person_or_a_later_run_changed_is_not_given_back(host: Sandbox) -> None:
    host.module(kernel_release=OLD, run="r1")
    host.module(kernel_release=MIDDLE, run="r2")
    refused = host.module(state="absent", run="r1")
    assert "Run r2 changed" in refused["msg"]
    assert host.module(state="absent", run="r2")["after"]["default"]["kernel_release"] == OLD
    host.write(DROP_IN, "GRUB_DEFAULT=2\n")
    assert "is not as run r1 left it" in host.module(state="absent")["msg"]
    assert host.text(DROP_IN) == "GRUB_DEFAULT=2\n"


def test_a_drop_in_that_no_run_knows_is_not_guessed_about(host: Sandbox) -> None:
    host.write(DROP_IN, "GRUB_DEFAULT=2\n")
    answer = host.module(state="absent")
    assert "no run on this host has a record of it" in answer["msg"]


def test_the_answer_is_the_one_documented(host: Sandbox) -> None:
    documented = yaml.safe_load(grub_default.RETURN)
    for mode in ("permanent", "once"):
        answer = host.module(kernel_release=OLD, mode=mode, confirm_within=0, run="r1")
        assert set(answer) - {"changed"} <= set(documented)
        assert set(answer) >= {"before", "after", "plan", "run", "msg"}
        fields = {name for name, field in documented["before"]["contains"].items() if mode in field["returned"]}
        assert set(answer["before"]) == set(answer["after"]) == fields
        for change in answer["plan"]:
            assert set(change) == set(documented["plan"]["contains"])


@pytest.mark.parametrize("name", MENUS)
def test_the_machines_own_scripts_write_menus_that_resolve_like_the_fixtures(name: str) -> None:
    """The fixtures are Debian's; other releases may name things otherwise, and must still give the same kernels in the same places."""
    fixture = rows(run((FIXTURES / f"debian12/{name}.cfg").read_text(), {}, {}))
    generated = rows(run(generate(name), {}, {}))
    assert [(row["path"], row["kernel_release"], row["recovery"]) for row in generated] == [
        (row["path"], row["kernel_release"], row["recovery"]) for row in fixture
    ]
