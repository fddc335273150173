// SPDX-License-Identifier: GPL-2.0-only
/* Taken branches, aggregated by the call stacks of the samples that they came with. */
#define STACKS
#include "branch.bpf.c"
