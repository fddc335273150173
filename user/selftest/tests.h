/* SPDX-License-Identifier: GPL-2.0-only */
/* The rows of the selftest: what is run, and what the result must be. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "selftest/measure.h"

/* Numbers of user/selftest/known.S. */
#define TURNS	     100000
#define INSTRUCTIONS (6 + 19 * TURNS + TURNS / 2 + 3)
#define BRANCHES     (1 + 9 * TURNS + 1)
#define LOADS	     (2 + 7 * TURNS)
#define STORES	     (6 * TURNS)
#define CHANCES	     20000
#define STORED_BYTES 16384
#define BUFFER_BYTES (64ULL << 20)
#define PAGE_LINES   64

/* The tolerance, 1/TOLERANCE. An interrupt may be counted as an instruction, but these loops take less than a
 * millisecond: one in ten thousand is far more than that causes. */
#define TOLERANCE  10000
#define EXACTLY(n) (n), (n) + (n) / TOLERANCE

/* An event and the limits of its count. `names` are alternatives, separated by '|', of which the first that
 * this CPU has is used. "loads" and "stores" stand for the events in the table. */
struct counted {
	const char *names;
	__u64 least, most;
};

/* Symbols at which samples of branches may be, and a description of these. */
struct test_places {
	const char *what, *at[3];
};

/* Source and target of branches, and whether any predictor predicts them. */
struct edge {
	const char *from, *to;
	bool foretold;
};

struct edges {
	const char *what;
	const struct edge *list;
	size_t nr;
};

/* What answers a load, by the kernel's fields: mem_lvl (one bit each), mem_lvl_num, and, if not 0,
 * mem_snoop. */
struct level {
	const char *name;
	unsigned int bits, number, snoop;
	const char *site; /* symbol of the load */
};

/* Requirements of the CPU or the machine. */
enum needs {
	NEEDS_FILTER = 1, /* the LBR can be limited to a kind of branches */
	NEEDS_CORES = 2,  /* two cores of a package. Their CPUs become arguments of the program */
};

struct test {
	const char *name, *title;
	const char *nhmtap[ARGUMENTS / 2], *program[6]; /* each ends with NULL */
	struct counted counted[EVENTS];			/* their names become nhmtap's last argument */
	int needs;					/* enum needs */
	int chain;	       /* cache level that the chain of loads fits; 0: the program has no chain */
	const char *responses; /* off-core responses, each as `names`, with ',' between; first is expected */
	bool elsewhere;	       /* the second is as good on machines with several packages */
	__u64 requests;	       /* expected number of responses */
	const struct level *level;
	const struct test_places *places;
	const struct edges *edges;
	int percent; /* percentage of recorded branches that must be among the edges */
	/* Describes what was expected and what was measured. Returns whether they agree. */
	bool (*judge)(struct test_run *run);
};

bool judge_counts(struct test_run *run);
bool judge_masks(struct test_run *run);
bool judge_beginnings(struct test_run *run);
bool judge_stalls(struct test_run *run);
bool judge_own_reading(struct test_run *run);
bool judge_period(struct test_run *run);
bool judge_places(struct test_run *run);
bool judge_edges(struct test_run *run);
bool judge_trace(struct test_run *run);
bool judge_filter(struct test_run *run);
bool judge_level(struct test_run *run);
bool judge_threshold(struct test_run *run);
bool judge_walked(struct test_run *run);
bool judge_stores(struct test_run *run);
bool judge_responses(struct test_run *run);
