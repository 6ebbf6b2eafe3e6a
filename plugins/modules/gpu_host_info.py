#!/usr/bin/python
# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All evidence about a GPU host in one task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_host_info
short_description: Read everything about a GPU host that its kernel, its boot and its packages depend on
version_added: 0.1.0
author:
  - gpunode.hygiene contributors (@gpunode)
description:
  - Gathers in one task what the other modules, the classifier and the reports of this collection look at.
  - Nothing on the host is changed, and nothing can make the module wait for ever. Each program that it starts has a deadline.
  - A part that cannot be read is V(null), and RV(gpu_host.unknown) says why. A part that was not asked for is not there, and
    RV(gpu_host.not_checked) names its subset.
options:
  gather_subset:
    description:
      - What to read, as in M(ansible.builtin.setup). V(min) is always read unless V(!min) is given.
      - V(min) is the ids of machine and boot and the running kernel, V(kernel) the installed kernels and the out-of-tree modules, V(boot) what boots
        next, V(packages) the holds, V(os) the operating system, V(space) the room in C(/boot), V(units) the failed units of systemd, V(runs) the
        undo records, and V(gpus) the PCI addresses of the GPUs.
      - V(all) is everything. A name with V(!) before it is left out, and V(!all) leaves nothing but V(min).
    type: list
    elements: str
    default: [all]
attributes:
  check_mode:
    description: Can run in check mode and return what would change without changing it.
    support: full
  diff_mode:
    description: Returns what changed, or would change in check mode.
    support: none
notes:
  - Needs root on the host.
"""

EXAMPLES = r"""
- name: Read everything
  gpunode.hygiene.gpu_host_info:
  register: result

- name: Read the ids, the running kernel and what is installed, and nothing else
  gpunode.hygiene.gpu_host_info:
    gather_subset: [kernel]
