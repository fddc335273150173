/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How an event is written: a name and, behind colons, what modifies it. perf's modifiers are letters in
 * one piece ("uk", "pp"); libpfm4's, which PAPI takes too, are a piece each, some with a value:
 *
 *     INST_RETIRED:ANY_P:c=2:i:u        name INST_RETIRED:ANY_P
 *     OFFCORE_RESPONSE_0:u:PF_RFO       name OFFCORE_RESPONSE_0:PF_RFO
 *     L2_RQSTS:0x3:e=1                  name L2_RQSTS, with a raw umask
 *
 * Case doesn't matter in libpfm4's; in perf's it does ("p" and "P").
 */
#ifndef NHMTAP_SPELLING_H
#define NHMTAP_SPELLING_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "refusal.h"

#define PERF_MODIFIERS                                                                                       \
	"ukhpPGHID" /* "e" and the rest of perf's speak of things that are not asked for here */
#define NAME_SIZE 128

struct spelling {
	char name[NAME_SIZE];		    /* without the modifiers */
	unsigned short place[NAME_SIZE];    /* where in the text each of its characters stands */
	char modes[sizeof(PERF_MODIFIERS)]; /* how often each of perf's letters is on; -1: given as 0 */
	struct term {
		const char *name; /* the PMU's format, or one of perf's terms: "cmask", "period" */
		__u64 value;
		size_t at; /* in the text */
	} terms[8];
	size_t nr_terms;
	bool has_umask; /* "0x…" */
	__u64 umask;
	size_t umask_at;
	bool modified;	     /* there is any modifier */
	size_t modifiers_at; /* the first */
};

/* Takes apart a text of this length. named: it begins with a name; else all of it are modifiers. Returns
 * 0, or -1 with the refusal, whose place in the text is *at. */
int spelling_read(struct spelling *spelling, const char *text, size_t length, bool named, size_t *at,
		  struct refusal *refusal);

/* One of modes by its letter: how often it is on, 0 if it isn't given, -1 if it is switched off. */
int spelling_mode(const struct spelling *spelling, char letter);

/* The modifiers that there are, for messages; constant. */
#define MODIFIERS_KNOWN                                                                                      \
	"perf's " PERF_MODIFIERS "; libpfm4's e i t u k h (=0, =1), c=N, ldlat=N, precise=N, period=N, "     \
	"freq=N"

#endif
