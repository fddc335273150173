// SPDX-License-Identifier: GPL-2.0-only
/* stacks.bpf.c without using the branches: the cost of the rest of a sample. */
#define EDGES 0
#include "stacks.bpf.c"
