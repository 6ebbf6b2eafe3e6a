# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The unit that reboots a host out of a trial which nobody confirms."""

from __future__ import annotations

UNIT = "gpunode-trial-deadman.service"
FOLDER = "/etc/systemd/system"
UNIT_PATH = f"{FOLDER}/{UNIT}"
# sysinit for a normal boot; the other two because a boot that fails early may reach nothing else.
TARGETS = ("sysinit.target", "emergency.target", "rescue.target")
LINKS = tuple(f"{FOLDER}/{target}.wants/{UNIT}" for target in TARGETS)
LINK_TARGET = UNIT_PATH
# A manager that hangs does not carry out `systemctl reboot`; the kernel does when it is asked (root's write to sysrq-trigger is never masked).
_GRACE = 60


def unit(release: str, run: str, confirm_within: int) -> str:
    """The unit's text.

    `$$` and `%%` are systemd's escapes. Nothing stops it but `systemctl stop`: not a switch to the emergency target (IgnoreOnIsolate), not a shutdown.

    :param confirm_within: seconds of uptime after which it reboots.
    """
    return f"""# Written by the Ansible module gpunode.hygiene.grub_default; `state: absent, mode: once` takes it away.
[Unit]
Description=Reboot out of the trial of kernel {release} (run {run}) unless it is confirmed within {confirm_within} s
DefaultDependencies=no
IgnoreOnIsolate=yes
ConditionKernelCommandLine=gpunode.trial

[Service]
Type=simple
ExecStart=/bin/sh -c 'read up rest < /proc/uptime; left=$$(({confirm_within} - $${{up%%%%.*}})); [ $$left -le 0 ] || sleep $$left; \
echo "gpunode.hygiene: the trial of kernel {release} was not confirmed within {confirm_within} s; rebooting" > /dev/kmsg; \
systemctl reboot --force & sleep {_GRACE}; echo b > /proc/sysrq-trigger'

[Install]
WantedBy={" ".join(TARGETS)}
"""
