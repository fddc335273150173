// SPDX-License-Identifier: GPL-2.0-only
/* branch.bpf.c unchanged, by edge, with made-up branch stacks, because page faults have none. With EDGES
 * 0 they are made but not used. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#ifndef EDGES
#define EDGES 1
#endif

const volatile _Bool by_edge = EDGES;

#include "made_up.bpf.h"
#define bpf_read_branch_records(context, buffer, size, flags) made_up_stack(buffer, size)
#include "branch.bpf.c"
