/* SPDX-License-Identifier: GPL-2.0-only */
/* What the samples in stored records stand for, summed up by keys: the tables of nhmtap show. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "output/text.h"
#include "view/filter.h"
#include "view/sheet.h"

/* What is asked for. Texts are borrowed. */
struct shares_wanted {
	const char *by;	  /* list of keys; NULL: those of the entries */
	const char *sort; /* what the rows are sorted by; NULL: what they stand for */
	const struct row_filter *filter;
	const char *callers, *callees; /* a function whose callers or callees are wanted; at most one */
	bool children;		       /* functions have a share of what they call, too */
	bool diff;		       /* there are two streams */
	bool spread;		       /* of loads, how their latencies are spread, too */
	double least;		       /* rows below this many percent are summed up; below 0: not given */
	size_t top;		       /* no more rows than this; 0: all */
};

struct share_tables;

struct share_tables *shares_new(const struct shares_wanted *wanted);
void shares_release(struct share_tables *shares);

/* Records that are taken in from here on belong to the second stream. */
void shares_second(struct share_tables *shares);

/* Takes in a record of any type, in the order of the stream. It is not kept. */
void shares_take(struct share_tables *shares, const json_t *record);

/* The number of tables that there are so far. */
size_t shares_tables(const struct share_tables *shares);

/* Refuses what was asked for if the records don't have it: keys, stacks, a function. Returns 0 or -1. */
int shares_check(const struct share_tables *shares, struct refusal *refusal);

/*
 * Makes the i-th table: what comes before its rows and after them, and the rows. Each row has the name of its
 * function as its tag, "" if it has none.
 */
void shares_table(const struct share_tables *shares, size_t i, struct text *before, struct sheet *sheet,
		  struct text *after);

/* Appends all tables. `width` is that of the terminal; 0: there is no limit. */
void shares_print(const struct share_tables *shares, struct text *text, int width);
