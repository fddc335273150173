/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes BPF programs number tasks like nhmtap's own pid namespace: bpf/task.bpf.h. */
#pragma once

#include "shared.h"

struct bpf_object;

/* Must be called before the object is loaded. Does nothing in the initial namespace. */
void own_pids_set(struct bpf_object *object);

/*
 * Finds the kernel's structure of nhmtap's pid namespace. Returns 0 or -errno: ENOENT or ESRCH if the kernel
 * does not describe its types (BTF), others from loading and running a BPF program.
 */
int own_pids_find(struct own_namespace *own);

/* Converts a device number of stat(2) to the kernel's own form, with 12 bits of major and 20 bits of minor
 * number: include/linux/kdev_t.h. */
__u64 kernel_device(__u64 device);
