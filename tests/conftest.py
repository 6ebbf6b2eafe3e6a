# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes `ansible_collections.gpunode.hygiene` importable, and known to Ansible, wherever the checkout lies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
INSTALLED = CHECKOUT.parts[-3:] == ("ansible_collections", "gpunode", "hygiene")  # as ansible-test wants it, with an import of its own

if not INSTALLED:
    sys.path.insert(0, str(CHECKOUT / "tests" / "lab"))
    from gpunode_lab.playbooks import collections_path

    sys.path.insert(0, str(collections_path()))
    os.environ["ANSIBLE_COLLECTIONS_PATH"] = str(collections_path())
