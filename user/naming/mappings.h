/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which file an address of a process belongs to, and when: from the kernel's notes of what processes map,
 * execute, fork and end (collection/sideband.h), and from /proc/PID/maps of those that were there before.
 * What has ended stays known up to the end of the interval, because samples of it may still lie in the
 * tables. Do not call these while samples are being read: files are opened.
 *
 * Memory is bounded: MAPPINGS_MOST pieces of code; beyond, what has ended goes first.
 */
#ifndef NHMTAP_MAPPINGS_H
#define NHMTAP_MAPPINGS_H

#include <stdbool.h>
#include <linux/types.h>
#include <sys/types.h>

#include "collection/sideband.h"
#include "naming/mapped_file.h"

#define MAPPINGS_MOST (1 << 18) /* 64 bytes each; processes share those that they have from a fork */

struct mappings;

struct mappings *mappings_new(void);
void mappings_release(struct mappings *mappings);

/* What happens to processes: one has something mapped that it had not; is another's child, and has what that
 * has; executed something, and has nothing; is forgotten. */
enum mappings_change { MAPPINGS_ADDED, MAPPINGS_FORKED, MAPPINGS_EXECUTED, MAPPINGS_GONE };

/* Calls back for all changes from now on, after a call for each process already known. `parent`: of FORKED.
 * NULL: stop. */
void mappings_watch(struct mappings *mappings,
		    void (*changed)(void *context, enum mappings_change change, pid_t pid, pid_t parent),
		    void *context);

/* Calls `each` with all that a process has mapped now. */
void mappings_each(struct mappings *mappings, pid_t pid,
		   void (*each)(void *context, struct mapped_file *file, __u64 begin, __u64 end,
				__u64 offset),
		   void *context);

/* Takes in a note of a process. Notes come in the order of their times, as far as the kernel's clocks agree.
 */
void mappings_take(struct mappings *mappings, const struct sideband_note *note);

/* Finds the owner and the root of the processes that have executed something since the last call, while they
 * still exist: perf-PID.map files are found by these. `look` false: forgets the list; a process is still
 * looked up when it maps an unknown file. */
void mappings_look_at_executed(struct mappings *mappings, bool look);

/* A process that is about to execute something is there: what it sees as "/" is known then, however
 * short it lives. */
void mappings_expect(struct mappings *mappings, pid_t pid);

/* Reads what code a process has mapped now; quietly nothing if it has gone. */
void mappings_look(struct mappings *mappings, pid_t pid);
/* The same for all processes. */
void mappings_look_at_all(struct mappings *mappings);

/* Notes were lost: processes that are not there any more have ended by now. */
void mappings_look_who_is_gone(struct mappings *mappings);

/* Forgets what had ended before `since` (CLOCK_MONOTONIC, ns): when the interval of the slowest reader
 * began. File pointers from before may be gone. */
void mappings_forget(struct mappings *mappings, __u64 since);

/* Where an address lies. */
struct spot {
	struct mapped_file *file; /* NULL: not known; valid up to the next mappings_forget() */
	__u64 offset;		  /* in it */
	bool ambiguous; /* the process had something else there as well in this interval; this, longer */
};

/*
 * What a process has had mapped at an address since `since`, the begin of the reader's interval. `comm` is
 * the thread's at that moment, or NULL where that is not known: a process that has executed another program
 * within the interval often had both at the same address, and they differ in comm. An unknown process that
 * still exists is read, once an interval.
 */
struct spot mappings_find(struct mappings *mappings, pid_t pid, const char *comm, __u64 address, __u64 since);

/* Whether a process is not known, or its first thread has ended. */
bool mappings_has_ended(struct mappings *mappings, pid_t pid);

/* The program that a process has executed last; NULL if not known. Valid as above. */
const struct mapped_file *mappings_program(struct mappings *mappings, pid_t pid);

/* Where a process writes down the names of what it compiles as it runs, as it can be opened from here:
 * /tmp/perf-PID.map, in its own namespaces. NULL if not known. *owner: whose file it has to be. */
const char *mappings_jit(struct mappings *mappings, pid_t pid, uid_t *owner, char *text, size_t size);

/* Pieces of code that found no room, so far. */
__u64 mappings_dropped(const struct mappings *mappings);

#endif
