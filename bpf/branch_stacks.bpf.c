// SPDX-License-Identifier: GPL-2.0-only
/* Branches that were taken, by the calls that led to the sample that they came with. */
#define STACKS
#include "branch.bpf.c"
