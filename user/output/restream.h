/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a stored stream of records again after some have grown: a list that was cut into parts is cut
 * anew, so that every record keeps within its length, and what counts records (seq, part, parts, the
 * end's records) is made to agree. Several streams may be mixed, line by line.
 */
#ifndef NHMTAP_RESTREAM_H
#define NHMTAP_RESTREAM_H

#include <stdbool.h>
#include <jansson.h>

#include "output/sink.h"

struct restream {
	struct sink *sink;
	/* Changes the elements of a record's list in place; returns whether it has. `of`: as given. */
	bool (*change)(void *of, const json_t *record, json_t *list);
	const char *(*list_of)(const json_t *record); /* the member that is its list, NULL: none */
	void *of;
	struct restreamed_run *runs; /* of which something has to be known */
	size_t nr_runs;
};

/* A record, which is consumed, and its line as it was, with its end. Unchanged records are written as they
 * were. Returns 0 or -errno of the sink. */
int restream_record(struct restream *restream, json_t *record, const char *line, size_t size);

/* Writes what still waits for its other parts, unchanged. Returns as above. */
int restream_end(struct restream *restream);

#endif
