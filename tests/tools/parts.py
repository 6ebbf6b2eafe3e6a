# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of the tests in the order in which they run: the cheap ones first."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

TOOLS = "tests/tools"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
OLDEST = "3.9"  # of the hosts
LEVELS = ("lint", "quick", "test", "full")


@dataclass(frozen=True)
class Step:
    """One command.

    :param argv: run in `cwd` (relative to the checkout); its first word is `<virtual environment>/<program>`.
    :param pytest: whether it is a pytest that shall report its test cases.
    """

    argv: tuple[str, ...]
    cwd: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    pytest: bool = False


@dataclass(frozen=True)
class Part:
    """Steps with one name and one budget.

    :param first_level: the smallest of `LEVELS` that runs it; `full` runs everything.
    """

    name: str
    first_level: str
    steps: tuple[Step, ...]

    def runs_in(self, level: str) -> bool:
        """Whether a run of that level has this part."""
        return LEVELS.index(self.first_level) <= LEVELS.index(level)


def _command(*argv: str, cwd: str = ".", **env: str) -> Step:
    return Step(argv, cwd, env)


def _in_collection(*argv: str) -> Step:
    return _command("dev/python", f"{TOOLS}/in_collection.py", *argv)


def _ansible_test(*argv: str) -> Step:
    return _in_collection("ansible-test", *argv, "--color", "no")


def _pytest(*argv: str, environment: str = "dev", **env: str) -> Step:
    return Step((f"{environment}/python", "-m", "pytest", "--quiet", *argv), env=env, pytest=True)


def parts(level: str) -> tuple[Part, ...]:
    """The parts of a run. In `full` the long matrices are whole; everywhere else they are a seeded sample."""
    whole = {"GPUNODE_WHOLE_MATRICES": "1", "GPUNODE_EXAMPLES": "400"} if level == "full" else {}
    chosen = (
        Part("ruff", "lint", (_command("dev/ruff", "check", "."),)),
        Part("mypy", "lint", (_command("dev/python", f"{TOOLS}/check_types.py"),)),
        Part("yaml", "lint", (_command("dev/yamllint", "--strict", "."),)),
        Part("shell", "lint", (_command("dev/python", f"{TOOLS}/check_shell.py"),)),
        Part("ansible-lint", "lint", (_command("dev/ansible-lint", "--strict"),)),
        Part("docs", "lint", (
            _in_collection(
                "antsibull-docs", "lint-collection-docs", "--plugin-docs", "--validate-collection-refs=all", "--disallow-unknown-collection-refs", "."
            ),
            _command("dev/antsibull-changelog", "lint"),
            _command("dev/python", f"{TOOLS}/render_docs.py", "--check"),
            _command("dev/python", f"{TOOLS}/check_links.py"),
        )),
        Part("unit", "quick", (_pytest("tests/unit", "tests/tools"),)),
        Part("host-py39", "quick", (_pytest("tests/unit/plugins/module_utils", "tests/unit/plugins/modules", environment="host-py39"),)),
        Part("without-node", "test", (_pytest("tests/lab", "tests/integration", "-m", "quick"),)),
        Part("package", "test", (_command("dev/python", f"{TOOLS}/check_package.py"),)),
        Part("core218", "test", (_pytest("tests/unit", environment="core218"), _command("core218/python", f"{TOOLS}/check_syntax.py"))),
        Part("sanity", "test", (
            _ansible_test("sanity", "--python", PYTHON),
            _ansible_test("sanity", "--test", "compile", "--python", OLDEST),
            _ansible_test("sanity", "--test", "import", "--python", OLDEST),
        )),
        Part("units", "test", (_ansible_test("units", "--python", PYTHON),)),
        Part("integration", "test", (_pytest("tests/integration", "-m", "not quick", **whole),)),
        Part("lab", "test", (_pytest("tests/lab", "-m", "not quick", "--numprocesses", "2", "--dist", "loadgroup", **whole),)),
        Part("molecule", "test", (_command("dev/molecule", "--base-config", "molecule/config.yml", "test", "--all", cwd="extensions"),)),
    )
    return tuple(part for part in chosen if part.runs_in(level))
