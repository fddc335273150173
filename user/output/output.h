/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where records go: streams, each in one format and to one place. A record gets what all have in common
 * (schema_version, time, run_id, seq, activity), and where the format asks for it, lists are cut into
 * parts so that no line is longer than RECORD_MAX.
 */
#ifndef NHMTAP_OUTPUT_H
#define NHMTAP_OUTPUT_H

#include <jansson.h>

#include "option/options.h"
#include "output/calls.h"
#include "output/sink.h"
#include "record/compact.h"

struct stream;
struct text;

/* A format is one file, which registers itself. */
struct format {
	const char *name;     /* "json" */
	const char *help;     /* what it writes, in a few words */
	bool people;	      /* for a screen: names instead of addresses, and no more than fits */
	bool lines;	      /* a record a line: cut at RECORD_MAX */
	bool numbered;	      /* its lines are other records, with an envelope of their own */
	bool measured;	      /* only commands that measure have it */
	const char *commands; /* it takes the records of these alone, a list; NULL: of all */
	const char *keys;     /* the key that --by must have for it: "stack"; NULL: any */
	/*
	 * Refuses what the options ask for and the format has no place for; NULL: it takes everything.
	 * Called before the events are planned (nr_events is 0) and after. Returns 0, or -1 with the refusal.
	 */
	int (*check)(const struct stream *stream, const struct options *options, size_t nr_events,
		     struct refusal *refusal);
	/* Puts a record's text into the stream's sink, in one piece. Returns 0 or -errno. */
	int (*write)(struct stream *stream, const json_t *record);
	/* The same of a record that is a list of its members; NULL: a tree is made of it. */
	int (*write_fields)(struct stream *stream, const char *type, const struct fields *fields);
	bool replaces; /* what an interval writes takes the place of what the one before has written */
	/* For formats that gather records: writes what an interval gathered. Returns 0 or -errno. */
	int (*finish)(struct stream *stream);
	/* Adds what can be read at /metrics of --listen; NULL: nothing can. */
	void (*page)(struct stream *stream, struct text *page);
	const char *media;			/* its type, as Content-Type has it */
	void (*release)(struct stream *stream); /* frees stream->own */
};

#define REGISTER_FORMAT(item)                                                                                \
	static const struct format *const registered_##item __attribute__((section("formats"), used)) =      \
		&(item)

/* The i-th format, NULL after the last. */
const struct format *format_at(size_t i);

/* The format of this name, for a command; NULL: for any. Returns NULL with the refusal if there is none. */
const struct format *format_find(const char *name, const char *command, struct refusal *refusal);

/* Whether a command (NULL: any) has the format. */
bool format_is_of(const struct format *format, const char *command);

/* Prints the formats that a command has, for --help. */
void formats_help(const char *command, FILE *out);

#define RECORD_MAX 8192 /* CRI-O and Docker cut longer lines of a container's log */

/* How long each element of a list is in a line; bytes are free()d by whoever asked. */
struct sizes {
	size_t *bytes, total;
};
/* `text`: takes the elements, with a comma between two. */
struct sizes sizes_of(const json_t *list, struct compact *text);

/* How many elements from `first` fit after `base` bytes in a record: at least one, if there is any, so that a
 * loop ends. */
size_t sizes_fitting(const struct sizes *sizes, size_t first, size_t base);

#define QUEUE_BYTES (8 << 20)

#define LISTEN "listen" /* the place that is /metrics of --listen */

/* Where a stream goes. */
struct place_of_output {
	const char *path;	  /* of a file or files, an address, or LISTEN; NULL: stdout */
	const char *format;	  /* NULL: table on a terminal, else json */
	bool append;		  /* what the file has stays */
	size_t queue_bytes;	  /* how much may wait; 0: whoever writes waits, which no session does */
	const json_t *activities; /* names of those whose records it takes; NULL: of all */
	const json_t *types;	  /* of records that it takes; NULL: all */
	__u64 series;		  /* how many entries become series of metrics; 0: none */
};

/* What a stream has missed since its last record. */
struct gap {
	__u64 records;
	json_t *types;	       /* how many of each type; NULL: none was */
	const char *last_type; /* that was missed: the next is mostly of the same; NULL: none was */
	__u64 last_nr;	       /* how many of it, beside those in `types` */
	const char *literal;   /* the same name, as stream_write_fields() has it; NULL: not known */
	int stopped;	       /* errno for which it stood still, whether anything was missed or not; 0 */
	struct timespec since, until; /* CLOCK_REALTIME */
};

