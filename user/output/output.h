/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Output streams. Each writes records in one format to one place. A stream adds the members that all records
 * have (schema_version, time, run_id, seq, activity). Where the format asks for it, a record with a long list
 * is cut into parts, so that no line is longer than RECORD_MAX.
 */
#pragma once

#include <jansson.h>

#include "option/options.h"
#include "output/access.h"
#include "output/calls.h"
#include "output/sink.h"
#include "record/compact.h"

struct stream;
struct text;

/* An output format. Each is one source file, which registers it. */
struct format {
	const char *name; /* "json" */
	const char *help; /* description for --help */
	bool adds_up;  /* its readers add up what entries weigh: it gets ranges only if there are no branches
			*/
	bool people;   /* meant for a terminal: names instead of addresses, and only what fits */
	bool lines;    /* writes each record as a line, cut at RECORD_MAX */
	bool bytes;    /* what it writes is no lines, or need not end with one */
	bool texts;    /* it takes lists that are text (record/rows.h) as they are, but no frames */
	bool numbered; /* its lines are not the records themselves, and have an envelope of their own */
	bool measured; /* only commands that measure have it */
	const char *commands; /* list of the commands that have it; NULL: all */
	const char *keys;     /* key that --by must contain for it: "stack"; NULL: none */
	/* Refuses options that the format can't serve; NULL: it serves all. Called twice: before the events
	 * are planned, with nr_events 0, and after that. Returns 0, or -1 with the refusal. */
	int (*check)(const struct stream *stream, const struct options *options, size_t nr_events,
		     struct refusal *refusal);
	bool one_event;	    /* readers add up all that a file of it has, whatever event that is of */
	const char *ending; /* that a file of it should have: ".json"; for profile_check_intervals() */
	/* Writes the text of a record to the stream's sink, as one piece. Returns 0 or -errno. */
	int (*write)(struct stream *stream, const json_t *record);
	/* Like write, for a record given as a list of members. NULL: a JSON tree is made, and write is
	 * called. */
	int (*write_fields)(struct stream *stream, const char *type, const struct fields *fields);
	bool whole;    /* a file holds the whole run, unless each interval has a file of its own */
	bool replaces; /* the output of each interval replaces the output of the one before */
	/* For formats that gather records: writes what was gathered in an interval. Returns 0 or -errno. */
	int (*finish)(struct stream *stream);
	/* For formats whose records wait in the format itself: writes those that have waited long enough. It
	 * is called whenever the stream is flushed. Returns 0 or -errno. */
	int (*settle)(struct stream *stream);
	/* The number of records in a text that was put; NULL: what is put is a record. */
	size_t (*rows)(const char *bytes, size_t size);
	/* Appends the page that /metrics of --listen serves; NULL: the format can't be served there. */
	void (*page)(struct stream *stream, struct text *page);
	/* Begins the totals of an activity's event anew: from here on another event has its name. NULL: there
	 * are no totals. */
	void (*begin_anew)(struct stream *stream, const char *activity, const char *event);
	bool series;	    /* it has metrics, whose series the place's `series` limits */
	bool temporality;   /* the place's `cumulative` says what its numbers are */
	bool resources;	    /* it names the resource that its numbers are of */
	bool linkage_names; /* it can show mangled names beside others */
	const char *media;  /* media type for Content-Type */
	halve_t *halve;	    /* makes two of a document that is too large for a server; NULL: it can't */
	void (*release)(struct stream *stream); /* frees stream->own */
};

#define REGISTER_FORMAT(item)                                                                                \
	static const struct format *const registered_##item __attribute__((section("formats"), used)) =      \
		&(item)

/* The i-th format; NULL for an index past the last one. */
const struct format *format_at(size_t i);

/* The format of this name that the command has (NULL: any command). Returns NULL with the refusal if there is
 * none. */
const struct format *format_find(const char *name, const char *command, struct refusal *refusal);

/* Whether a command (NULL: any) has the format. */
bool format_is_of(const struct format *format, const char *command);

/* Prints the formats that a command has, for --help. */
void formats_help(const char *command, FILE *out);

#define RECORD_MAX 8192 /* longer lines of a container's log are split by CRI-O and Docker */

/* The most bytes of an element of a list: names and paths in others' files can be longer than a record. */
#define ELEMENT_MAX (RECORD_MAX * 3 / 4)

/* The number of bytes of each element of a list, written as JSON. The caller frees `bytes`. */
struct sizes {
	__u32 *bytes;
	size_t total;
};
/* Measures the elements of a list. Their text is appended to `text`, with commas between them. Of one that
 * has more than ELEMENT_MAX bytes, that is the text of value_shorter(). */
struct sizes sizes_of(const json_t *list, struct compact *text);

/* How many elements, beginning with `first`, fit into a record that has `base` bytes besides. At least one if
 * any is left, so that the caller's loop ends. */
size_t sizes_fitting(const struct sizes *sizes, size_t first, size_t base);

#define QUEUE_BYTES (8 << 20)

