/* SPDX-License-Identifier: GPL-2.0-only */
/* What stored records are of, and how far they can be trusted, in words. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "output/text.h"
#include "view/reading.h"

struct heading_of_stream {
	json_t *start;	       /* the first start record; NULL: none */
	const char *name;      /* of the stream, for difference tables; borrowed */
	json_t *warnings;      /* [text], each once */
	json_int_t gaps;       /* records that are missing */
	struct stored_end end; /* is set by who has read the stream; until then it goes on */
};

/* Begins empty. */
void heading_begin(struct heading_of_stream *heading, const char *name);
void heading_release(struct heading_of_stream *heading);

void heading_take(struct heading_of_stream *heading, const json_t *record);

/* What is said of addresses without a name: they may have been symbolized since. */
#define HAD_NO_NAME "had no function name when they were recorded"

/* Appends lines that begin with "# ". */
void heading_print(const struct heading_of_stream *heading, struct text *text);
