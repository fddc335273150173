/* SPDX-License-Identifier: GPL-2.0-only */
/* What the formats share that write a whole profile for another tool's viewer. */
#pragma once

#include <stdint.h>
#include <jansson.h>

#include "base/refusal.h"
#include "output/output.h"

/* A value of each sample, taken from a member of the entry. */
struct measure {
	const char *member, *type, *unit; /* type NULL: type and unit are the event's own */
};

#define MEASURES 4

/* The values that the entries of a record have, at most MEASURES; the last one is followed by one without a
 * member if there are fewer. NULL: the record has nothing for a profile. */
const struct measure *measures_of(const json_t *record);

/* The measure with its type and unit, which may point into the event (from the start record). */
struct measure measure_of_event(const struct measure *measure, const json_t *event);

/* The index of the measure that tells what samples stand for. */
size_t measure_main(const struct measure *measures);

/* The values of a file that has the events of a whole run: of each event, its measures. Starts as {0}. */
struct profile_columns {
	json_t *events; /* [{key, name, nth, activity}] */
	json_t *list;	/* [{event: index, type, unit, main}] */
};

/* The number of the first of the columns that a record's measures have. New ones are appended. */
size_t profile_columns_of(struct profile_columns *columns, const struct stream *stream, const json_t *record);
size_t profile_columns_nr(const struct profile_columns *columns);

/* The name of a column, which the caller frees: where there are several events, it says of which it is. */
char *profile_column_name(const struct profile_columns *columns, size_t i);

/* Whether a column is of ns. */
bool profile_column_is_time(const struct profile_columns *columns, size_t i);
void profile_columns_release(struct profile_columns *columns);

/* What tells an event from others of the run. The caller frees it. */
char *profile_event_key(const struct stream *stream, const json_t *record);

/* Whether the event, from the start record, is one of the kernel's clocks, which count ns. */
bool recorded_clock(const json_t *event);

/* The event that a record is of, from its activity's start record. NULL: there is none. */
const json_t *profile_event(const struct stream *stream, const json_t *record);

/* The mean distance of two samples of a record, in the unit of their periods; 0 if there is none. With a
 * frequency the kernel varies the period; a clock's is what the frequency asks for. Where nhmtap keeps to a
 * share of a CPU it varies both. Of NULL: what was asked for. */
json_int_t profile_period(const json_t *event, const json_t *record);

/* A frame's file in a list of files. */
struct profile_file {
	size_t number;	      /* 0: the frame has no file */
	const char *build_id; /* what is to be added to the file; NULL: nothing new */
};

/*
 * Finds a frame's file. A file is mapped at different addresses in different processes, and records have
 * offsets in files; so each file is in a profile once. Frames of one file may come with its build-id or
 * without, since only code that has no name needs it; another build-id is another file. `files`, an object,
 * begins empty. A new file gets the number `next`. The build-id is borrowed from the frame.
 */
struct profile_file profile_file(json_t *files, const json_t *frame, size_t next);

/* The range of addresses that a file has in a profile, from the returned one to *limit: a different one for
 * each number. The kernel's addresses stay as they are. */
uint64_t profile_range(const json_t *frame, size_t number, uint64_t *limit);

/* The address of a frame in its file's range, which begins at `start` (0: it has no file). Where a call
 * returns to is the address after it; one less lies within the call. Of an address in memory without a file
 * ("[anon]") the lower 40 bits are in the range. Frames that are distinguished only by name have no address;
 * they get the beginning of the range. */
uint64_t profile_address(const json_t *frame, uint64_t start);

/* What was measured, and on which machine, for a title. The caller frees it. */
char *profile_title(const struct stream *stream);

/* Writes a document, which is consumed, as one line of JSON. Returns 0, or -errno of the sink. */
int profile_put_json(struct stream *stream, json_t *document);

/* A format's `check`: refuses several events, if it does not say of which one a stack is. Returns 0 or -1. */
int profile_check_events(const struct stream *stream, const struct options *options, size_t nr_events,
			 struct refusal *refusal);

/* The same: refuses intervals unless each has a file of its own. */
int profile_check_intervals(const struct stream *stream, const struct options *options, size_t nr_events,
			    struct refusal *refusal);

/* Both of these. */
int profile_check(const struct stream *stream, const struct options *options, size_t nr_events,
		  struct refusal *refusal);
