# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Long matrices run as a seeded sample, and whole in `make test-full`."""

from __future__ import annotations

import datetime
import os
import random
from collections import defaultdict

import pytest

WHOLE = bool(os.environ.get("GPUNODE_WHOLE_MATRICES"))
SEED = int(os.environ.get("GPUNODE_SEED") or datetime.datetime.now(datetime.UTC).strftime("%Y%m%d"))


def pytest_report_header() -> str:
    """What was chosen, and how to choose it again."""
    return "matrices: whole" if WHOLE else f"matrices: a sample; the same again with GPUNODE_SEED={SEED}, whole with GPUNODE_WHOLE_MATRICES=1"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the cases of a test marked `sample(n)` keep n, chosen by the seed; pytest reports the others as deselected."""
    if WHOLE:
        return
    matrices: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sample"):
            matrices[item.nodeid.partition("[")[0]].append(item)
    dropped = []
    for name, cases in matrices.items():
        marker = cases[0].get_closest_marker("sample")
        assert marker is not None
        kept = random.Random(f"{SEED} {name}").sample(cases, min(marker.args[0], len(cases)))  # a choice, not a secret
        dropped += [case for case in cases if case not in kept]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in dropped]
