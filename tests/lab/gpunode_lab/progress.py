# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Progress lines with the time passed and, from earlier runs, an estimate."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

# Seconds on two cores without KVM, for the first run on a machine; afterwards the machine's own figures are used.
FIRST_ESTIMATES = {
    "control plane binaries (Go)": 260,
    "kwok (Go)": 150,
    "node image: root filesystem": 240,
    "node image: first boot and installation of GRUB": 180,
    "snapshot base": 180,
    "snapshot kernel_mismatch": 300,
}


class Progress:
    """Prints one line when a step starts and one when it ends, and remembers how long it took.

    :param memory: JSON file of {title: seconds} from earlier runs.
    """

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        """One line, with the time since this object was made."""
        print(f"[{time.monotonic() - self._start:6.1f}s] {text}", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Announce a step with its estimate, and its end with its duration."""
        estimate = self._known().get(title)
        self.say(f"{title} …" + (f" (about {_duration(estimate)})" if estimate and estimate >= 2 else ""))
        begun = time.monotonic()
        yield
        taken = time.monotonic() - begun
        self._remember(title, taken)
        self.say(f"{title}: done in {_duration(taken)}")

    def _known(self) -> dict[str, float]:
        try:
            return {**FIRST_ESTIMATES, **json.loads(self._memory.read_text("utf-8"))}
        except (OSError, ValueError):
            return dict(FIRST_ESTIMATES)

    def _remember(self, title: str, seconds: float) -> None:
        known = {**self._known(), title: round(seconds, 1)}
        self._memory.parent.mkdir(parents=True, exist_ok=True)
        partial = self._memory.with_name(f"{self._memory.name}.{os.getpid()}")
        partial.write_text(json.dumps(known, indent=1, sort_keys=True), "utf-8")
        partial.rename(self._memory)


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
