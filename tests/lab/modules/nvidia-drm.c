// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Kernel mode setting, on top of nvidia_modeset.

#include "standin.h"

static int __init drm_init(void)
{
	return nvidia_modeset_standin_attach();
}

static void __exit drm_exit(void)
{
}

module_init(drm_init);
module_exit(drm_exit);
MODULE_DESCRIPTION("Stand-in for nvidia-drm");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION(STANDIN_VERSION);
