/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why something can't be done: what was asked, what refuses it, and the next step. Every layer
 * below the commands fails by filling one of these in; only main says it aloud.
 */
#ifndef NHMTAP_REFUSAL_H
#define NHMTAP_REFUSAL_H

#include <stddef.h>

#include "status.h"

struct refusal {
	enum status status;
	int error;	  /* the errno behind it, 0 if none */
	char asked[512];  /* "event cycels" */
	char why[512];	  /* "no event has this name" */
	char remedy[512]; /* "did you mean cycles?"; "" if there is none */
	char source[160]; /* where the rule comes from: "guide, Table 12"; "" if it is plain */
	char input[256];  /* the text in which the mistake is, where it is one of spelling */
	int column;	  /* of input, from 1; 0 if there is no such place */
};

#define REFUSAL_PRINTF __attribute__((format(printf, 2, 3)))

/* Begins a refusal: sets status and asked, clears the rest. Each returns -1, so that the last one of
 * a refusal can be returned. */
int refuse(struct refusal *refusal, enum status status, const char *asked, ...)
	__attribute__((format(printf, 3, 4)));
int because(struct refusal *refusal, const char *why, ...) REFUSAL_PRINTF;
int instead(struct refusal *refusal, const char *remedy, ...) REFUSAL_PRINTF;
int according(struct refusal *refusal, const char *source, ...) REFUSAL_PRINTF;

/* Notes the place of the mistake: a piece of text around position `at` (from 0). */
int at_place(struct refusal *refusal, const char *text, size_t at);

/* An error number's name ("EACCES"), constant; "" for 0. Names: errno(3). */
const char *error_name(int error);

#endif
