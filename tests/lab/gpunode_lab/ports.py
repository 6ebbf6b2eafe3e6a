# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Free TCP ports on loopback."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """Distinct ports that nobody listens on now; all are held open until the last is found."""
    with ExitStack() as stack:
        found = []
        for _index in range(count):
            listener = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            listener.bind((address, 0))
            found.append(int(listener.getsockname()[1]))
        return found
