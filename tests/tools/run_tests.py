# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the parts of the tests and prints what each took beside its budget. Ends with 1 when anything failed, was skipped or could not run."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import yaml
from environments import REPOSITORY, collections_path, folder, program
from parts import LEVELS, Part, Step, parts

SLOWEST = 10
MOST_PROBLEMS = 15  # of a part; their full text stands above the summary
NO_TESTS_COLLECTED = 5  # pytest's exit code


@dataclass(frozen=True)
class Case:
    """One check: a test case, or a command that has none of its own. `problem` is empty when it passed."""

    name: str
    seconds: float
    problem: str = ""


@dataclass(frozen=True)
class Result:
    """What a part came to."""

    part: str
    seconds: float
    cases: tuple[Case, ...]

    @property
    def failed(self) -> tuple[Case, ...]:
        """The cases that did not pass."""
        return tuple(case for case in self.cases if case.problem)


def variables() -> dict[str, str]:
    """What every step runs with: this checkout as gpunode.hygiene, the virtual environment's programs first, and Python 3.9 last.

    pyenv's shims stay out: they look like Pythons that are there, and fail when ansible-test calls them.
    """
    others = [entry for entry in os.environ["PATH"].split(os.pathsep) if Path(entry).name != "shims"]
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(folder("dev") / "bin"), *others, str(folder("host-py39") / "bin")]),
        "ANSIBLE_COLLECTIONS_PATH": str(collections_path()),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "PYTHONDONTWRITEBYTECODE": "1",  # the checkout is also what gets packed, copied and hashed
        "NO_COLOR": "1",
    }


def test_cases(report: Path) -> tuple[Case, ...]:
    """The cases of a JUnit report. A skipped test has proved nothing, so it counts as a problem, and so does an expected failure."""
    found = []
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314  # written by our own pytest
        problems = [f"{child.tag}: {(child.get('message') or '').splitlines()[0] if child.get('message') else ''}".rstrip(": ")
                    for child in case if child.tag in ("failure", "error", "skipped")]
        found.append(Case(f"{case.get('classname')}::{case.get('name')}", float(case.get("time") or 0), "; ".join(problems)))
    return tuple(found)


def run_step(step: Step) -> tuple[Case, ...]:
    """Run one command, its output going where ours goes."""
    title = " ".join(step.argv)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpunode-test-") as scratch:
        report = Path(scratch) / "report.xml"
        environment, _slash, name = step.argv[0].partition("/")
        try:
            argv = [program(name, environment), *step.argv[1:]]
        except FileNotFoundError as error:
            return (Case(title, 0, f"cannot run: {error}"),)
        argv += [f"--junitxml={report}"] if step.pytest else []
        code = subprocess.run(argv, cwd=REPOSITORY / step.cwd, env={**variables(), **step.env}, check=False).returncode
        cases = test_cases(report) if step.pytest and report.exists() else ()
    if code == NO_TESTS_COLLECTED and step.pytest:
        return (*cases, Case(title, time.monotonic() - begun, "cannot run: pytest found no tests"))
    if code and not any(case.problem for case in cases):
        return (*cases, Case(title, time.monotonic() - begun, f"exit code {code}"))
    return cases or (Case(title, time.monotonic() - begun),)


def run_part(part: Part, budget: float) -> Result:
    """Run all steps of a part, also after one failed."""
    print(f"\n=== {part.name} (budget {budget:g} min)", flush=True)
    begun = time.monotonic()
    cases = tuple(case for step in part.steps for case in run_step(step))
    result = Result(part.name, time.monotonic() - begun, cases)
    print(f"=== {part.name}: {'FAILED' if result.failed else 'passed'} in {result.seconds:.1f} s", flush=True)
    return result


def not_passed(result: Result) -> list[str]:
    """A line for each problem of a part. Cases with the same problem share one: a broken fixture fails many tests, and would hide the rest."""
    names: dict[str, list[str]] = {}
    for case in result.failed:
        names.setdefault(case.problem, []).append(case.name)
    lines = [f"  {result.part}: {same[0]}{f' and {len(same) - 1} more' if same[1:] else ''}: {problem}" for problem, same in names.items()]
    return lines[:MOST_PROBLEMS] + ([f"  {result.part}: {len(lines) - MOST_PROBLEMS} more problems"] if lines[MOST_PROBLEMS:] else [])


def summary(results: Sequence[Result], budgets: dict[str, float]) -> str:
    """Time of each part beside its budget, the slowest cases, what did not pass, and the closing line."""
    lines = ["", f"{'part':16}{'minutes':>9}{'budget':>9}{'passed':>9}{'failed':>9}"]
    lines += [f"{r.part:16}{r.seconds / 60:9.1f}{budgets[r.part]:9.1f}{len(r.cases) - len(r.failed):9}{len(r.failed):9}"
              f"{'  over budget' if r.seconds / 60 > budgets[r.part] else ''}" for r in results]
    total = sum(result.seconds for result in results)
    lines.append(f"{'together':16}{total / 60:9.1f}{sum(budgets[r.part] for r in results):9.1f}")
    cases = sorted((case for result in results for case in result.cases), key=lambda case: -case.seconds)
    lines += ["", "slowest:"] + [f"{case.seconds:8.1f} s  {case.name}" for case in cases[:SLOWEST]]
    failed = sum(len(result.failed) for result in results)
    if failed:
        lines += ["", "not passed:", *(line for result in results for line in not_passed(result))]
    return "\n".join([*lines, "", f"{len(cases) - failed} passed, {failed} failed in {total:.0f} s"])


def main(arguments: Sequence[str]) -> int:
    """Run the parts of a level, or the named ones of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("level", choices=LEVELS)
    parser.add_argument("--only", action="append", metavar="PART", help="only this part; may be repeated")
    options = parser.parse_args(arguments)
    budgets: dict[str, float] = yaml.safe_load((REPOSITORY / "tests" / "budget.yml").read_text("utf-8"))
    known = parts(options.level)
    unknown = set(options.only or ()) - {part.name for part in known}
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))} in {options.level}; it has {', '.join(part.name for part in known)}")
    results = [run_part(part, budgets[part.name]) for part in known if not options.only or part.name in options.only]
    print(summary(results, budgets), flush=True)
    return 1 if any(result.failed for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
