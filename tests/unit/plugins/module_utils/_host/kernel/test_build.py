# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The build on disk is read from the image's own header."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.hygiene.plugins.module_utils._host.kernel.build import build_of_image, read_image_build
from hypothesis import given, settings
from hypothesis import strategies as st

RELEASE = "7.0.0-15-generic"


def test_the_build_is_what_uname_would_print(host: Any) -> None:
    host.kernel(RELEASE, build="#15-Ubuntu SMP PREEMPT_DYNAMIC Tue Apr 14 10:10:10 UTC 2026")
    assert read_image_build(RELEASE, str(host)) == "#15-Ubuntu SMP PREEMPT_DYNAMIC Tue Apr 14 10:10:10 UTC 2026"


def test_no_image_has_no_build(host: Any) -> None:
    assert read_image_build(RELEASE, str(host)) is None


@pytest.mark.parametrize("head", [b"", b"MZ", b"\0" * 0x202 + b"HdrS" + b"\0" * 10, b"\x1f\x8b" + b"x" * 0x4000])
def test_other_files_tell_no_build(head: bytes) -> None:
    assert build_of_image(head) is None


@given(st.binary(max_size=64), st.binary(max_size=200))
@settings(derandomize=True, deadline=None)
def test_no_header_whatever_its_bytes_raises(pointer: bytes, text: bytes) -> None:
    found = build_of_image(b"\0" * 0x202 + b"HdrS" + pointer + text)
    assert found is None or found.startswith("#")
