/* SPDX-License-Identifier: GPL-2.0-only */
/* Output formats: one file each, one row each in output.c. */
#ifndef NHMTAP_OUTPUT_H
#define NHMTAP_OUTPUT_H

#include <jansson.h>

#include "options.h"
#include "output/calls.h"
#include "output/sink.h"
#include "record/compact.h"

struct stream;

/* Every format is one function: it puts a record's text into the stream's sink, in one piece.
 * Returns 0 or -errno. */
typedef int (*output_fn)(struct stream *stream, const json_t *record);

int output_json(struct stream *stream, const json_t *record);
/* The same of a record that lacks what all have in common: it is written first, without being put into
 * a tree before, because that is much of what an interval costs. */
int output_json_enveloped(struct stream *stream, const json_t *record);
int output_table(struct stream *stream, const json_t *record);
int output_pprof(struct stream *stream, const json_t *record);
int output_folded(struct stream *stream, const json_t *record);
int output_autofdo(struct stream *stream, const json_t *record);

/*
 * A stream of records: gives each what all have in common (schema_version, time, run_id, seq), keeps
 * each within RECORD_MAX bytes by cutting lists into parts, and hands them to a format.
 */
#define RECORD_MAX 8192 /* CRI-O and Docker cut longer lines of a container's log */

/* How long each element of a list is in a line; bytes are free()d by whoever asked. */
struct sizes {
	size_t *bytes, total;
};
struct sizes sizes_of(const json_t *list);

/* How many elements from `first` fit behind `base` bytes in a record: at least one, as long as there are
 * any, so that it ends. */
size_t sizes_fitting(const struct sizes *sizes, size_t first, size_t base);

struct stream {
	struct sink sink;
	enum format format;
	output_fn output;
	char run_id[33];
	/* What went before, of forms but JSON: */
	json_t *start;      /* the start record */
	struct calls calls; /* the frames of the stacks to come */
	__u64 records;  /* written so far */
	struct compact line; /* json's: the record that is being written */
	char section[40]; /* that the people's form has last begun */
	bool verbose;   /* the people's form says more */
	bool intervals; /* there will be several records of a kind, at different times */
};

/* Opens the sink and picks the format. Returns 0, or -1 with the refusal. */
int stream_open(struct stream *stream, const struct options *options, struct refusal *refusal);

/*
 * Writes a record, which is consumed. `list` names the member (an array) at which it may be cut into
 * several records with `part` and `parts`; NULL: it is never cut. `kept` are the members that all
 * parts carry, ended by NULL; NULL: all of them do. Returns 0 or -errno of the sink.
 */
int stream_write(struct stream *stream, json_t *record, const char *list, const char *const *kept);

/* Flushes and closes the sink. Returns 0 or -errno of the sink. */
int stream_close(struct stream *stream);

#endif
