# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-ins for what only NVIDIA's software on NVIDIA's hardware would do, with the real names, labels, files, messages and interfaces."""

from __future__ import annotations

from .deploy import capacity, deploy, wait_all_ready, wait_capacity, wait_driver_ready
from .images import build

__all__ = ["build", "capacity", "deploy", "wait_all_ready", "wait_capacity", "wait_driver_ready"]
