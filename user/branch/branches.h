/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The result of bpf/branch.bpf.c as members of a record: addresses become places in files, and equal places
 * of several processes become one.
 */
#ifndef NHMTAP_BRANCHES_H
#define NHMTAP_BRANCHES_H

#include <stdbool.h>
#include <jansson.h>

#include "collection/aggregation.h"
#include "host/host.h"
#include "naming/codes.h"

struct branches;

/* What is asked for. A record's entries are of one form, and ranges. */
struct branches_asked {
	const char *kind;     /* "edge", "function", "callpair", "line" */
	unsigned int detail;  /* of their code: enum code_detail */
	bool sources_only;    /* where branches lead does not matter */
	size_t depth;	      /* how many come with a sample where no filter leaves any out */
	unsigned int frames;  /* what frames of stacks are distinguished by: enum code_detail */
	bool by_tables;	      /* users' stacks were walked by tables: see chains_account() */
	bool by_mispredicted; /* those with the most mispredictions first */
};

/* Takes in a reading; the caller owns the result up to branches_release(), which has to come before the
 * next mappings_begin(). `asked` must live as long. */
struct branches *branches_of(const struct host *host, struct codes *codes, const struct branches_asked *asked,
			     const struct layout *layout, const struct reading *reading);
void branches_release(struct branches *branches);

/* How many entries there are. */
size_t branches_count(const struct branches *branches);

/* Puts stacks, branches, entries (those with the highest counts first, not more than `top`) and, for
 * what is beyond, rest into a record; where calls are a key, call_stacks and frames, too. */
void branches_put(struct branches *branches, json_t *record, size_t top);

#endif
