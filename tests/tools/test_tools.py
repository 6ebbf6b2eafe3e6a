# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The runner counts what proved something, and only that."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import check_links
import pytest
import render_docs
import run_tests
import yaml
from environments import REPOSITORY
from parts import LEVELS, Part, Step, parts
from run_tests import Case, Result

SUITE = """
import pytest

def test_passes(): assert 1 + 1 == 2
def test_fails(): assert 1 + 1 == 3
@pytest.mark.skip(reason="no such machine")
def test_skips(): pass
@pytest.mark.xfail(reason="known")
def test_is_expected_to_fail(): assert False
"""


def problems(cases: tuple[Case, ...]) -> dict[str, str]:
    return {case.name.rpartition("::")[2]: case.problem for case in cases}


def step_of(folder: Path, text: str) -> Step:
    (folder / "test_made_up.py").write_text(text, "utf-8")
    return Step(("dev/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), "-c", "/dev/null", str(folder)), pytest=True)


def test_a_skipped_test_and_an_expected_failure_count_as_not_passed(tmp_path: Path) -> None:
    assert problems(run_tests.run_step(step_of(tmp_path, SUITE))) == {
        "test_passes": "",
        "test_fails": "failure: assert (1 + 1) == 3",
        "test_skips": "skipped: no such machine",
        "test_is_expected_to_fail": "skipped: known",
    }


def test_a_run_without_tests_did_not_run(tmp_path: Path) -> None:
    [case] = run_tests.run_step(step_of(tmp_path, "# nothing here\n"))
    assert case.problem == "cannot run: pytest found no tests"


@pytest.mark.parametrize(("argv", "problem"), [
    (("dev/python", "-c", "pass"), ""),
    (("dev/python", "-c", "raise SystemExit(3)"), "exit code 3"),
])
def test_a_command_passes_by_its_exit_code(argv: tuple[str, ...], problem: str) -> None:
    [case] = run_tests.run_step(Step(argv))
    assert case.problem == problem


def test_a_program_that_the_set_up_did_not_make_is_named() -> None:
    [case] = run_tests.run_step(Step(("dev/no-such-program",)))
    assert case.problem.startswith("cannot run: ")
    assert "/bin/no-such-program is not there" in case.problem


def test_the_summary_names_what_did_not_pass_and_closes_with_the_counts() -> None:
    results = [Result("a", 90.0, (Case("x", 80.0), Case("y", 2.0, "exit code 1"))), Result("b", 6.0, (Case("z", 6.0),))]
    lines = run_tests.summary(results, {"a": 1.0, "b": 1.0, "c": 9.0}).splitlines()
    assert lines[2:5] == [
        "a                     1.5      1.0        1        1  over budget",
        "b                     0.1      1.0        1        0",
        "together              1.6      2.0",
    ]
    assert lines[-3:] == ["  a: y: exit code 1", "", "2 passed, 1 failed in 96 s"]


def test_cases_with_the_same_problem_share_a_line_and_a_part_prints_only_so_many() -> None:
    same = tuple(Case(f"s{number}", 1.0, "no lab") for number in range(3))
    different = tuple(Case(f"d{number}", 1.0, f"assert {number}") for number in range(run_tests.MOST_PROBLEMS + 4))
    assert run_tests.not_passed(Result("a", 1.0, (Case("fine", 1.0), *same))) == ["  a: s0 and 2 more: no lab"]
    lines = run_tests.not_passed(Result("b", 1.0, different))
    assert (len(lines), lines[-1]) == (run_tests.MOST_PROBLEMS + 1, "  b: 4 more problems")


def test_each_level_has_the_parts_of_the_smaller_ones_and_each_part_a_budget() -> None:
    names = [[part.name for part in parts(level)] for level in LEVELS]
    assert all(smaller == larger[: len(smaller)] for smaller, larger in pairwise(names))
    assert sorted(yaml.safe_load((REPOSITORY / "tests" / "budget.yml").read_text("utf-8"))) == sorted(names[-1])


@pytest.mark.parametrize(("level", "expected"), [("lint", False), ("quick", True), ("test", True), ("full", True)])
def test_a_part_runs_from_its_level_on(level: str, expected: bool) -> None:
    assert Part("p", "quick", ()).runs_in(level) is expected


@pytest.mark.parametrize(("heading", "anchor"), [("Set up and test", "set-up-and-test"), ("`make` it: now", "make-it-now"), ("GRUB 2.06", "grub-206")])
def test_headings_have_the_anchors_of_git_hosts(heading: str, anchor: str) -> None:
    assert check_links.anchor(heading) == anchor


def test_a_variable_becomes_a_row() -> None:
    page = render_docs.variables_page({"gpunode_x": {"type": "list", "default": [], "meaning": "What it is."}})
    assert page.splitlines()[-1] == "| `gpunode_x` | list | `[]` | What it is. |"


def test_a_roles_page_tells_every_variable_and_how_to_use_it_alone() -> None:
    options = {
        "r_needed": {"type": "str", "required": True, "description": "As C(uname -r) prints it."},
        "r_free": {"type": "int", "default": 3, "description": "Seconds."},
    }
    page = render_docs.role_page("r", {"main": {"short_description": "Does it", "description": ["Sets V(r_done)."], "options": options}})
    assert "Does it." in page
    assert "Sets `r_done`." in page
    assert "| `r_needed` | str | needed | As `uname -r` prints it. |" in page
    assert "| `r_free` | int | `3` | Seconds. |" in page
    assert "    name: gpunode.hygiene.r\n  vars:\n    r_needed: ...\n" in page


def test_tests_that_share_a_lab_run_on_one_worker(tmp_path: Path) -> None:
    suite = (
        "import pytest\npytestmark = pytest.mark.xdist_group('shared')\n"
        "@pytest.mark.parametrize('number', range(4))\ndef test_it(number, worker_id, record_property): record_property('worker', worker_id)\n"
    )
    (tmp_path / "test_made_up.py").write_text(suite, "utf-8")
    report = tmp_path / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, "-c", "/dev/null", "--numprocesses", "2", "--dist", "loadgroup", f"--junitxml={report}"]
    subprocess.run([sys.executable, "-m", "pytest", *map(str, options), str(tmp_path)], check=True, capture_output=True)
    workers = [value.get("value") for value in ElementTree.parse(report).iter("property")]  # noqa: S314  # written by our own pytest
    assert len(workers) == 4
    assert len(set(workers)) == 1
