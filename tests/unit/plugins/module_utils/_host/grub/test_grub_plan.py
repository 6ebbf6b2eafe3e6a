# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is refused, each with its own reason, and what is planned."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub import deadman, plan, trial
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.defaults import DROP_IN, Settings
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.evidence import describe
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.facts import Host, Probe
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.grub.menu import CUSTOM_CFG, GRUB_CFG
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import Change, HygieneError

UUID = "6f2b0b4e-8d0c-4c7b-9a51-2f8f1f0a7d11"
RELEASE = "6.8.0-117-generic"
SPEC = f"gnulinux-advanced-{UUID}>gnulinux-{RELEASE}-advanced-{UUID}"
HostOf = Callable[..., Host]
SAVED = {"GRUB_DEFAULT": "saved", "GRUB_SAVEDEFAULT": "true"}


def unreadable(text: str) -> str:
    return text.replace("set timeout=5", "set timeout=-1")


def with_superusers(text: str) -> str:
    return "set superusers=root\nexport superusers\n" + text


def without_41_custom(text: str) -> str:
    return text[: text.index("if [ -f  ${config_directory}/custom.cfg")]


BOTH: list[tuple[dict[str, Any], str]] = [
    ({"loader": "systemd-boot", "bypassed": ("the boot loader calls itself 'systemd-boot 255'",)}, "The boot loader is systemd-boot"),
    ({"kexec": True, "bypassed": ("a kernel is loaded for kexec",)}, "GRUB would be passed by: a kernel is loaded for kexec"),
    ({"bypassed": ("update-grub or grub-mkconfig is missing",)}, "Of GRUB, update-grub or grub-mkconfig is missing"),
    ({"menu": None, "following": None, "menu_problem": "there is no /boot/grub/grub.cfg"}, "there is no /boot/grub/grub.cfg"),
    ({"grubenv": {"next_entry": "1>2"}}, "one-shot entry for the next boot: '1>2'"),
    ({"name": "ubuntu/partuuid", "grubenv": {"initrdfail": "1", "prev_entry": "1>1"}}, "one-shot entry for the next boot: '1>1'"),
    ({"edit": unreadable}, "GRUB's timeout is -1"),
    ({"edit": with_superusers}, "GRUB has superusers (root)"),
    ({"custom": "set default=0\n"}, "/boot/grub/custom.cfg sets `default`"),
    ({"edit": lambda text: text + "\nconfigfile /x\n"}, "uses `configfile`, which cannot be followed"),
    ({"probe": Probe(None, None, (), "ext2", ("`grub-mkrelpath /boot` ended with status 1",))}, "Where GRUB finds /boot cannot be told"),
    ({"probe": Probe("/", None, (), "ext2", ())}, f"no normal entry of this installation for kernel {RELEASE}"),
    ({"probe": Probe("/boot", "another-uuid", (), "ext2", ())}, f"no normal entry of this installation for kernel {RELEASE}"),
    ({"edit": lambda text: text.replace(RELEASE, "6.8.0-116-generic")}, "its kernels are 6.8.0-1059-azure, 6.8.0-116-generic, 6.8.0-124"),
    ({"edit": lambda text: text.replace("'gnulinux-", "'osprober-gnulinux-")}, f"no normal entry of this installation for kernel {RELEASE}"),
]
PERMANENT: list[tuple[dict[str, Any], str]] = [
    *BOTH,
    ({"settings": Settings({}, None, (), "/etc/default/grub cannot be sourced (x)")}, "/etc/default/grub cannot be sourced (x)"),
    ({"settings": Settings({}, None, ("/etc/default/grub.d/zzz.cfg",), None)}, "/etc/default/grub.d/zzz.cfg sets GRUB_DEFAULT and is read after"),
    ({"grubenv": {"next_entry": trial.ENTRY_ID}}, "one-shot entry for the next boot: 'gpunode-trial'"),
    ({"edit": lambda text: text.replace(f"gnulinux-{RELEASE}-advanced-{UUID}", "plain")}, "The only entry for kernel 6.8.0-117-generic has the id 'plain'"),
    ({"edit": lambda text: text.replace(f"-advanced-{UUID}'", "-advanced-a$b'")}, "It holds characters that the shell or GRUB would read as syntax"),
    ({"edit": lambda text: text.replace(f"gnulinux-advanced-{UUID}", "0-advanced")}, "GRUB resolves"),
]
ONCE: list[tuple[dict[str, Any], str]] = [
    *BOTH,
    ({"grubenv_problem": "there is no /boot/grub/grubenv", "grubenv_text": None}, "there is no /boot/grub/grubenv"),
    ({"grubenv_problem": "/boot/grub/grubenv is a sparse file, which GRUB does not write"}, "is a sparse file"),
    *(({"probe": Probe("/boot", UUID, (kind,), "ext2", ())}, f"/boot/grub lies on {kind}") for kind in ("lvm", "diskfilter")),
    *(({"probe": Probe("/boot", UUID, (), kind, ())}, f"/boot/grub lies on {kind}") for kind in ("btrfs", "zfs", "f2fs", "squash4")),
    ({"probe": Probe("/boot", UUID, None, None, ("`grub-probe` ended with status 1",))}, "how GRUB sees /boot/grub cannot be told"),
    ({"custom_script": "there is no /etc/grub.d/41_custom"}, "there is no /etc/grub.d/41_custom"),
    ({"custom_script": "/etc/grub.d/41_custom is not executable"}, "/etc/grub.d/41_custom is not executable"),
    ({"edit": without_41_custom}, "/boot/grub/grub.cfg does not source /boot/grub/custom.cfg"),
    ({"custom": "menuentry x {\n"}, "/boot/grub/custom.cfg is no valid GRUB script"),
    ({"custom": "menuentry x --id gpunode-trial { true; }\n"}, "With next_entry=gpunode-trial GRUB would boot 'gpunode-trial'"),
    ({"edit": lambda text: text.replace('[ "${next_entry}" ]', "false")}, "With next_entry=gpunode-trial GRUB would boot"),
    ({"edit": lambda text: text.replace(f"\tinitrd\t/boot/initrd.img-{RELEASE}", "")}, "no linux line together with an initrd line"),
    ({"custom": "### BEGIN gpunode.hygiene trial entry ###\n"}, "a torn or doubled marker"),
]


