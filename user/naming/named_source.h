/* SPDX-License-Identifier: GPL-2.0-only */
/* A file, the kernel, or a map of compiled code, with the names made from it. It is kept and forgotten as a
 * whole. */
#ifndef NHMTAP_NAMED_SOURCE_H
#define NHMTAP_NAMED_SOURCE_H

#include <time.h>
#include <sys/stat.h>

#include "naming/debug_file.h"
#include "naming/lines.h"
#include "naming/naming.h"
#include "naming/pool.h"

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
	time_t read_at;	 /* seconds of CLOCK_MONOTONIC */
	time_t used_at;	 /* the same */
	time_t named_at; /* the same: when the first of `names` was made */
	bool left_out;	 /* it found no room, and is not read for a while */
	const char *why; /* it has no symbols; NULL if it has */
	bool refused;	 /* see struct name */
	char build_id[2 * BUILD_ID_MAX + 1];
	struct segment *segments;
	size_t nr_segments;
	struct symbols symbols;
	struct lines *lines; /* NULL: none */
	struct map names;    /* struct name by place */
	struct pool pool;    /* what is in them */
	struct map shown;    /* texts as they are shown, by the address of what they were made of */
	struct pool texts;   /* these */
};

/* Opens the file, or "[vdso]". Returns NULL, or why not: a constant sentence; *refused: see struct name. */
const char *source_open(struct image *image, const struct place *place, bool *refused);
const char *source_why(int error);

/* Reads symbols and, where the settings ask for them, lines, from the image, which is taken over, and from
 * its debug file. */
void source_load(struct source *source, struct image *image, const struct place *place,
		 const struct naming_settings *settings);

/* Gives back the names that were made. */
void source_forget_names(struct source *source);
/* Gives back everything that was read and made. */
void source_empty(struct source *source);
size_t source_bytes(const struct source *source);

/* Makes the name of an address; it lives as long as what was read. */
struct name *source_name_at(struct source *source, __u64 address);

#endif
