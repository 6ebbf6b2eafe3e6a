# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`kernel_pin` through Ansible, on a real dpkg database, with real packages from a real archive."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.apt.evidence import read_packages
from ansible_collections.gpunode.hygiene.plugins.modules import kernel_pin
from apt_host import Host
from apt_world import GENERIC, Deb, World

pytestmark = pytest.mark.quick

ABIS = [(f"6.8.0-{abi}", f"6.8.0-{abi}.{abi}") for abi in (110, 112, 117, 124, 130)]
RELEASES = [GENERIC.release(abi) for abi, _version in ABIS]
METAS = ["linux-generic", "linux-headers-generic", "linux-image-generic"]
NEXT = [*GENERIC.kernel(*ABIS[4]), *GENERIC.metas(*ABIS[4])]
REBUILD = GENERIC.kernel(ABIS[2][0], "6.8.0-117.118")


def parts(release: str, abi: str) -> set[str]:
    """The packages of one release."""
    return {*(f"linux-{part}-{release}" for part in ("image", "modules", "modules-extra", "headers")), f"linux-headers-{abi}"}


PINNED = parts(RELEASES[2], ABIS[2][0])
CLOSURE = PINNED | set(METAS)


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with a newer ABI, a rebuild of the pinned one, and a newer package that has nothing to do with kernels."""
    world = World(tmp_path_factory.mktemp("archive") / "root")
    world.publish_for_real([*NEXT, *REBUILD, Deb("hello", "2", section="misc")])
    return world.root / "archive"


@pytest.fixture
def host(tmp_path: Path, archive: Path) -> Host:
    """Four kernels as an Ubuntu server has them after some upgrades; the metapackages point at the newest, and were asked for."""
    world = World(tmp_path / "root")
    kernels = [deb for abi, version in ABIS[:4] for deb in GENERIC.kernel(abi, version)]
    world.install([*kernels, *GENERIC.metas(*ABIS[3])], automatic=[deb.name for deb in kernels])
    shutil.copytree(archive, world.root / "archive", dirs_exist_ok=True)
    for release in RELEASES[:4]:
        world.put_on_disk(release)
    made = Host(world)
    made.run("apt-get", "update")
    return made


def test_without_a_pin_the_archives_kernel_and_the_rebuild_come_and_old_kernels_go(host: Host) -> None:
    host.run("apt-get", "-y", "dist-upgrade")
    versions = host.versions()
    assert versions[f"linux-image-{RELEASES[4]}"] == ABIS[4][1]
    assert versions[f"linux-image-{RELEASES[2]}"] == "6.8.0-117.118"
    host.run("apt-get", "-y", "autoremove")
    assert f"linux-image-{RELEASES[2]}" not in host.versions()


def test_a_pinned_host_keeps_its_kernels_through_upgrade_and_autoremove(host: Host) -> None:
    answer = host.pin(kernel_release=RELEASES[2], keep=[RELEASES[0]], run="r1")
    assert (answer["changed"], set(answer["metas"]), answer["vanished"], answer["run"]) == (True, set(METAS), [], "r1")
    assert host.held() == CLOSURE | parts(RELEASES[0], ABIS[0][0])
    before = host.versions()

    again = host.pin(kernel_release=RELEASES[2], keep=[RELEASES[0]], run="r2")
    assert (again["changed"], again["plan"], again["run"]) == (False, [], "")
    assert not (host.world.root / "var/lib/gpunode-hygiene/runs/r2").exists()

    host.run("apt-get", "-y", "dist-upgrade")
    after = host.versions()
    assert after.pop("hello") == "2"
    assert before.pop("hello") == "1"
    assert after == before
    host.run("apt-get", "-y", "autoremove")
    left = host.versions()
    assert {f"linux-image-{release}" for release in RELEASES if f"linux-image-{release}" in left} == {f"linux-image-{RELEASES[index]}" for index in (0, 2, 3)}
    assert read_packages(str(host.world.root))["protected"] is True


def test_check_mode_tells_the_plan_and_leaves_every_file(host: Host) -> None:
    before = host.fingerprint()
    answer = host.pin(check=True, kernel_release=RELEASES[2])
    assert host.fingerprint() == before
    assert answer["changed"] is True
    assert {change["where"] for change in answer["plan"]} == CLOSURE
    assert answer["after"]["selections"] == dict.fromkeys(CLOSURE, "hold")
    assert answer["before"]["selections"] == dict.fromkeys(CLOSURE, "install")
    assert host.pin(kernel_release=RELEASES[2])["plan"] == answer["plan"]


def test_absent_gives_back_exactly_what_was_there_and_leaves_a_persons_hold(host: Host) -> None:
    host.run("apt-mark", "hold", "linux-generic", "hello")
    original = host.world.selections()
    host.pin(kernel_release=RELEASES[2], run="r1")
    assert host.held() == CLOSURE | {"hello"}
    planned = host.pin(check=True, state="absent", run="r1")
    assert {change["where"] for change in planned["plan"]} == CLOSURE - {"linux-generic"}
    answer = host.pin(state="absent", run="r1")
    assert (answer["changed"], answer["plan"]) == (True, planned["plan"])
    assert host.world.selections() == original
    assert host.pin(state="absent")["changed"] is False
    assert host.pin(kernel_release=RELEASES[2], run="r1")["vanished"] == [], "holds that were given back did not vanish"


def test_a_hold_that_vanished_is_told_and_set_again(host: Host) -> None:
    host.pin(kernel_release=RELEASES[2], run="r1")
    host.run("apt-mark", "unhold", "linux-image-generic")
    evidence = read_packages(str(host.world.root))
    assert (evidence["protected"], evidence["problems"]) == (
        False, ["the recorded hold of linux-image-generic is gone", "held only in part; not held: linux-image-generic"],
    )
    answer = host.pin(kernel_release=RELEASES[2], run="r2")
    assert answer["vanished"] == ["linux-image-generic"]
    assert [change["where"] for change in answer["plan"]] == ["linux-image-generic"]
    assert host.held() == CLOSURE


def test_a_run_that_was_killed_before_it_set_its_holds_is_finished_by_the_same_run(host: Host) -> None:
    original = host.world.selections()
    host.pin(kernel_release=RELEASES[2], run="r1")
    host.run("apt-mark", "unhold", *CLOSURE)  # as a SIGKILL between the record and dpkg leaves it
    answer = host.pin(kernel_release=RELEASES[2], run="r1")
    assert (answer["changed"], answer["vanished"], answer["run"]) == (True, [], "r1")
    assert host.held() == CLOSURE
    host.pin(state="absent", run="r1")
    assert host.world.selections() == original


def test_absent_refuses_what_a_person_or_a_later_run_changed(host: Host) -> None:
    host.pin(kernel_release=RELEASES[2], run="r1")
    host.run("sh", "-c", f"echo linux-image-{RELEASES[2]} deinstall | dpkg --set-selections")
    before = host.world.selections()
    refusal = host.pin(state="absent", run="r1")
    assert f"linux-image-{RELEASES[2]} (deinstall)" in refusal["seen"]
    assert host.world.selections() == before

    host.run("apt-mark", "hold", f"linux-image-{RELEASES[2]}")
    host.pin(kernel_release=RELEASES[3], run="r2")
    refusal = host.pin(state="absent", run="r1")
    assert refusal["seen"] == f"Holds of this run are also what a later one relies on: {', '.join(f'{name} (r2)' for name in METAS)}"
    host.pin(state="absent", run="r2")
    host.pin(state="absent", run="r1")
    assert host.held() == set()


def test_a_locked_package_manager_is_waited_for_and_then_named(host: Host) -> None:
    lock = host.world.root / "var/lib/dpkg/lock-frontend"
    program = "import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.lockf(f,fcntl.LOCK_EX); print('locked',flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        before = host.fingerprint()
        refusal = host.pin(kernel_release=RELEASES[2], lock_timeout=1)
        assert f"process {other.pid} ({sys.executable} -c" in refusal["seen"]
        assert "(waited 1 s)" in refusal["seen"]
        assert "lock-frontend is locked by" in host.pin(check=True, kernel_release=RELEASES[2], lock_timeout=0)["seen"]
        assert host.fingerprint() == before
        threading.Timer(3, other.stdin.close).start()
        assert host.pin(kernel_release=RELEASES[2], lock_timeout=120)["changed"] is True
        assert other.wait() == 0
    assert host.held() == CLOSURE


def test_an_unsettled_package_database_is_refused(host: Host) -> None:
    journal = host.world.root / "var/lib/dpkg/updates/0001"
    journal.write_text("")
    assert host.pin(kernel_release=RELEASES[2])["remedy"] == "Run `dpkg --configure -a`"
    journal.unlink()
    status = host.world.root / "var/lib/dpkg/status"
    status.write_text(status.read_text().replace("Package: hello\nStatus: install ok installed", "Package: hello\nStatus: install ok half-configured"))
    refusal = host.pin(kernel_release=RELEASES[2])
    assert "dpkg --audit" in refusal["seen"]
    assert "hello" in refusal["seen"]
    assert host.held() == set()


def test_a_kernel_that_is_not_there_is_refused_and_the_others_are_named(host: Host) -> None:
    refusal = host.pin(kernel_release="6.8.0-11-generic")
    assert refusal["seen"] == "No package linux-image-6.8.0-11-generic is installed"
    assert ", ".join(RELEASES[:4]) in refusal["remedy"]
    assert host.pin(kernel_release=RELEASES[2], keep=[RELEASES[4]])["seen"] == f"No package linux-image-{RELEASES[4]} is installed"
    assert "is no kernel release" in host.pin(kernel_release="../etc")["msg"]
    assert host.held() == set()


def test_a_kernel_that_cannot_boot_is_refused(host: Host) -> None:
    (host.world.root / f"boot/initrd.img-{RELEASES[2]}").write_text("")
    refusal = host.pin(kernel_release=RELEASES[2])
    assert refusal["seen"] == f"Kernel {RELEASES[2]} is not complete on disk: the initrd /boot/initrd.img-{RELEASES[2]} is empty"
    assert f"apt-get install --reinstall linux-image-{RELEASES[2]}" in refusal["remedy"]
    assert host.held() == set()
    assert host.pin(kernel_release=RELEASES[3])["changed"] is True


def test_a_pin_that_would_not_keep_the_kernel_is_refused(host: Host) -> None:
    host.world.publish_for_real([Deb("hello", "3", depends=f"linux-image-{RELEASES[4]}", section="misc")])
    host.run("apt-get", "update")
    refusal = host.pin(kernel_release=RELEASES[2])
    assert {violation["package"] for violation in refusal["violations"]} == {f"linux-image-{RELEASES[4]}", f"linux-modules-{RELEASES[4]}"}
    assert refusal["remedy"].startswith("Hold what pulls them too (`apt-mark hold hello`)")
    assert host.held() == set()
    host.run("apt-mark", "hold", "hello")
    assert host.pin(kernel_release=RELEASES[2])["changed"] is True


def test_the_answer_is_the_one_documented(host: Host) -> None:
    documented = yaml.safe_load(kernel_pin.RETURN)
    assert documented.pop("diff")["sample"].keys() == {"before", "after"}  # Ansible shows it in its own way
    by_state = {
        state: {"changed", *(name for name, entry in documented.items() if entry["returned"] in ("success", "always", f"success and O(state={state})"))}
        for state in ("present", "absent")
    }
    assert set(host.pin(kernel_release=RELEASES[2])) == by_state["present"]
    answer = host.pin(state="absent")
    assert set(answer) == by_state["absent"]
    assert set(answer["plan"][0]) == set(documented["plan"]["contains"])
