# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the diagnosis of a fleet takes: prints seconds for growing numbers of nodes, one in ten of them in the incident.

python tests/bench/bench_diagnose.py [NODES ...]
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import conftest  # noqa: F401  # makes the collection importable
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.engine import diagnose
from ansible_collections.gpunode.hygiene.plugins.plugin_utils._diagnosis.load import load_rules
from ansible_collections.gpunode.hygiene.tests.unit.plugins.plugin_utils._diagnosis.evidence import healthy, incident


def fleet(size: int) -> list[dict[str, Any]]:
    """Evidence of its own for every node, with the fleet's part shared as the slices of one read have it."""
    shared = {"gpu_nodes_by_os": {"ubuntu24.04": [f"gpu-{number}" for number in range(size)]}}
    sick, well = json.dumps(incident()), json.dumps(healthy())
    nodes = [json.loads(sick if number % 10 == 0 else well) for number in range(size)]
    for number, node in enumerate(nodes):
        node["node"] = f"gpu-{number}"
        node["cluster"]["fleet"] = shared
    return nodes


def main(sizes: list[int]) -> None:
    """Print one line per size."""
    print(f"checkout: {Path(__file__).resolve().parents[2]}")
    started = time.process_time()
    rules = load_rules()
    print(f"rules: {len(rules)} read in {time.process_time() - started:.2f} s")
    for size in sizes:
        nodes = fleet(size)
        started = time.process_time()
        found = diagnose(nodes, rules)
        seconds = time.process_time() - started
        print(f"diagnose: {size:5} nodes {seconds:6.2f} s {seconds / size * 1000:6.2f} ms per node {len(found):6} findings")


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [500, 1000, 2000])
