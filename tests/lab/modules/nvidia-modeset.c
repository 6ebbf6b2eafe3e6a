// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Mode setting: minor 254 of the driver's major.

#include "standin.h"

static const struct file_operations operations = { .owner = THIS_MODULE, .llseek = noop_llseek };
static struct standin_range range;

int nvidia_modeset_standin_attach(void)
{
	return 0;
}
EXPORT_SYMBOL(nvidia_modeset_standin_attach);

static int __init modeset_init(void)
{
	int error = nvidia_standin_attach();

	return error ? error : standin_add(&range, "nvidia-modeset", NVIDIA_MAJOR, 254, 1, &operations);
}

static void __exit modeset_exit(void)
{
	standin_remove(&range);
}

module_init(modeset_init);
module_exit(modeset_exit);
MODULE_DESCRIPTION("Stand-in for nvidia-modeset");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION(STANDIN_VERSION);
