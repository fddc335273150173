/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The spelling of an event: a name, then modifiers after colons. perf's modifiers are letters in one piece
 * ("uk", "pp"). libpfm4's, which PAPI also accepts, are separate pieces, some with a value:
 *
 *     INST_RETIRED:ANY_P:c=2:i:u        name INST_RETIRED:ANY_P
 *     OFFCORE_RESPONSE_0:u:PF_RFO       name OFFCORE_RESPONSE_0:PF_RFO
 *     L2_RQSTS:0x3:e=1                  name L2_RQSTS, with a raw umask
 *
 * libpfm4's are case-insensitive; perf's are not ("p" and "P"). "e" is in both: with other letters, and where
 * only perf has modifiers (behind a '/' or a '}'), it is perf's; as a piece of its own libpfm4's, and `bare`
 * says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "base/refusal.h"

#define PERF_MODIFIERS "ukhpPGHIDSWebXR"
#define NAME_SIZE      128

struct spelling {
	char name[NAME_SIZE];		    /* without the modifiers */
	unsigned short place[NAME_SIZE];    /* the offset in the text of each character of `name` */
	char modes[sizeof(PERF_MODIFIERS)]; /* how often each letter is given; -1: switched off */
	struct term {
		const char *name; /* a format of the PMU, or one of perf's terms: "cmask", "period" */
		__u64 value;
		size_t at; /* its offset in the text */
		bool bare; /* it is a single letter, without a value */
	} terms[8];
	size_t nr_terms;
	bool has_umask; /* "0x…" */
	__u64 umask;
	size_t umask_at;
	bool modified;	     /* whether there is any modifier */
	size_t modifiers_at; /* the offset of the first */
};

/* Whether the event of this name has a umask of that name, which may look like a modifier: L2_LINES_IN:E on
 * Sandy Bridge. */
typedef bool (*spelling_umask_fn)(const void *context, const char *event, const char *umask);

/* Parses a text of this length. If `is_umask` is given, it begins with a name, and the function tells umasks
 * from modifiers; otherwise it consists of modifiers only. Returns 0, or -1 with the refusal, and *at is the
 * offset of the fault in the text. */
int spelling_read(struct spelling *spelling, const char *text, size_t length, spelling_umask_fn is_umask,
		  const void *context, size_t *at, struct refusal *refusal);

/* Makes an `e` that is a piece of its own perf's modifier: for names that libpfm4 does not have. */
void spelling_take_perfs_e(struct spelling *spelling);

/* The mode of a letter: how often it is given, 0 if it is not, -1 if it is switched off. */
int spelling_mode(const struct spelling *spelling, char letter);

/* All modifiers, for messages. Constant. */
#define MODIFIERS_KNOWN                                                                                      \
	"perf's " PERF_MODIFIERS "; libpfm4's e i t u k h (=0, =1), c=N, ldlat=N, precise=N, period=N, "     \
	"freq=N"
