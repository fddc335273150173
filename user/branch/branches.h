/* SPDX-License-Identifier: GPL-2.0-only */
/* The result of bpf/branch.bpf.c as members of a record. Addresses are turned into places in files, and equal
 * places of several processes are merged. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "aggregation/aggregation.h"
#include "host/host.h"
#include "naming/codes.h"

struct branches;

/* What is asked for. The entries of a record are of one kind; there may be ranges as well. */
struct branches_asked {
	const char *kind;     /* "edge", "function", "callpair", "line" */
	unsigned int detail;  /* how their code is described: enum code_detail */
	bool sources_only;    /* the targets of branches do not matter */
	size_t depth;	      /* number of branches that come with a sample if no filter removes any */
	unsigned int frames;  /* how frames of stacks are distinguished: enum code_detail */
	bool by_tables;	      /* user stacks were walked by tables: see chains_account() */
	bool by_mispredicted; /* sort by mispredictions, the most first */
};

/* Nothing is counted yet. The caller owns the result up to branches_release(); the codes and the layout must
 * outlive it. */
struct branches *branches_new(const struct host *host, struct codes *codes,
			      const struct branches_asked *asked, const struct layout *layout);
void branches_release(struct branches *branches);

/* For entries before those of the interval's reading: whose stacks are next; takes in an entry, unless there
 * is no time for its names (then it returns false); keeps some, as folded_choose() and folded_keep() do. */
void branches_from(struct branches *branches, const struct stacks *stacks);
bool branches_try(struct branches *branches, const struct entry *entry);
void branches_choose(struct branches *branches, size_t most, bool *used);
void branches_keep(struct branches *branches, const __u32 *numbers);

/* Takes in the interval's reading, after which branches_put() may be called. */
void branches_add(struct branches *branches, const struct reading *reading);

/* The number of entries. */
size_t branches_count(const struct branches *branches);

/* Adds stacks, branches, entries (those with the highest counts first, at most `top`) and, if there are more,
 * their rest, apart for ranges, to a record; if calls are a key, also call_stacks and frames. */
void branches_put(struct branches *branches, json_t *record, size_t top);
