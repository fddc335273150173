/* SPDX-License-Identifier: GPL-2.0-only */
/* A run of nhmtap on the known-answer program, and what it wrote. */
#ifndef NHMTAP_SELFTEST_MEASURE_H
#define NHMTAP_SELFTEST_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>
#include <linux/types.h>

#include "selftest/landmarks.h"
#include "selftest/selftest.h"

#define ARGUMENTS 28
#define EVENTS	  4

struct test;

struct run {
	const struct selftest *selftest;
	const struct test *test;
	const char *arguments[ARGUMENTS]; /* nhmtap's, then --, then the program's */
	char words[2][24];		  /* of those that are numbers */
	char names[EVENTS][80];		  /* of the events that are counted, as this CPU has them */
	char events[400];		  /* these in one argument */
	char columns[200];		  /* the off-core responses */
	bool elsewhere;			  /* the second one is as good as the first */
	json_t *records;
	const struct landmarks *landmarks;
	char expected[400], came[400]; /* in words */
	const char *why;	       /* it can't be measured; NULL: it was */
};

/* Runs it. Returns nhmtap's exit status, or -1 if there was none; `records` has what it wrote. */
int run_measure(struct run *run);

/* The first record of a type; NULL: there is none. */
const json_t *run_record(const struct run *run, const char *type);

/* Calls each with the entries of all records of a type. */
void run_each_entry(struct run *run, const char *type, void (*each)(struct run *, const json_t *, void *),
		    void *context);

#endif