def refusal(error: HygieneError) -> str:
    assert error.seen and error.why and error.remedy
    return str(error)


@pytest.mark.parametrize(("changed", "said"), PERMANENT)
def test_a_default_that_would_not_hold_is_refused(host_of: HostOf, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(HygieneError) as caught:
        plan.plan_permanent(host_of(**changed), RELEASE if changed.get("name") is None else "6.8.0-1059-azure")
    assert said in refusal(caught.value)


@pytest.mark.parametrize(("changed", "said"), ONCE)
def test_a_trial_that_would_not_be_one_is_refused(host_of: HostOf, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(HygieneError) as caught:
        plan.plan_once(host_of(**changed), RELEASE if changed.get("name") is None else "6.8.0-1059-azure", "r1", 900, True)
    assert said in refusal(caught.value)


def test_the_timer_needs_systemd(host_of: HostOf) -> None:
    with pytest.raises(HygieneError, match="Set `confirm_within: 0`"):
        plan.plan_once(host_of(), RELEASE, "r1", 900, systemd=False)
    assert plan.plan_once(host_of(), RELEASE, "r1", 0, systemd=False).after["deadman"] is None


@pytest.mark.parametrize("name", ["debian12/submenu", "debian13/submenu", "debian12/old_title"])
def test_the_spec_is_the_path_of_ids_in_the_menu(host_of: HostOf, name: str) -> None:
    spec, wanted = plan.plan_permanent(host_of(name), RELEASE)
    assert spec == SPEC
    assert wanted.files == {DROP_IN: wanted.after["drop_in"]}
    assert f"GRUB_DEFAULT='{SPEC}'\n" in wanted.after["drop_in"]
    assert wanted.after["default"]["kernel_release"] == RELEASE
    assert [(change.what, change.where) for change in wanted.changes] == [("file", DROP_IN), ("grub_default", GRUB_CFG)]


@pytest.mark.parametrize(
    ("name", "probe", "release", "spec"),
    [
        ("debian12/flat", Probe("/boot", UUID, (), "ext2", ()), RELEASE, f"gnulinux-{RELEASE}-advanced-{UUID}"),
        (
            "debian13/separate_boot",
            Probe("", UUID, ("lvm",), "ext2", ()),
            "6.12.117+deb13-amd64",
            f"gnulinux-advanced-{UUID}>gnulinux-6.12.117+deb13-amd64-advanced-{UUID}",
        ),
        (
            "ubuntu/zfs",
            Probe("/BOOT/ubuntu_g3x8d1@", "5b1c7d2e90aa4411", (), "zfs", ()),
            RELEASE,
            f"gnulinux-advanced-rpool/ROOT/ubuntu_g3x8d1>gnulinux-rpool/ROOT/ubuntu_g3x8d1-{RELEASE}",
        ),
        ("ubuntu/partuuid", Probe("/boot", UUID, (), "ext2", ()), "6.8.0-1021-azure", f"gnulinux-advanced-{UUID}>gnulinux-6.8.0-1021-azure-advanced-{UUID}"),
    ],
)
def test_every_layout_gets_its_own_path(host_of: HostOf, name: str, probe: Probe, release: str, spec: str) -> None:
    # Debian with a separate /boot: GRUB sees its files at the top.
    if probe.folder == "":
        probe = Probe("/", *(probe.uuid, probe.abstractions, probe.file_system, ()))
    assert plan.plan_permanent(host_of(name, probe=probe), release)[0] == spec


def test_a_saved_default_with_savedefault_is_replaced_by_a_fixed_one(host_of: HostOf) -> None:
    host = host_of("debian12/separate_boot", probe=Probe("/", UUID, (), "ext2", ()), settings=Settings(SAVED, "x", (), None), grubenv={"saved_entry": "1>0"})
    spec, wanted = plan.plan_permanent(host, "6.1.0-35-amd64")
    assert wanted.before["default"]["spec"] == "1>0"
    after = host_of(
        "debian12/separate_boot", lambda text: text.replace('set default="${saved_entry}"', f'set default="{spec}"'), grubenv={"saved_entry": "1>0"}
    )
    plan.demand_result(after, spec, "6.1.0-35-amd64")


def test_a_second_time_nothing_is_planned(host_of: HostOf) -> None:
    spec, wanted = plan.plan_permanent(host_of(), RELEASE)
    done = host_of(edit=lambda text: text.replace('set default="0"', f'set default="{spec}"'), drop_in=wanted.after["drop_in"])
    again = plan.plan_permanent(done, RELEASE)[1]
    assert (again.changes, again.before) == ((), again.after)


def test_a_killed_run_is_completed_when_only_the_drop_in_was_written(host_of: HostOf) -> None:
    text = plan.plan_permanent(host_of(), RELEASE)[1].after["drop_in"]
    again = plan.plan_permanent(host_of(drop_in=text), RELEASE)[1]
    assert [change.what for change in again.changes] == ["grub_default"]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (str, "After update-grub the default is '0', which boots 7.0.0-15-generic"),
        (lambda text: text.replace('set default="0"', f'set default="{SPEC}"').replace("6.8.0-117", "6.8.0-118"), "After update-grub the default is"),
        (lambda text: unreadable(text).replace('set default="0"', f'set default="{SPEC}"'), "GRUB's timeout is -1"),
    ],
)
def test_what_update_grub_wrote_is_checked(host_of: HostOf, edit: Callable[[str], str], said: str) -> None:
    with pytest.raises(HygieneError, match=said):
        plan.demand_result(host_of(edit=edit), SPEC, RELEASE)


