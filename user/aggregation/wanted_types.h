/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's types that BPF objects read by relocated accesses (CO-RE). */
#pragma once

#include <stdbool.h>

#include "base/embedded.h"
#include "base/map.h"

/* Sets of names: map_key() of a name to the name. Initialized with {0}. */
struct wanted_types {
	struct map types;   /* as the kernel calls them: without a flavour such as ___kernel */
	struct map members; /* of these types and of others */
};

/* Whether the embedded object has relocated accesses. */
bool object_reads_kernel(const struct embedded *object);

/* Adds what the object reads. */
void wanted_types_add(struct wanted_types *wanted, const struct embedded *object);
void wanted_types_release(struct wanted_types *wanted);

/* Whether one of the sets has a name. */
bool wanted_types_have(const struct map *names, const char *name);