/* Which records are let in. */
enum admission {
	ADMIT_BY_ROOM, /* those that the queue has room for */
	ADMIT_ALL,     /* those of an interval that found room */
	ADMIT_NONE,    /* those of one that did not */
};

struct stream {
	struct sink sink;
	enum admission admits;
	bool ending; /* all are let in: no more will come */
	struct gap gap;
	const char *owner;     /* the activity that the stream's own records belong to; NULL: none */
	struct source *source; /* of the session's loop: called when the sink takes more */
	bool listening;	       /* for that */
	const struct format *format;
	const json_t *activities, *types; /* see struct place_of_output */
	char run_id[33];
	/* What went before, of forms but JSON: */
	json_t *start;	       /* the start record */
	struct calls calls;    /* the frames of the stacks to come */
	json_t *totals;	       /* flat's: of each series */
	void *own;	       /* what the format gathers */
	struct timespec since; /* what waits for the end of a document tells of the time from then on */
	__u64 series;	       /* see struct place_of_output */
	bool scraped;	       /* it is read by whoever asks, and written nowhere */
	__u64 records;	       /* written so far */
	__u64 records_seen, silent_since_ns; /* as the heartbeat last saw it; CLOCK_MONOTONIC */
	const char *activity;		     /* whose record is being written; NULL: of none */
	struct compact line;		     /* json's: the record that is being written */
	struct elements {
		const json_t *list; /* of the record; NULL: none is written yet */
		const char *text;
		size_t size;
	} elements;	  /* that are written already */
	char section[40]; /* that the people's form has last begun */
	bool verbose;	  /* the people's form says more */
	bool intervals;	  /* there will be several records of a kind, at different times */
	/* The people's form: each interval takes the place of the one before. */
	bool live;
	char live_since[32]; /* the start of the interval that is on the screen */
	int live_rows;	     /* lines that it has there */
};

/* Opens the sink and picks the format, of those that a command has (NULL: any). Returns 0, or -1 with the
 * refusal. The place stays the caller's, and must live as long. */
int stream_open(struct stream *stream, const struct place_of_output *place, const char *command,
		struct refusal *refusal);

/* Whether records of an activity (NULL: of none) go there. */
bool stream_takes(const struct stream *stream, const char *activity);

/* What stands for an activity where a record is the session's own. */
#define SESSION "session"

/*
 * Writes a record of an activity (NULL: of none), which is consumed, if the stream takes records of that; it
 * takes the session's own in any case. One that finds no room is counted instead, and what was counted so is
 * told by a record of type gap before the next one. Returns 0 or -errno of the sink.
 */
int stream_write(struct stream *stream, json_t *record, const char *activity);

/* Writes a record of this type (a literal) with these members, which is never cut. The list stays as it is.
 * Returns 0 or -errno of the sink. */
int stream_write_fields(struct stream *stream, const char *type, const struct fields *fields,
			const char *activity);

/* Counts a record that is missed like the one before, so that one that nobody reads costs next to nothing.
 * Returns false if it is not. */
static inline bool stream_misses_likewise(struct stream *stream, const char *literal)
{
	if (stream->gap.literal != literal || stream->admits != ADMIT_NONE || stream->ending)
		return false;
	stream->gap.records++;
	stream->gap.last_nr++;
	return true;
}

/* Whether an interval, or a single sample, finds room. */
bool stream_has_room(const struct stream *stream);

/* Begins and ends an interval's records: all of them are accepted, or none. The last interval of an activity
 * is accepted even without room. */
void stream_begin_interval(struct stream *stream, bool last);
void stream_end_interval(struct stream *stream);

/* Counts a record of this type that found no room. */
void stream_miss(struct stream *stream, const char *type);

/* Writes a gap record for what was missed up to now, if anything was. */
void stream_tell_gap(struct stream *stream);

/* Ends the document that an interval has made, or, with `last`, the run. */
void stream_finish(struct stream *stream, bool last);

/* As sink_flush(). A full disk or a lost connection is reported on stderr, and in a gap record when it has
 * passed. */
int stream_flush(struct stream *stream);

/* Flushes and closes the sink. Returns 0 or -errno of the sink. */
int stream_close(struct stream *stream);

/* For commands that run by themselves: a stream as --output and --format say. */
int stream_open_options(struct stream *stream, const struct options *options, struct refusal *refusal);

#endif
