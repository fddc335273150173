/* SPDX-License-Identifier: GPL-2.0-only */
/* A file, the kernel, or a map of compiled code, with the names made from it. It is kept and forgotten as a
 * whole. */
#pragma once

#include <time.h>
#include <sys/stat.h>

#include "base/map.h"
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

/* A source of symbols, and the names that were made from it. */
struct named_source {
	struct named_source *newer, *older; /* list in the order of the last use */
	size_t bytes;			    /* memory in use, as last counted */
	struct alias *aliases;		    /* used by naming.c, newest first */
	size_t alias_bytes;
	char *path; /* of a perf-PID.map; NULL: the source is something else */
	struct identity identity;
	time_t read_at;	   /* seconds of CLOCK_MONOTONIC */
	time_t written_at; /* of a map: seconds of CLOCK_REALTIME; 0: its file system tells no times */
	bool half_line;	   /* of a map: its last line was left out, which has no line feed */
	__u64 paid_until;  /* of a map: how far its share of that clock's nanoseconds is used up */
	time_t used_at;	   /* the same clock */
	time_t named_at;   /* the same clock: when the first of `names` was made */
	bool left_out; /* there was no room, or no worker that could read it; it is not read again for a while
			*/
	unsigned int failures;	       /* how often the worker failed on it, one time after the other */
	bool lines_left_out;	       /* there was no room for its lines; likewise */
	const char *why;	       /* why it has no symbols; NULL if it has some */
	bool refused, failed, no_room; /* see struct name */
	bool elf;		       /* a program or a library: its symbols may have versions */
	uid_t owner;		       /* of the file */
	char build_id[2 * BUILD_ID_MAX + 1];
	struct segment *segments;
	size_t nr_segments;
	struct symbols symbols;
	struct nameless nameless; /* in the memory of the symbols */
	/* Of data, if the settings ask for it: symbols, whose memory is that of the others, and all loaded
	 * segments. */
	struct symbols objects;
	struct segment *loaded;
	size_t nr_loaded;
	struct worker *worker;	  /* the worker that keeps its lines and indexes, under `id` … */
	__u32 id, generation;	  /* … as long as the worker's generation is this one */
	bool kept;		  /* it keeps any … */
	bool only_lines;	  /* … and no indexes */
	bool indexed;		  /* the symbols of data are in an index */
	bool types;		  /* names of data have types */
	bool lines;		  /* names have lines, as far as its file has them */
	bool limited;		  /* a larger --memory gives more room for its lines */
	const char *lines_why;	  /* see struct name */
	size_t kept_bytes;	  /* in the worker */
	struct file_place *place; /* where the files of its split DWARF are searched; NULL: it has none */
	const char *debug_dir;	  /* … and in this folder */
	struct map names;	  /* struct name by place */
	struct pool pool;	  /* memory of `names` */
	struct map shown;  /* symbols as they are shown (demangled), by the address of the symbol's name;
			      and without their version, by that with it */
	struct map told;   /* texts that the worker sent, by their hash */
	struct pool texts; /* memory of `shown` and `told` */
};

/* Why a source without room has no symbols. */
#define SOURCE_NO_ROOM "the memory for names has no room for its symbols"

const char *source_why(int error);
/* Whether nobody could look, rather than that there is no such file. */
bool source_failed(int error);

/* Opens the file, or "[vdso]", and has the worker tell its build-id. Returns whether that succeeded;
 * otherwise `why` of the source is set. */
bool source_open(struct named_source *source, const struct file_place *place);

/* Has the worker read symbols, and lines if the settings ask for them and they take at most `most` bytes,
 * from the file opened by source_open() and its debug file. */
void source_load(struct named_source *source, const struct file_place *place,
		 const struct naming_settings *settings, size_t most);

/* Has the worker read the symbols of a perf-PID.map or a jitdump file, of at most `most` bytes, and with
 * `lines` those that the latter has. `grows`: see jit_symbols(). The descriptor is closed. */
void source_load_map(struct named_source *source, int fd, size_t most, bool lines, bool grows);

/* Whether the worker failed while it read it. */
bool source_worker_failed(const struct named_source *source);

/* Whether there was no worker to read it, but there may be one later. */
bool source_is_for_later(const struct named_source *source);

/* Whether the worker that kept its lines has ended. */
bool source_is_stale(const struct named_source *source);

/* Whether what the worker keeps of it are lines alone, and its symbols are here. */
bool source_has_only_lines_kept(const struct named_source *source);
/* Frees these lines; names that were made with them stay. */
void source_drop_lines(struct named_source *source);

/* Frees the names. */
void source_forget_names(struct named_source *source);
/* Frees the symbols, lines and names. */
void source_empty(struct named_source *source);
size_t source_bytes(const struct named_source *source);

/* Makes the name of an address. It is valid until source_forget_names(). */
struct name *source_name_at(struct named_source *source, __u64 address);

/* The same for an address of data. */
struct name *source_datum_at(struct named_source *source, __u64 address);

/* The same for what the instruction at an address accesses: only its type. */
struct name *source_access_at(struct named_source *source, __u64 address);
