/* SPDX-License-Identifier: GPL-2.0-only */
/* What a row of the selftest says: what is run, and what has to come of it. */
#ifndef NHMTAP_SELFTEST_TESTS_H
#define NHMTAP_SELFTEST_TESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "selftest/measure.h"

/* Of user/selftest/known.S. */
#define TURNS	     100000
#define INSTRUCTIONS (6 + 19 * TURNS + TURNS / 2 + 3)
#define BRANCHES     (1 + 9 * TURNS + 1)
#define LOADS	     (2 + 7 * TURNS)
#define STORES	     (6 * TURNS)
#define CHANCES	     20000
#define STORED_BYTES 16384
#define BUFFER_BYTES (64ULL << 20)
#define PAGE_LINES   64

/* An interrupt may be counted among the instructions that it comes between, and these loops take less than
 * a millisecond: one in ten thousand is far more than that. */
#define TOLERANCE  10000
#define EXACTLY(n) (n), (n) + (n) / TOLERANCE

/* An event and what it may count. `names`: the first that this CPU has, with | between them; "loads" and
 * "stores" are the table's events of these. */
struct counted {
	const char *names;
	__u64 least, most;
};

/* Where samples of branches may lie, and what that is. */
struct places {
	const char *what, *at[3];
};

/* From where to where branches lead, and whether any predictor foretells that. */
struct edge {
	const char *from, *to;
	bool foretold;
};

struct edges {
	const char *what;
	const struct edge *list;
	size_t nr;
};

/* What answers a load, by the kernel's fields: mem_lvl, a bit each, mem_lvl_num, and if not 0 mem_snoop. */
struct level {
	const char *name;
	unsigned int bits, number, snoop;
	const char *site; /* which load */
};

/* What a CPU has to have, or a machine. */
enum needs {
	NEEDS_FILTER = 1, /* its LBR can be limited to a kind of branches */
	NEEDS_CORES = 2,  /* two cores of a package; the program's last arguments but one are CPUs of them */
};

struct test {
	const char *name, *title;
	const char *nhmtap[ARGUMENTS / 2], *program[6]; /* each ends with NULL */
	struct counted counted[EVENTS];			/* their names are nhmtap's last argument */
	int needs;					/* enum needs */
	int chain; /* the level that a chain of loads is to fit; 0: the program's arguments are all there */
	const char *responses; /* off-core responses, spelled as `names`, with commas between: the first is to
				  come */
	bool elsewhere;	       /* the second is as good where there are several packages */
	__u64 requests;	       /* how many come */
	const struct level *level;
	const struct places *places;
	const struct edges *edges;
	int percent; /* of the recorded branches that have to be the edges' */
	/* Writes what was expected and what came; whether they agree. */
	bool (*judge)(struct run *run);
};

bool judge_counts(struct run *run);
bool judge_masks(struct run *run);
bool judge_stalls(struct run *run);
bool judge_own_reading(struct run *run);
bool judge_period(struct run *run);
bool judge_places(struct run *run);
bool judge_edges(struct run *run);
bool judge_trace(struct run *run);
bool judge_filter(struct run *run);
bool judge_level(struct run *run);
bool judge_threshold(struct run *run);
bool judge_walked(struct run *run);
bool judge_stores(struct run *run);
bool judge_responses(struct run *run);

#endif