# ---- giving back ----

A, B, C = "text of a\n", "text of b\n", "text of c\n"


def change(before: Any, after: Any) -> Change:
    return Change("file", DROP_IN, before, after)


@pytest.mark.parametrize(
    ("records", "chosen", "current", "wanted"),
    [
        ([("r1", [change(None, A)])], ["r1"], A, None),
        ([("r1", [change(None, A)]), ("r2", [change(A, B)])], ["r1", "r2"], B, None),
        ([("r1", [change(None, A)]), ("r2", [change(A, B)])], ["r2"], B, A),
        # Somebody changed it between the runs: what they wanted is what comes back.
        ([("r1", [change(None, A)]), ("r2", [change(C, B)])], ["r1", "r2"], B, C),
        # A later run that was given back does not count.
        ([("r1", [change(None, A)]), ("r2", [change(A, A)])], ["r1"], A, None),
    ],
)
def test_what_was_there_before_the_chosen_runs_comes_back(records: Any, chosen: list[str], current: str, wanted: Any) -> None:
    assert plan.given_back(records, chosen, DROP_IN, current) == change(current, wanted)


@pytest.mark.parametrize(
    ("records", "chosen", "current"),
    [
        ([], [], A),
        ([("r1", [change(None, A)])], ["r0"], A),
        ([("r1", [change(None, A)])], ["r1"], None),
        ([("r1", [change(None, None)])], ["r1"], A),
    ],
)
def test_there_is_nothing_to_give_back(records: Any, chosen: list[str], current: Any) -> None:
    assert plan.given_back(records, chosen, DROP_IN, current) is None


