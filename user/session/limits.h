/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a session may use of memory: its own, and what the kernel keeps for it. What it wants is a list of
 * parts. Some have one size; if these alone are too large, the session is refused. The others share what is
 * left.
 */
#ifndef NHMTAP_LIMITS_H
#define NHMTAP_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "refusal.h"

/* Sizes are bytes. */
enum memory_part {
	MEMORY_PROGRAM,	  /* code, libraries, and what is neither bounded nor grows */
	MEMORY_TABLES,	  /* that BPF programs write */
	MEMORY_UNWINDING, /* tables to walk stacks by */
	MEMORY_NAMES,	  /* what was read from files to name code */
	MEMORY_QUEUES,	  /* records that wait for a reader */
	MEMORY_ENTRIES,	  /* keys of an interval, and their records */
	MEMORY_PARTS,
};

struct limits {
	size_t memory; /* 0: there is no limit */
	struct memory_want {
		size_t least, most; /* 0: it is not needed */
		size_t spare; /* it is left out where less is left for the other parts; 0: it never is */
		size_t share; /* what it has; limits_share() sets it */
	} parts[MEMORY_PARTS];
	bool shared;
};

/* Bytes of a number that K, M or G (1024 and its powers) may follow; 0: it is none, or less than 1 MiB. */
size_t limits_size(const char *text);

/* Adds to what a part wants. */
void limits_want(struct limits *limits, enum memory_part part, size_t least, size_t most);

/* Checks that the least of all parts fits together, with the shares of those that have one. Returns 0, or -1
 * with the refusal, which has the sum. */
int limits_check(const struct limits *limits, struct refusal *refusal);

/* Gives each part its least, and of the rest as much as it wants, or its part of what there is. */
void limits_share(struct limits *limits);

/* What the start record says of it: the parts, and which were made smaller. */
json_t *limits_value(const struct limits *limits);

#endif
