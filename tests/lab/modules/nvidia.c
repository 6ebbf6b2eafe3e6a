// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// The driver's core: GPUs are minors 0 to 253 of major 195, the control device is 255, and 254 belongs to nvidia_modeset.

#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "standin.h"

static const struct file_operations operations = { .owner = THIS_MODULE, .llseek = noop_llseek };
static struct standin_range gpus, control;
static struct proc_dir_entry *folder;

int nvidia_standin_attach(void)
{
	return 0;
}
EXPORT_SYMBOL(nvidia_standin_attach);

static int show_version(struct seq_file *file, void *unused)
{
	seq_puts(file, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " STANDIN_VERSION "  Release Build  (gpunode.hygiene lab)\n");
	seq_puts(file, "GCC version:  gcc version " __VERSION__ "\n");
	return 0;
}

static int __init nvidia_init(void)
{
	int error = standin_add(&gpus, "nvidia", NVIDIA_MAJOR, 0, 254, &operations);

	if (error)
		return error;
	error = standin_add(&control, "nvidiactl", NVIDIA_MAJOR, 255, 1, &operations);
	if (error)
		goto remove_gpus;
	folder = proc_mkdir("driver/nvidia", NULL);
	if (!folder || !proc_create_single("version", 0444, folder, show_version)) {
		error = -ENOMEM;
		goto remove_all;
	}
	pr_info("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  " STANDIN_VERSION "\n");
	return 0;

remove_all:
	proc_remove(folder);
	standin_remove(&control);
remove_gpus:
	standin_remove(&gpus);
	return error;
}

static void __exit nvidia_exit(void)
{
	proc_remove(folder);
	standin_remove(&control);
	standin_remove(&gpus);
}

module_init(nvidia_init);
module_exit(nvidia_exit);
MODULE_DESCRIPTION("Stand-in for nvidia");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION(STANDIN_VERSION);
