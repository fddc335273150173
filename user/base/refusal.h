/* SPDX-License-Identifier: GPL-2.0-only */
/* The reason why something can't be done: what was asked for, what refuses it, and what to do next. Functions
 * below the commands fail by filling in a refusal; only main() prints it. */
#pragma once

#include <stddef.h>

#include "base/status.h"

struct refusal {
	enum status status;
	int error;	  /* the errno that caused it, 0 if none */
	char asked[512];  /* "event cycels" */
	char why[512];	  /* "no event has this name" */
	char remedy[512]; /* "did you mean cycles?"; "" if there is none */
	char source[160]; /* source of the rule: "guide, Table 12"; "" if it is obvious */
	char input[256];  /* if it is a mistake in spelling: the text that has it */
	int column;	  /* place in `input`, from 1; 0 if there is none */
};

#define REFUSAL_PRINTF __attribute__((format(printf, 2, 3)))

/* refuse() begins a refusal: it sets `status` and `asked`, and clears the rest. Each of the functions sets a
 * part and returns -1, so that callers can return the last call's result. */
int refuse(struct refusal *refusal, enum status status, const char *asked, ...)
	__attribute__((format(printf, 3, 4)));
int because(struct refusal *refusal, const char *why, ...) REFUSAL_PRINTF;
int instead(struct refusal *refusal, const char *remedy, ...) REFUSAL_PRINTF;
int according(struct refusal *refusal, const char *source, ...) REFUSAL_PRINTF;

/* Sets the place of the mistake: `input` becomes a piece of the text around position `at` (from 0). Returns
 * -1. */
int at_place(struct refusal *refusal, const char *text, size_t at);

/* The name of an error number ("EACCES", see errno(3)), as a constant; "" for 0. */
const char *error_name(int error);
