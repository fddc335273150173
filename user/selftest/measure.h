/* SPDX-License-Identifier: GPL-2.0-only */
/* A run of nhmtap on the known-answer program, and the records that it wrote. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>
#include <linux/types.h>

#include "selftest/landmarks.h"
#include "selftest/selftest.h"

#define ARGUMENTS 28
#define EVENTS	  4

struct test;

struct test_run {
	const struct selftest *selftest;
	const struct test *test;
	const char *arguments[ARGUMENTS]; /* nhmtap with arguments, --, the program with arguments */
	char words[2][24];		  /* text of arguments that are numbers */
	char names[EVENTS][80];		  /* names of the counted events on this CPU */
	char events[400];		  /* these, joined to one argument */
	char columns[200];		  /* names of the off-core responses, joined to one argument */
	bool elsewhere;			  /* the second response counts like the first */
	json_t *records;
	const struct landmarks *landmarks;
	char expected[400], came[400]; /* in words */
	const char *why;	       /* why it can't be measured; NULL: it was */
};

/* Runs nhmtap. Returns its exit status, or -1 if it has none. `records` gets the records that it wrote. */
int run_measure(struct test_run *run);

/* The first record of a type; NULL if there is none. */
const json_t *run_record(const struct test_run *run, const char *type);

/* Calls `each` for every entry of all records of a type. */
void run_each_entry(struct test_run *run, const char *type,
		    void (*each)(struct test_run *, const json_t *, void *), void *context);