@pytest.mark.parametrize(
    ("records", "chosen", "current", "said"),
    [
        ([("r1", [change(None, A)]), ("r2", [change(A, B)])], ["r1"], B, "Run r2 changed"),
        ([("r1", [change(None, A)])], ["r1"], C, "is not as run r1 left it"),
        ([("r1", [change(B, A)])], ["r1"], None, "it is gone"),
    ],
)
def test_what_others_changed_since_is_refused(records: Any, chosen: list[str], current: Any, said: str) -> None:
    with pytest.raises(HygieneError, match=said):
        plan.given_back(records, chosen, DROP_IN, current)


# ---- the trial ----

REBOOTS = "panic=15 rd.shell=0 rd.emergency=reboot systemd.crash_reboot=1 systemd.watchdog_sec=180"
BLOCK = f"""### BEGIN gpunode.hygiene trial entry ###
menuentry 'Trial of kernel {RELEASE} (gpunode.hygiene)' --unrestricted --id gpunode-trial {{
\tload_video
\tinsmod gzio
\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
\tinsmod part_gpt
\tinsmod ext2
\tset root='hd0,gpt1'
\tif [ x$feature_platform_search_hint = xy ]; then
\tsearch --no-floppy --fs-uuid --set=root --hint-bios=hd0,gpt1 {UUID}
\telse
\tsearch --no-floppy --fs-uuid --set=root {UUID}
\tfi
\tif linux /boot/vmlinuz-{RELEASE} root=/dev/vda1 ro quiet {REBOOTS} gpunode.trial=r1; then
\t\tif initrd\t/boot/initrd.img-{RELEASE}; then
\t\t\tboot
\t\tfi
\tfi
\treboot
}}
### END gpunode.hygiene trial entry ###
"""


@pytest.mark.parametrize("name", ["debian12/submenu", "debian13/submenu", "debian12/flat"])
def test_the_trial_is_the_kernels_own_entry_with_a_reboot_behind_every_failure(host_of: HostOf, name: str) -> None:
    wanted = plan.plan_once(host_of(name), RELEASE, "r1", 900, True)
    assert wanted.files[CUSTOM_CFG] == BLOCK
    assert wanted.after["next_entry"] == "gpunode-trial"
    assert [change.what for change in wanted.changes] == ["file", "unit", "next_entry"]


def test_the_trial_takes_the_branch_with_an_initrd(host_of: HostOf) -> None:
    text = plan.plan_once(host_of("ubuntu/partuuid"), "6.8.0-1021-azure", "r1", 0, True).files[CUSTOM_CFG] or ""
    line = f"root=PARTUUID=8f8e0b7a-01 ro console=ttyS0 {REBOOTS} gpunode.trial=r1; then"
    assert f"\tif linux /boot/vmlinuz-6.8.0-1021-azure {line}\n\t\tif initrd\t/boot/initrd.img-6.8.0-1021-azure; then\n" in text
    for word in ("panic=-1", "recordfail", "initrdfail", "echo"):
        assert word not in text


@pytest.mark.parametrize("before", [None, "", "menuentry own { true; }\n", "menuentry own { true; }"])
def test_a_trial_leaves_the_rest_of_custom_cfg_as_it_is(host_of: HostOf, before: Any) -> None:
    first = plan.plan_once(host_of(custom=before), RELEASE, "r1", 0, True)
    there = first.files[CUSTOM_CFG]
    assert (there or "").endswith(BLOCK)
    (recorded,) = [change.before for change in first.changes if change.what == "file"]
    host = host_of(custom=there, grubenv={"next_entry": "gpunode-trial"})
    assert plan.plan_once(host, RELEASE, "r1", 0, True).changes == ()
    found = trial.find(there)
    assert found is not None
    assert (found.run, found.kernel_release) == ("r1", RELEASE)
    gone = plan.plan_once_absent(host, "r1", recorded)
    assert gone.files[CUSTOM_CFG] == before
    assert gone.after["next_entry"] is None


