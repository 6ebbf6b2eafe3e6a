# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A child process never makes the caller wait past its time."""

from __future__ import annotations

import time

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.run import run


def test_output_errors_and_status_are_returned() -> None:
    ended = run(["sh", "-c", "cat; echo oops >&2; exit 3"], timeout=10, stdin="hello")
    assert (ended.rc, ended.out, ended.err, ended.ok) == (3, "hello", "oops\n", False)
    assert ended.summary == "`sh -c cat; echo oops >&2; exit 3` ended with status 3: oops"


def test_a_missing_program_is_status_127() -> None:
    assert run(["gpunode-no-such-program"], timeout=1).rc == 127


def test_a_hanging_program_is_given_up_at_its_deadline() -> None:
    begun = time.monotonic()
    ended = run(["sleep", "600"], timeout=0.2)
    assert ended.rc is None
    assert time.monotonic() - begun < 60


def test_a_grandchild_that_keeps_the_output_open_does_not_make_the_caller_wait() -> None:
    begun = time.monotonic()
    ended = run(["sh", "-c", "setsid sleep 600 & echo started"], timeout=30)
    assert (ended.rc, ended.out) == (0, "started\n")
    assert time.monotonic() - begun < 60


def test_messages_are_in_english_whatever_the_callers_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    assert run(["sh", "-c", "echo $LC_ALL:$LANGUAGE"], timeout=10).out == "C.UTF-8:\n"