#define LISTEN "listen" /* place of a stream that /metrics of --listen serves */

/* Where a stream goes, and what it takes. */
struct place_of_output {
	const char *path;	   /* path of a file, a pattern, an address, a URL, or LISTEN; NULL: stdout */
	const char *format;	   /* NULL: table on a terminal, otherwise json */
	bool append;		   /* keep the file's old contents */
	size_t queue_bytes;	   /* most bytes that may wait; 0: writing blocks (never in a session) */
	const json_t *activities;  /* names of the activities whose records it takes; NULL: all */
	const json_t *types;	   /* types of the records that it takes; NULL: all */
	__u64 series;		   /* limit of series of metrics for entries; 0: entries are no series */
	bool cumulative;	   /* OTLP's counters go on from interval to interval */
	struct push_access access; /* of a URL */
	json_t *document;	   /* what the texts and lists point into; NULL: they are never freed */
};

/* Whether two places are the same in everything. */
bool place_is_same(const struct place_of_output *one, const struct place_of_output *other);

/* Whether two outputs write some of the same records, in one format, to one path. */
bool place_has_records_of(const struct place_of_output *one, const struct place_of_output *other);

/* Records that were dropped since the last record that was written. */
struct gap {
	__u64 records;
	json_t *types;	       /* {type: number dropped}; NULL: none was dropped */
	const char *last_type; /* type of the last one dropped, mostly that of the next one too; NULL: none */
	__u64 last_nr;	       /* how many of last_type, not yet added to `types` */
	__u64 beyond;	       /* samples that records of samples stood for, beyond one each */
	const char *literal;   /* the literal that stream_write_fields() got for last_type; NULL: not known */
	const char
		*stopped; /* cause for which the output stood still, even if nothing was dropped; else NULL */
	char why[160];	  /* the same in words */
	bool expected;	  /* a FIFO had no reader yet: this alone is no gap */
	struct timespec since, until; /* CLOCK_REALTIME */
};

/* Which records are accepted. */
enum admission {
	ADMIT_BY_ROOM, /* those for which the queue has room */
	ADMIT_ALL,     /* all: the queue had room when the interval began */
	ADMIT_NONE,    /* none: the queue had no room when the interval began */
};

struct stream {
	struct sink sink;
	enum admission admits;
	bool ending; /* accept all records: the run is about to end */
	struct gap gap;
	const char *owner;     /* activity that the stream's own records are attributed to; NULL: none */
	struct source *source; /* the session's event source, which calls when the sink can take more */
	bool listening;	       /* `source` is registered for that */
	bool aside;	       /* it takes no records now */
	bool foreseen;	       /* see stream_foresee() */
	bool untold;	       /* it stands still, which stream_take_news() has not told yet */
	struct leaving {
		struct timespec since; /* when it was removed, CLOCK_REALTIME; 0: it is an output */
		__u64 until_ns;	       /* when it is given up, CLOCK_MONOTONIC */
		size_t left;	       /* bytes that waited in it when until_ns was set */
	} leaving;		       /* for a stream that was removed while records waited */
	const struct format *format;
	struct place_of_output place; /* its document is held, since `activities` and `types` point into it */
	json_t *home; /* document that the sink's path is in: that of the place when it was opened; held as
			 well */
	const json_t *activities, *types; /* see struct place_of_output */
	char run_id[33];
	/* What all formats may need: */
	json_t *start;	       /* the start record; of a session, its own */
	json_t *events;	       /* {activity, "" for none: events of its start record} */
	struct calls calls;    /* frames of the stacks in the records that follow */
	void *own;	       /* the format's own state, which its release() frees */
	struct timespec since; /* begin of the interval that the next document covers */
	__u64 began_ns; /* begin of the interval whose records are written, CLOCK_MONOTONIC, which nobody
			 * sets; 0: the records are replayed */
	__u64 series;	/* see struct place_of_output */
	bool scraped;	/* a page for --listen: it has no sink */
	__u64 records;	/* number of records written so far */
	__u64 records_seen, silent_since_ns; /* at the last heartbeat; the time is of CLOCK_MONOTONIC */
	const char *activity;		     /* activity of the record that is being written; NULL: none */
	struct compact line;		     /* buffer for a line that is being made */
	struct elements {
		const json_t *list; /* list of the record; NULL: its text is not made yet */
		const char *text;
		size_t size;
	} elements; /* text of the elements of a list of the record that is being written, made in advance */
	struct dated {
		struct timespec at;
		unsigned int records; /* that may still share it */
	} dated;		      /* when the last record was written that was not flushed yet */
	bool verbose;		      /* people get more details */
	bool hints;		      /* on a terminal, a table ends with what to try next */
	bool intervals;		      /* there will be several intervals, so the time is shown */
	bool live; /* each interval is to take the place of the previous one on the screen */
};

/* Opens a stream: its format, which the command must have (NULL: any command), and its sink. Returns 0, or -1
 * with the refusal. The stream keeps a reference to place->document; without one, the texts of `place` must
 * outlive the stream. */
