// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// GDRCopy: /dev/gdrdrv on a dynamic major.

#include "standin.h"

static const struct file_operations operations = { .owner = THIS_MODULE, .llseek = noop_llseek };
static struct standin_range range;

static int __init gdrdrv_init(void)
{
	int error = nvidia_standin_attach();

	return error ? error : standin_add(&range, "gdrdrv", 0, 0, 1, &operations);
}

static void __exit gdrdrv_exit(void)
{
	standin_remove(&range);
}

module_init(gdrdrv_init);
module_exit(gdrdrv_exit);
MODULE_DESCRIPTION("Stand-in for gdrdrv");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION("2.5.2");