"""

RETURN = r"""
gpu_host:
  description: The evidence.
  returned: success
  type: dict
  contains:
    boot_id:
      description: The id that the kernel drew at this boot.
      returned: subset V(min)
      type: str
      sample: 0c2a1c2e-9a51-4b1d-8f0e-1c9d5a4f7b11
    machine_id:
      description: Content of C(/etc/machine-id).
      returned: subset V(min)
      type: str
      sample: 5f0d9c3f0e1b4a0c9a1f1f7d3c2b1a00
    system_uuid:
      description: The firmware's UUID of the machine, lower case.
      returned: subset V(min)
      type: str
      sample: 4c4c4544-0043-3510-8052-b4c04f564433
    kernel:
      description: The running and the installed kernels.
      returned: subsets V(min) and V(kernel)
      type: dict
      contains:
        running:
          description: The running kernel's release.
          type: str
          sample: 7.0.0-15-generic
        boot_id:
          description: As RV(gpu_host.boot_id).
          returned: subset V(min)
          type: str
        machine_id:
          description: As RV(gpu_host.machine_id).
          returned: subset V(min)
          type: str
        cmdline:
          description: The running kernel's command line.
          returned: subset V(min)
          type: str
          sample: BOOT_IMAGE=/boot/vmlinuz-7.0.0-15-generic root=UUID=1b2c ro
        running_build:
          description: The running kernel's build, as C(uname -v) prints it.
          returned: subset V(kernel)
          type: str
          sample: '#15-Ubuntu SMP PREEMPT_DYNAMIC Tue Apr 14 10:10:10 UTC 2026'
        image_build:
          description: The build of the image on disk of the same release. V(null) where the image does not tell (other than x86).
          returned: subset V(kernel)
          type: str
        respun:
          description: Whether that image was replaced since the boot. V(null) when not known.
          returned: subset V(kernel)
          type: bool
        installed:
          description: Every kernel release with an image in C(/boot) or a folder in C(/lib/modules), and the running one, newest first.
          returned: subset V(kernel)
          type: list
          elements: dict
          contains:
            kernel_release:
              description: The release, as C(uname -r) prints it when it runs.
              type: str
              sample: 6.8.0-117-generic
            image:
              description: Path of the kernel image; V(null) when there is none.
              type: str
              sample: /boot/vmlinuz-6.8.0-117-generic
            image_bytes:
              description: Its size in bytes.
              type: int
              sample: 14981512
            initrd:
              description: Path of the initrd; V(null) when there is none.
              type: str
              sample: /boot/initrd.img-6.8.0-117-generic
            initrd_bytes:
              description: Its size in bytes.
              type: int
              sample: 74002345
            modules:
              description: Path of the module folder; V(null) when there is none.
              type: str
              sample: /lib/modules/6.8.0-117-generic
            headers:
              description: Path of the headers with which modules can be built; V(null) when there are none. A kernel boots without.
              type: str
              sample: /usr/src/linux-headers-6.8.0-117-generic
            packages:
              description: The image's packages and their dpkg state. Empty when no package owns the kernel, V(null) when dpkg did not answer.
              type: dict
              sample: {linux-image-6.8.0-117-generic: installed}
            complete:
              description: Whether the kernel has everything that a boot needs.
              type: bool
            problems:
              description: Why it is not complete; empty when it is.
              type: list
              elements: str
              sample: []
    out_of_tree:
      description: Loaded out-of-tree modules that the host itself provides, and the modules registered with DKMS; the NVIDIA stack is left out.
      returned: subset V(kernel)
      type: list
      elements: dict
      contains:
        name:
          description: The module's name, or DKMS's name for it.
          type: str
          sample: mlnx-ofed-kernel
        source:
          description: V(module) for a loaded module, V(dkms) for an entry of DKMS.
          type: str
          sample: dkms
        loaded:
          description: Whether it is loaded; V(null) for an entry of DKMS.
          type: bool
        version:
          description: DKMS's version of it for the running kernel, else the highest registered one; V(null) for a loaded module.
          type: str
          sample: 24.10.OFED.24.10.0.7.0.1
        available_for:
          description: The installed kernel releases that have it, newest first.
          type: list
          elements: str
          sample: [6.8.0-117-generic]
    loaded_from_elsewhere:
      description: Loaded out-of-tree modules that no installed kernel has on disk, so that a container or a person loaded them.
      returned: subset V(kernel)
      type: list
      elements: str
      sample: []
    boot:
      description: What boots next, and what boots by default.
      returned: subset V(boot)
      type: dict
      contains:
        loader:
          description: The boot loader; V(grub), or the name of another.
          type: str
          sample: grub
        default:
          description: What GRUB's default leads to.
          type: dict
          contains:
            spec:
              description: The value as GRUB reads it.
              type: str
              sample: '0'
            source:
              description: The file that sets it.
              type: str
              sample: /etc/default/grub
            path:
              description: Ids of the menu entry that it leads to, from the top.
              type: str
              sample: gnulinux-simple-1b2c
            kernel_release:
              description: The kernel release that the entry boots; V(null) when that cannot be told.
              type: str
              sample: 7.0.0-15-generic
            problems:
              description: What is wrong with the default.
              type: list
              elements: str
              sample: []
        next:
          description: What boots next.
          type: dict
          contains:
            kernel_release:
              description: The kernel release; V(null) when that cannot be told.
              type: str
              sample: 7.0.0-15-generic
            via:
              description: Why, V(default), V(next_entry) for a one-shot entry, V(kexec) when a reboot does not pass the boot loader, or V(unknown).
              type: str
              sample: default
        entries:
          description: The entries of the menu.
          type: list
          elements: dict
          contains:
            path:
              description: Ids from the top.
              type: str
              sample: gnulinux-advanced-1b2c>gnulinux-6.8.0-117-generic-advanced-1b2c
            title:
              description: The title that the menu shows.
              type: str
              sample: Ubuntu, with Linux 6.8.0-117-generic
            kernel_release:
              description: The kernel release that the entry boots; V(null) when that cannot be told.
              type: str
              sample: 6.8.0-117-generic
            recovery:
              description: Whether it boots into recovery mode.
              type: bool
              sample: false
        once_supported:
          description: Whether a one-shot trial boot is possible.
          type: bool
          sample: true
        problems:
          description: What keeps the boot from being controlled, or is suspicious.
          type: list
          elements: str
          sample: []
    packages:
      description: How the kernels are pinned.
      returned: subset V(packages)
      type: dict
      contains:
        closure:
          description: The packages that M(gpunode.hygiene.kernel_pin) holds for the held releases, or for the running one when none is held.
          type: list
          elements: str
          sample: [linux-generic, linux-image-6.8.0-117-generic]
        held:
          description: All packages on hold.
          type: list
          elements: str
          sample: []
        metas:
          description: The metapackages among the closure.
          type: list
          elements: str
          sample: [linux-generic]
        protected:
          description: Whether the whole closure is held.
          type: bool
        problems:
          description: What is wrong with the holds or the kernel packages.
          type: list
          elements: str
          sample: []
    os:
      description: The operating system.
      returned: subset V(os)
      type: dict
      contains:
        id:
          description: C(ID) of os-release.
          type: str
          sample: ubuntu
        version_id:
          description: C(VERSION_ID) of os-release; V(null) where a release has none.
          type: str
          sample: '26.04'
        codename:
          description: C(VERSION_CODENAME) of os-release.
          type: str
          sample: resolute
        reboot_required:
          description: Whether C(/run/reboot-required) exists. A kernel pinned below the newest keeps it there.
          type: bool
        reboot_required_by:
          description: The packages that ask for it.
          type: list
          elements: str
          sample: []
    virtualization:
      description: What C(systemd-detect-virt) says; V(none) is bare metal.
      returned: subset V(os)
      type: str
      sample: none
    boot_space:
      description: Room in C(/boot), in bytes.
      returned: subset V(space)
      type: dict
      contains:
        free_bytes:
          description: What is free.
          type: int
          sample: 1610612736
        total_bytes:
          description: Size of the file system.
          type: int
          sample: 2040373248
        needed_bytes:
          description: What one more kernel takes, from the largest image and the largest initrd there are.
          type: int
          sample: 90032433
        menu_bytes:
          description: What a new boot menu takes beside the old one.
          type: int
          sample: 1068576
    units:
      description: The state of systemd.
      returned: subset V(units)
      type: dict
      contains:
        state:
          description: What C(systemctl is-system-running) says.
          type: str
          sample: running
        failed:
          description: The failed units.
          type: list
          elements: str
          sample: []
    runs:
      description: The runs recorded on the host, newest first.
      returned: subset V(runs)
      type: list
      elements: dict
      contains:
        run:
          description: The run's id.
          type: str
          sample: 20260101T120000Z-3f2a1c
        procedure:
          description: What ran; V(null), as are the fields below, where a module was called by itself.
          type: str
          sample: recover_kernel_mismatch
        node:
          description: The Node's name; empty outside Kubernetes.
          type: str
          sample: gpu-17
        controller:
          description: From where it ran.
          type: str
          sample: bastion-1
        state:
          description: V(started) or V(finished).
          type: str
          sample: finished
        verdict:
          description: How it ended.
          type: str
          sample: recovered
        started:
          description: When it started, UTC. For a module called by itself, when it recorded its first change.
          type: str
          sample: '2026-01-01T12:00:00Z'
        finished:
          description: When it finished, UTC.
          type: str
          sample: '2026-01-01T12:20:00Z'
        boot_id:
          description: The boot in which it started.
          type: str
        kernel:
          description: The kernel release that ran when it started.
          type: str
          sample: 7.0.0-15-generic
        failed_units:
          description: The units that were failed when it started.
          type: list
          elements: str
          sample: []
        modules:
          description: The modules that recorded changes.
          type: list
          elements: str
          sample: [grub_default, kernel_pin]
        changes:
          description: Everything that the run changed, with what was there before and how to give it back. V(null) when a record cannot be read.
          type: list
          elements: dict
          contains:
            what:
              description: The kind of thing.
              type: str
              sample: hold
            where:
              description: Which one.
              type: str
              sample: linux-generic
            before:
              description: Its value as found; V(null) when it was absent.
              type: raw
              sample: install
            after:
              description: Its value as wanted; V(null) for absent.
              type: raw
              sample: hold
            undo:
              description: A command that gives the earlier value back.
              type: str
              sample: apt-mark unhold linux-generic
        problem:
          description: Why a record of the run cannot be read; V(null) when all can.
          type: str
    pci_gpus:
      description: PCI addresses of the NVIDIA GPUs, whether or not a driver is bound.
      returned: subset V(gpus)
      type: list
      elements: str
      sample: ['0000:17:00.0']
    unknown:
      description: Each part that could not be read, with the reason.
      returned: always
      type: dict
      sample: {}
    not_checked:
      description: The subsets that were not asked for.
      returned: always
      type: list
      elements: str
      sample: []
msg:
  description: The result in one sentence.
  returned: always
  type: str
  sample: The host runs 7.0.0-15-generic; everything that was asked for could be read.
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.answer import fail, need_root
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.info import choose, gather
from ansible_collections.gpunode.hygiene.plugins.module_utils._model import HygieneError

ARGUMENTS: dict[str, dict[str, Any]] = {"gather_subset": {"type": "list", "elements": "str", "default": ["all"]}}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        need_root()
        evidence = gather(choose(module.params["gather_subset"]))
    except HygieneError as error:
        fail(module, error)
        return
    unread = ", ".join(sorted(evidence["unknown"]))
    rest = f"could not read {unread}" if unread else "everything that was asked for could be read"
    module.exit_json(changed=False, msg=f"The host runs {os.uname().release}; {rest}.", gpu_host=evidence)


if __name__ == "__main__":
    main()
