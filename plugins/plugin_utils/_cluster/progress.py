# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Progress lines that a person can follow in a job's output: only what changed, and not too often."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS_BETWEEN = 10.0


class Progress:
    """Passes a line on when it differs from the last one shown, at most every 10 s; call it as often as you like."""

    def __init__(self, show: Callable[[str], None], every: float = SECONDS_BETWEEN, clock: Callable[[], float] = time.monotonic) -> None:
        self._show = show
        self._every = every
        self._clock = clock
        self._last = ""
        self._at = float("-inf")

    def __call__(self, line: str) -> None:
        """Say what is going on now."""
        now = self._clock()
        if line == self._last or now - self._at < self._every:
            return
        self._show(line)
        self._last, self._at = line, now