def test_the_trial_of_another_run_is_left_alone(host_of: HostOf) -> None:
    host = host_of(custom=BLOCK, grubenv={"next_entry": "gpunode-trial"}, unit=deadman.unit(RELEASE, "r1", 900), links=deadman.LINKS)
    assert plan.plan_once_absent(host, "r2", None).changes == ()
    assert [change.what for change in plan.plan_once_absent(host, "r1", None).changes] == ["file", "unit", "next_entry"]
    assert [change.what for change in plan.plan_once_absent(host, None, None).changes] == ["file", "unit", "next_entry"]


def test_a_foreign_one_shot_entry_stays(host_of: HostOf) -> None:
    assert plan.plan_once_absent(host_of(grubenv={"next_entry": "1>2"}), None, None).changes == ()


def test_the_unit_reboots_at_the_given_uptime_in_every_way_of_booting() -> None:
    lines = deadman.unit(RELEASE, "r1", 900).splitlines()
    for line in (
        "DefaultDependencies=no",
        "IgnoreOnIsolate=yes",
        "ConditionKernelCommandLine=gpunode.trial",
        "WantedBy=sysinit.target emergency.target rescue.target",
    ):
        assert line in lines
    (start,) = [line for line in lines if line.startswith("ExecStart=")]
    assert "left=$$((900 - $${up%%%%.*}))" in start
    assert start.endswith("systemctl reboot --force & sleep 60; echo b > /proc/sysrq-trigger'")


# ---- the evidence ----


def test_the_evidence_of_a_sound_host(host_of: HostOf) -> None:
    found = describe(host_of())
    assert found["default"] == {
        "spec": "0",
        "source": "/etc/default/grub",
        "path": f"gnulinux-simple-{UUID}",
        "kernel_release": "7.0.0-15-generic",
        "problems": [],
    }
    assert found["next"] == {"kernel_release": "7.0.0-15-generic", "via": "default"}
    assert (found["loader"], found["once_supported"], found["problems"]) == ("grub", True, [])
    assert found["entries"][-1] == {
        "path": f"gnulinux-advanced-{UUID}>gnulinux-{RELEASE}-recovery-{UUID}",
        "title": f"Ubuntu, with Linux {RELEASE} (recovery mode)",
        "kernel_release": RELEASE,
        "recovery": True,
    }
    assert len(found["entries"]) == 9


@pytest.mark.parametrize(
    ("changed", "following"),
    [
        ({"grubenv": {"next_entry": "1>6"}}, {"kernel_release": RELEASE, "via": "next_entry"}),
        ({"grubenv": {"next_entry": ""}}, {"kernel_release": "7.0.0-15-generic", "via": "default"}),
        ({"kexec": True}, {"kernel_release": None, "via": "kexec"}),
        ({"loader": "systemd-boot"}, {"kernel_release": None, "via": "unknown"}),
    ],
)
def test_what_boots_next(host_of: HostOf, changed: dict[str, Any], following: dict[str, Any]) -> None:
    assert describe(host_of(**changed))["next"] == following


def test_a_stale_default_is_told(host_of: HostOf) -> None:
    problems = describe(host_of(edit=lambda text: text.replace('set default="0"', 'set default="Ubuntu 6.8.0-117"')))
    assert problems["default"]["problems"] == ["no entry has the title or id 'Ubuntu 6.8.0-117': GRUB boots the first entry"]
    assert problems["problems"] == ["/etc/default/grub says GRUB_DEFAULT='0' and grub.cfg has 'Ubuntu 6.8.0-117': update-grub was not run since"]


def test_where_a_trial_is_not_possible_the_evidence_says_why(host_of: HostOf) -> None:
    found = describe(host_of(probe=Probe("/boot", UUID, ("lvm",), "ext2", ())))
    assert not found["once_supported"]
    assert found["problems"] == ["a trial boot is not possible: GRUB cannot write /boot/grub/grubenv: /boot/grub lies on lvm"]
