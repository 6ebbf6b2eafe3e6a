# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's one exception."""

from __future__ import annotations


class LabError(Exception):
    """The lab cannot go on.

    :param seen: what was observed, with the values.
    :param remedy: the command that gets past it.
    """

    def __init__(self, seen: str, remedy: str) -> None:
        self.seen = seen
        self.remedy = remedy
        super().__init__(f"{seen.rstrip('.')}. {remedy.rstrip('.')}.")