int stream_open(struct stream *stream, const struct place_of_output *place, const char *command,
		struct refusal *refusal);

/* Makes a stream for run --check: it has the format of an output and the activities that this is for, but no
 * sink, and takes no records. Refuses what stream_open() would by the place alone: no file is looked at and
 * no name is looked up. Returns 0, or -1 with the refusal. */
int stream_foresee(struct stream *stream, const struct place_of_output *place, struct refusal *refusal);

/* Whether what it writes becomes documents, one an interval: requests, or files of their own. */
bool stream_has_documents(const struct stream *stream);

/* Whether its output is for the records of an activity (NULL: those of the session), now or later. */
bool stream_is_for(const struct stream *stream, const char *activity);

/* Whether a place is where the stream goes already, in the same format. */
bool stream_is_at(const struct stream *stream, const struct place_of_output *place);

/* Gives the stream, which stays where it is (stream_is_at()), the other members of a place. */
void stream_replace(struct stream *stream, const struct place_of_output *place);

/* Takes over from a stream that has ended what its format has counted since the run began, if both are of the
 * same format and take the same records. */
void stream_succeed(struct stream *stream, struct stream *ended);

/* Returns a record of what has happened to the output itself and other outputs should tell, or NULL. What may
 * be told later may wait, unless this is the last time. The caller owns it. */
json_t *stream_take_news(struct stream *stream, bool last);

/* Returns a record of what waits in the stream and will never be written; NULL if nothing does. The caller
 * owns it. */
json_t *stream_lost(struct stream *stream, const char *why);

/* Whether the stream takes records of an activity (NULL: of none). */
bool stream_takes(const struct stream *stream, const char *activity);

/* Whether the stream's readers get to know of a record of this type that is of no sample or count. Profiles
 * for viewers, which ask for keys, have no place for one. */
bool stream_tells(const struct stream *stream, const char *type);

/* The name that stands in place of an activity's in the session's own records. */
#define SESSION "session"

/*
 * Writes a record of an activity (NULL: of none) if the stream takes records of it; the session's own records
 * are always taken. The record is consumed. A record for which there is no room is dropped and counted; the
 * next record that is written is preceded by a gap record with these counts. Returns 0, or -errno of the
 * sink.
 */
int stream_write(struct stream *stream, json_t *record, const char *activity);

/* Writes a record of this type, given as a list of members. `type` must be a string literal. The record is
 * never cut. The list is not changed. Returns 0, or -errno of the sink. */
int stream_write_fields(struct stream *stream, const char *type, const struct fields *fields,
			const char *activity);

/* The samples for which a record stands (--adaptive) beyond one. `every`: see struct fields. */
static inline unsigned int gap_beyond(unsigned int every)
{
	return every ? every - 1 : 0;
}

/* Fast path for a stream that nobody reads: if the stream is dropping records of this very type, counts one
 * more, which stands for `every` samples (see struct fields). Returns false, and does nothing, if it is not.
 */
static inline bool stream_misses_likewise(struct stream *stream, const char *literal, unsigned int every)
{
	if (stream->gap.literal != literal || stream->admits != ADMIT_NONE || stream->ending)
		return false;
	stream->gap.records++;
	stream->gap.last_nr++;
	stream->gap.beyond += gap_beyond(every);
	return true;
}

/* Whether there is room for an interval, or for a single sample. */
static inline bool stream_has_room(const struct stream *stream)
{
	return stream->ending || sink_has_room(&stream->sink, 1);
}

/*
 * Begin and end the records of an interval. They are accepted together or dropped together, depending on the
 * room in the queue when the interval begins. For the last interval of an activity, twice the queue may be
 * filled. `began_ns`: when the interval began, CLOCK_MONOTONIC.
 */
void stream_begin_interval(struct stream *stream, __u64 began_ns, bool last);
void stream_end_interval(struct stream *stream);

/* Counts a record of this type as dropped, which stands for `every` samples (see struct fields). */
void stream_miss(struct stream *stream, const char *type, unsigned int every);

/* Writes a gap record if records were dropped since the last one. */
void stream_tell_gap(struct stream *stream);

/* Ends the document that holds an interval or, with `last`, the run. */
void stream_finish(struct stream *stream, bool last);

/* Calls sink_flush(). A full disk or a lost connection is reported on stderr when it occurs, and in a gap
 * record once it has passed. Returns as sink_flush(). */
int stream_flush(struct stream *stream);

/* Flushes and closes the sink. Returns 0, or -errno of the sink. */
int stream_close(struct stream *stream);

/* Gives up what the texts of a closed stream point into: sink_refusal() has to come before. Needed where the
 * place had a document. */
void stream_release(struct stream *stream);

/* Opens a stream as --output and --format say, for commands that do not measure. Returns 0, or -1 with the
 * refusal. */
int stream_open_options(struct stream *stream, const struct options *options, struct refusal *refusal);
