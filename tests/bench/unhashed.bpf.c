// SPDX-License-Identifier: GPL-2.0-only
/* edges.bpf.c without using the branches: the cost of the rest of a sample. */
#define EDGES 0
#include "edges.bpf.c"
