/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mappings and names for all activities of a session. The kernel's notes of mappings are read as they come,
 * and names are looked up after the tables have been read. Each activity has a reader with its own interval.
 * A mapping is kept as long as the slowest reader needs it.
 */
#pragma once

#include <jansson.h>

#include "base/refusal.h"
#include "host/host.h"
#include "naming/codes.h"
#include "naming/mappings.h"
#include "plan/target.h"
#include "session/loop.h"
#include "session/notices.h"

struct names;
struct reader;
struct unwinding;

/* Nothing is opened before the first names_read(). The caller owns the host, the loop and the notices, which
 * tell about CPUs going online and offline. */
struct names *names_new(const struct host *host, struct loop *loop, struct notices *notices);

/* Limits of memory in bytes; 0: the default. */
struct names_limits {
	size_t memory;	  /* for symbols and lines read from files */
	size_t unwinding; /* for tables to walk stacks by */
	bool sparing;	  /* see struct naming_settings */
	bool few_lines;	  /* likewise; with types of data, the default is the limit of memory */
};

/* Sets the limits. Must be called before names_read(). */
void names_limit(struct names *names, const struct names_limits *limits);
void names_release(struct names *names);

/*
 * Makes unwind tables, by which BPF programs can walk the stacks of the processes that readers follow. Must
 * be called before names_read(); later calls return the same object. Returns 0, or -1 with the refusal. The
 * unwinding is released with the names.
 */
int names_unwind(struct names *names, struct unwinding **unwinding, struct refusal *refusal);

/*
 * Begins to listen to the notes of a target, unless another reader already does, and then reads the mappings
 * of its existing processes. Must be called before counting begins. `child` is the command's process, 0 if
 * there is none. `detail`: everything that codes will be asked for. With `interval_ms` (0: none), names may
 * take half an interval at most. Returns 0, or -1 with the refusal. The caller owns *reader and must call
 * reader_close().
 */
int names_read(struct reader **reader, struct names *names, const struct target *target, pid_t child,
	       unsigned int detail, __u64 interval_ms, struct refusal *refusal);
void reader_close(struct reader *reader);

/* Learns the path of each cgroup that is made from now on, even if it is removed at once: see cgroups_made().
 * Returns false if the kernel does not tell. If true, names_follow_cgroups_no_more() must follow. */
bool names_follow_cgroups(struct names *names);
void names_follow_cgroups_no_more(struct names *names);

/* Reads the kernel's notes up to now. */
void names_take(struct names *names);

/* Reads the pending notes. Afterwards, the mappings of all samples taken before are known. `all`: includes
 * the newest notes, although an older one may still come from another CPU. */
void reader_take(struct reader *reader, bool all);

/* The most processes and threads that those to which this reader or others of its notes listen have made, by
 * the notes taken so far. Returns false if there may be more. */
bool reader_forks(const struct reader *reader, __u64 *forks);

/* Has `due` called when addresses should be named before the interval ends: code of a file was mapped where
 * another file's was, so both have the same addresses; or processes that have ended take much memory, which
 * reader_named() gives back. */
void reader_on_due(struct reader *reader, void (*due)(void *context), void *context);

/* Begins the next interval, at this time. */
void reader_begin(struct reader *reader, const struct timespec *since);

/* The names of the last interval may take as long as necessary. */
void reader_hurry_no_more(struct reader *reader);

struct mappings *reader_mappings(struct reader *reader);

/*
 * Limits how long a reader waits for files: `ns` per interval, and half an interval for its last one. 0: half
 * an interval, and as long as necessary for the last one. A file that takes longer is known in the next
 * interval.
 */
void names_wait_at_most(struct names *names, __u64 ns);

/* The codes of this interval, valid until reader_begin(). Addresses without a name in time are described by
 * their place. */
struct codes *reader_codes(struct reader *reader);

/* The same before the interval has ended. Names are not waited for after `until` (CLOCK_MONOTONIC, ns): see
 * codes_try(). */
struct codes *reader_codes_early(struct reader *reader, __u64 until);

/* The same, with the limit that was set last. */
struct codes *reader_codes_now(struct reader *reader);

/* All samples up to this time (CLOCK_MONOTONIC, ns) have their names by now, so what had ended by then can be
 * forgotten. To be called after reader_codes_early() or reader_codes_now(). */
void reader_named(struct reader *reader, __u64 until);

/* For the end record: how many addresses have names, why others have none, and how many notes were lost. A
 * new reference. */
json_t *reader_value(const struct reader *reader);
