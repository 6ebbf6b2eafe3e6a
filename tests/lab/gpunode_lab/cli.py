# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`lab up`, `down`, `ssh`, `status`, `replay`, `env`, `reset`."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence

from .errors import LabError
from .lab import BASE, INCIDENTS, Lab, all_labs, incident_module


def parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    top = argparse.ArgumentParser(prog="lab", description="A GPU node without a GPU: a virtual machine with two kernels, joined to a real control plane.")
    top.add_argument("--name", default=os.environ.get("GPUNODE_LAB", "default"), help="which lab, when there are several (default: %(default)s)")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="start the lab from a snapshot; makes the snapshot the first time")
    up.add_argument("--from", dest="snapshot", default=BASE, metavar="SNAPSHOT", help=f"{BASE}, {', '.join(INCIDENTS)} or an incident's name (default: {BASE})")
    down = commands.add_parser("down", help="stop the lab and remove it; what it was built from stays in the cache")
    down.add_argument("--all", action="store_true", help="every lab, also those that tests left behind")
    ssh = commands.add_parser("ssh", help="a shell on the node, or one command")
    ssh.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    commands.add_parser("status", help="what runs; ends with 1 when the lab is not whole")
    replay = commands.add_parser("replay", help="do to the running lab what happened in an incident")
    replay.add_argument("incident")
    commands.add_parser("env", help="export lines for kubectl and ansible-playbook: eval \"$(lab env)\"")
    commands.add_parser("reset", help="press the node's reset button")
    return top


def main(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    options = parser().parse_args(arguments)
    lab = Lab(options.name)
    try:
        return _run(lab, options)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


def _run(lab: Lab, options: argparse.Namespace) -> int:
    if options.command == "up":
        lab.up(options.snapshot)
    elif options.command == "down":
        for name in all_labs() if options.all else [options.name]:
            Lab(name).down()
    elif options.command == "ssh":
        return subprocess.run([*lab.connection.command, *options.words], check=False).returncode
    elif options.command == "status":
        parts = lab.status()
        print("\n".join(f"{name + ':':16}{text}" for name, text in parts.items()))
        return 0 if lab.running() else 1
    elif options.command == "replay":
        with lab.progress.step(f"replay {options.incident}"):
            incident_module(options.incident).replay(lab)
    elif options.command == "env":
        lab.state  # noqa: B018  # raises when the lab is not up
        print("\n".join(f"export {name}={shlex.quote(value)}" for name, value in lab.environment().items()))
    elif options.command == "reset":
        lab.reset()
    return 0
