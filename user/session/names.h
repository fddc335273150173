/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where addresses lie and what is there, for all activities of a session: the kernel's notes, read as
 * they come, the mappings that they tell of, and the names that are looked up once tables have been
 * read. Each activity has a reader with an interval of its own; a mapping lives as long as the slowest
 * of them needs it.
 */
#ifndef NHMTAP_NAMES_H
#define NHMTAP_NAMES_H

#include <jansson.h>

#include "host/host.h"
#include "naming/codes.h"
#include "naming/mappings.h"
#include "plan/target.h"
#include "refusal.h"
#include "session/loop.h"
#include "session/notices.h"

struct names;
struct reader;
struct unwinding;

/* Nothing is opened before there is a reader. The host, the loop and the notices, by which CPUs are followed,
 * stay the caller's. */
struct names *names_new(const struct host *host, struct loop *loop, struct notices *notices);

/* Before there is a reader: bytes for what is read of files, and for tables to walk stacks by; 0: the
 * default. `sparing`: see struct naming_settings. */
void names_limit(struct names *names, size_t memory, size_t unwinding, bool sparing);
void names_release(struct names *names);

/*
 * From now on programs can walk the stacks of the processes that readers tell of by tables. To be called
 * before there is a reader; a second call gives the same. Returns 0, or -1 with the refusal. It is released
 * with the names.
 */
int names_unwind(struct names *names, struct unwinding **unwinding, struct refusal *refusal);

/*
 * Begins to listen for a target, where no other reader listens already, then looks at the processes that
 * it names and that are there. To be called before anything is counted. `child` is the command's
 * process, 0 if there is none; `detail` all that will be asked for; with `interval_ms` (0: none) names
 * may take half an interval and no longer. Returns 0, or -1 with the refusal. The caller owns *reader
 * up to reader_close().
 */
int names_read(struct reader **reader, struct names *names, const struct target *target, pid_t child,
	       unsigned int detail, __u64 interval_ms, struct refusal *refusal);
void reader_close(struct reader *reader);

/* Takes in the notes that are there; `all`: also those so young that an older one may still come from
 * another CPU. What has been sampled before is then known. */
void reader_take(struct reader *reader, bool all);

/* An interval is over, and the next one began at this time. */
void reader_begin(struct reader *reader, const struct timespec *since);

/* The last interval's names may take the time that they need. */
void reader_hurry_no_more(struct reader *reader);

struct mappings *reader_mappings(struct reader *reader);

/* No reader waits longer for files than this in one interval, or, at its end, half of one; 0: half an
 * interval, and at its end as long as it takes. What takes longer is known the next time. */
void names_wait_at_most(struct names *names, __u64 ns);

/* The codes of this interval, up to reader_begin(). What has no name in time goes by its place. */
struct codes *reader_codes(struct reader *reader);

/* How many have names, why others have not, and what was lost of the notes, for the end record; a new
 * reference. */
json_t *reader_value(const struct reader *reader);

#endif
