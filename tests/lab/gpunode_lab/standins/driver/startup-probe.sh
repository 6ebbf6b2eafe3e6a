#!/bin/sh
# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# The driver container's startup probe; what it writes is what driver-validation waits for.

set -eu

if [ ! -f /sys/module/nvidia/refcnt ]; then
    echo "NVIDIA kernel module not loaded" >&2
    exit 1
fi
if ! nvidia-smi; then
    echo "nvidia-smi failed" >&2
    exit 1
fi
cat >/run/nvidia/validations/.driver-ctr-ready <<READY
GDRCOPY_ENABLED: ${GDRCOPY_ENABLED:-false}
GDS_ENABLED: ${GDS_ENABLED:-false}
GPU_DIRECT_RDMA_ENABLED: ${GPU_DIRECT_RDMA_ENABLED:-false}
READY
