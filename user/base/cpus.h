/* SPDX-License-Identifier: GPL-2.0-only */
/* A set of CPU numbers as the kernel writes one: "0-3,8". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CPUS_MAX 8192 /* CONFIG_NR_CPUS of distributions' largest kernels */

struct cpus {
	unsigned long bits[CPUS_MAX / (8 * sizeof(unsigned long))];
};

/* Parses a list; returns 0, or -1 if it is malformed, reversed or beyond CPUS_MAX. */
int cpus_parse(const char *text, struct cpus *cpus);
bool cpus_has(const struct cpus *cpus, int cpu);
void cpus_add(struct cpus *cpus, int cpu);
void cpus_remove(struct cpus *cpus, int cpu);
int cpus_count(const struct cpus *cpus);
/* One more than the highest CPU of the set, so that CPUs can index an array; 0 if it is empty. */
int cpus_end(const struct cpus *cpus);
/* The first CPU of the set that is at least `from`, or -1. */
int cpus_next(const struct cpus *cpus, int from);
/* The first CPU of `a` that `b` lacks, or -1. */
int cpus_missing(const struct cpus *a, const struct cpus *b);
/* Writes the list form, cut off at the size; returns buffer. */
char *cpus_print(const struct cpus *cpus, char *buffer, size_t size);
