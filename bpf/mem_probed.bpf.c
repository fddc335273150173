// SPDX-License-Identifier: GPL-2.0-only
/*
 * mem.bpf.c for kernels before 6.2, whose samples are read with probe_read_kernel(). It is an object of its
 * own because libbpf looks in all modules for a function that the kernel lacks, be it weak or not, and that
 * takes CAP_SYS_ADMIN.
 */
#define PROBED
#include "mem.bpf.c"
