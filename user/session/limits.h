/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory limit of a session, for its own memory and what the kernel allocates for it. The memory is
 * divided into parts. Some have a fixed size; if these alone exceed the limit, the session is refused. The
 * others share what is left.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "base/refusal.h"

/* Sizes are bytes. */
enum memory_part {
	MEMORY_PROGRAM,	  /* code, libraries, and whatever has no limit of its own but does not grow */
	MEMORY_TABLES,	  /* tables that BPF programs write */
	MEMORY_UNWINDING, /* tables to walk stacks by */
	MEMORY_NAMES,	  /* symbols and lines read from files */
	MEMORY_QUEUES,	  /* records that wait to be written */
	MEMORY_ENTRIES,	  /* keys of an interval, and their records */
	MEMORY_PARTS,
};

struct limits {
	size_t memory; /* 0: there is no limit */
	struct memory_want {
		size_t least, most; /* 0: it is not needed */
		size_t spare; /* the part is left out unless this much remains for the others; 0: never */
		size_t share; /* its size; set by limits_share() */
	} parts[MEMORY_PARTS];
	bool shared;
};

/* Parses a number of bytes, with an optional suffix K, M or G (powers of 1024). Returns 0 if it is invalid,
 * or less than 1 MiB. */
size_t limits_size(const char *text);

/* Adds to the size that a part needs at least, and wants at most. */
void limits_want(struct limits *limits, enum memory_part part, size_t least, size_t most);

/* Checks that the least sizes of all parts fit into the limit together; after limits_share(), with the shares
 * instead. Returns 0, or -1 with the refusal, which shows the sum. */
int limits_check(const struct limits *limits, struct refusal *refusal);

/* Gives each part its least size, and of the rest as much as it wants or its proportion of what there is. */
void limits_share(struct limits *limits);

/* The start record's member: the sizes of the parts, and which of them were made smaller than wanted. */
json_t *limits_value(const struct limits *limits);
