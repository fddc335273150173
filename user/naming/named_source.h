/* SPDX-License-Identifier: GPL-2.0-only */
/* A file, the kernel, or a map of compiled code, with the names made from it. It is kept and forgotten as a
 * whole. */
#ifndef NHMTAP_NAMED_SOURCE_H
#define NHMTAP_NAMED_SOURCE_H

#include <time.h>
#include <sys/stat.h>

#include "naming/debug_file.h"
#include "naming/naming.h"
#include "naming/pool.h"
#include "naming/worker.h"

/* The identity of a file, including its version. */
struct identity {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
};

/* Something that has symbols, and the names that were made of them. */
struct source {
	struct source *newer, *older; /* by when it was last asked for */
	size_t bytes;		      /* as they were last counted */
	struct alias *aliases;	      /* naming.c's, newest first */
	size_t alias_bytes;
	char *path; /* of a map of compiled code; NULL: it is something else */
	struct identity identity;
	time_t read_at;	      /* seconds of CLOCK_MONOTONIC */
	time_t used_at;	      /* the same */
	time_t named_at;      /* the same: when the first of `names` was made */
	bool left_out;	      /* it found no room, or nobody to read it, and is not read for a while */
	const char *why;      /* it has no symbols; NULL if it has */
	bool refused, failed; /* see struct name */
	uid_t owner;	      /* of the file */
	char build_id[2 * BUILD_ID_MAX + 1];
	struct segment *segments;
	size_t nr_segments;
	struct symbols symbols;
	struct worker *worker; /* who has its lines, under this number … */
	__u32 id, generation;  /* … if he is still this one */
	bool has_lines;
	size_t lines_bytes; /* there */
	struct map names;   /* struct name by place */
	struct pool pool;   /* what is in them */
	struct map shown;   /* symbols as they are shown, by the address of their name */
	struct map told;    /* all that was told, by its hash */
	struct pool texts;  /* what is in both */
};

const char *source_why(int error);

/* Has the file opened, or "[vdso]", and tells its build-id. Returns whether that went well; otherwise the
 * source says why. */
bool source_open(struct source *source, const struct place *place);

/* Has symbols and, where the settings ask for them, lines read from the file that was opened last, and from
 * its debug file. */
void source_load(struct source *source, const struct place *place, const struct naming_settings *settings);

/* Has the symbols of a map of compiled code read, of at most so many bytes; the descriptor is closed. */
void source_load_map(struct source *source, int fd, size_t most);

/* Whether nobody could read it, and somebody may do so later. */
bool source_is_for_later(const struct source *source);

/* Whether who had its lines has gone. */
bool source_is_stale(const struct source *source);

/* Gives back the names that were made. */
void source_forget_names(struct source *source);
/* Gives back everything that was read and made. */
void source_empty(struct source *source);
size_t source_bytes(const struct source *source);

/* Makes the name of an address; it lives as long as what was read. */
struct name *source_name_at(struct source *source, __u64 address);

#endif
