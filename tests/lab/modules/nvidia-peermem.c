// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// GPUDirect RDMA: needs the driver and, as the real one, ib_core.

#include <rdma/ib_verbs.h>

#include "standin.h"

static int add(struct ib_device *device)
{
	return 0;
}

static struct ib_client client = { .name = "nvidia-peermem", .add = add };

static int __init peermem_init(void)
{
	int error = nvidia_standin_attach();

	return error ? error : ib_register_client(&client);
}

static void __exit peermem_exit(void)
{
	ib_unregister_client(&client);
}

module_init(peermem_init);
module_exit(peermem_exit);
MODULE_DESCRIPTION("Stand-in for nvidia-peermem");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION(STANDIN_VERSION);
