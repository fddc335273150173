// SPDX-License-Identifier: GPL-2.0-only
/* stacks.bpf.c without the branches: what a sample takes besides them. */
#define EDGES 0
#include "stacks.bpf.c"
