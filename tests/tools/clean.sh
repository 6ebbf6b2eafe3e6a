#!/usr/bin/env bash
# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Stops the labs that run and removes everything that was built or installed below the cache. System packages stay.

set -euo pipefail

if [ $# != 0 ]; then
    echo "clean.sh takes no arguments and was given: $*. Nothing was removed." >&2
    exit 2
fi

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${GPUNODE_CACHE:-$HOME/.cache/gpunode-hygiene}

for lab in "$cache"/labs/*/; do
    if [ -d "$lab" ]; then "$root/tests/lab/lab" --name "$(basename "$lab")" down; fi
done
rm -rf "$cache"
find "$root" -name .git -prune -o \( -name __pycache__ -o -name .hypothesis -o -name .mypy_cache -o -name .pytest_cache -o -name .ruff_cache -o -name .ansible \) \
    -type d -prune -exec rm -rf {} +
