// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

#ifndef GPUNODE_LAB_STANDIN_H
#define GPUNODE_LAB_STANDIN_H

#include <linux/cdev.h>
#include <linux/fs.h>
#include <linux/module.h>

#define STANDIN_VERSION "580.126.20"
#define NVIDIA_MAJOR 195

// What a dependent module calls, so that the kernel's own dependency graph is the real driver's.
int nvidia_standin_attach(void);
int nvidia_modeset_standin_attach(void);

// A registered range of device numbers. Each open file holds one reference on the module that owns `operations`, as with the real driver: setting the
// cdev's owner too would make it two.
struct standin_range {
	struct cdev cdev;
	dev_t first;
	unsigned int count;
};

static inline int standin_add(struct standin_range *range, const char *name, int major, int minor, unsigned int count,
			      const struct file_operations *operations)
{
	int error;

	range->count = count;
	if (major) {
		range->first = MKDEV(major, minor);
		error = register_chrdev_region(range->first, count, name);
	} else {
		error = alloc_chrdev_region(&range->first, minor, count, name);
	}
	if (error)
		return error;
	cdev_init(&range->cdev, operations);
	error = cdev_add(&range->cdev, range->first, count);
	if (error)
		unregister_chrdev_region(range->first, count);
	return error;
}

static inline void standin_remove(struct standin_range *range)
{
	cdev_del(&range->cdev);
	unregister_chrdev_region(range->first, range->count);
}

#endif
