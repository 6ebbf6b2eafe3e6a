// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Unified memory: /dev/nvidia-uvm and /dev/nvidia-uvm-tools on a dynamic major; a mapping holds the module as an open file does.

#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "standin.h"

static void *memory;

static int map(struct file *file, struct vm_area_struct *area)
{
	return remap_vmalloc_range(area, memory, area->vm_pgoff);
}

static const struct file_operations operations = { .owner = THIS_MODULE, .llseek = noop_llseek, .mmap = map };
static struct standin_range range;

static int __init uvm_init(void)
{
	int error = nvidia_standin_attach();

	if (error)
		return error;
	memory = vmalloc_user(PAGE_SIZE);
	if (!memory)
		return -ENOMEM;
	error = standin_add(&range, "nvidia-uvm", 0, 0, 2, &operations);
	if (error)
		vfree(memory);
	return error;
}

static void __exit uvm_exit(void)
{
	standin_remove(&range);
	vfree(memory);
}

module_init(uvm_init);
module_exit(uvm_exit);
MODULE_DESCRIPTION("Stand-in for nvidia-uvm");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION(STANDIN_VERSION);
