/* SPDX-License-Identifier: GPL-2.0-only */
/* Has BPF programs number tasks as nhmtap's own pid namespace does: bpf/task.bpf.h. */
#ifndef NHMTAP_OWN_PIDS_H
#define NHMTAP_OWN_PIDS_H

#include "shared.h"

struct bpf_object;

/* To be called before the object is loaded. Does nothing in the initial namespace. */
void own_pids_set(struct bpf_object *object);

/*
 * Where the kernel has nhmtap's pid namespace. Returns 0 or -errno: ENOENT or ESRCH, the kernel does not
 * describe its types (BTF); others are those of loading and running a BPF program.
 */
int own_pids_find(struct own_namespace *own);

/* A device of stat(2) as the kernel numbers it: with 12 bits of major and 20 of minor number,
 * include/linux/kdev_t.h. */
__u64 kernel_device(__u64 device);

#endif
