/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tells which file an address of a process belongs to, and at what time. The sources are the kernel's notes
 * of what processes map, execute, fork and exit (collection/sideband.h), and /proc/PID/maps of processes that
 * existed before. Ended processes and mappings are kept until the end of the interval, because the tables may
 * still have samples of them. These functions open files, so they must not be called while samples are being
 * read.
 *
 * Memory is limited to MAPPINGS_MOST mappings. Beyond that, those that have ended are dropped first.
 * Processes and mappings that have ended take at most 16 MiB, with the files that only they had mapped.
 */
#pragma once

#include <stdbool.h>
#include <linux/types.h>
#include <sys/types.h>

#include "collection/sideband.h"
#include "naming/mapped_file.h"
#include "naming/map_writer.h"

#define MAPPINGS_MOST (1 << 18) /* 64 bytes each; a fork shares its parent's */

struct mappings;

struct mappings *mappings_new(void);
/* The same for all mappings, not only those with code. They are told by name: see mapped_files_by_name(). */
struct mappings *mappings_of_data(void);
void mappings_release(struct mappings *mappings);

/* Changes of processes: ADDED: it has a new mapping. FORKED: it is a new child, with its parent's mappings.
 * EXECUTED: it has executed a program, and its mappings are gone. GONE: it was forgotten. */
enum mappings_change { MAPPINGS_ADDED, MAPPINGS_FORKED, MAPPINGS_EXECUTED, MAPPINGS_GONE };

/* Calls `changed` for each change from now on, after one call for each process already known. `parent` is
 * only set for FORKED. NULL: stops the calls. */
void mappings_watch(struct mappings *mappings,
		    void (*changed)(void *context, enum mappings_change change, pid_t pid, pid_t parent),
		    void *context);

/* Calls `each` for each current mapping of a process. */
void mappings_each(struct mappings *mappings, pid_t pid,
		   void (*each)(void *context, struct mapped_file *file, __u64 begin, __u64 end,
				__u64 offset),
		   void *context);

/* Adds a note of the kernel. Notes come in the order of their times, as far as the kernel's clocks agree. */
void mappings_take(struct mappings *mappings, const struct sideband_note *note);

/*
 * Looks up the owner and the root of processes that have executed a program since the last call, while they
 * still exist: both are needed to find perf-PID.map files. If `look` is false, only forgets these processes;
 * each is looked up when it maps an unknown file.
 */
void mappings_look_at_executed(struct mappings *mappings, bool look);

/* To be called when a process is about to execute a program: looks up what it sees as "/" now, so that it is
 * known even if the process ends soon. */
void mappings_expect(struct mappings *mappings, pid_t pid);

/* Reads the current code mappings of a process; does nothing if it has ended. */
void mappings_look(struct mappings *mappings, pid_t pid);
/* The same for all processes. */
void mappings_look_at_all(struct mappings *mappings);

/* To be called if notes were lost: marks processes that no longer exist as ended now. */
void mappings_look_who_is_gone(struct mappings *mappings);

/* Forgets processes and mappings that ended before `since` (CLOCK_MONOTONIC, ns), the begin of the slowest
 * reader's interval. Pointers to files that were returned before may become invalid. */
void mappings_forget(struct mappings *mappings, __u64 since);

#define MAPPINGS_FOREVER (~0ULL) /* the end of what is still there */

/* The place of an address. */
struct spot {
	struct mapped_file *file; /* NULL: not known; valid until the next mappings_forget() */
	__u64 offset;		  /* in the file */
	bool ambiguous; /* the process had another mapping there as well in this interval; this one existed
			   longer */
	__u64 since;	/* CLOCK_MONOTONIC, ns: when this one began */
	__u64 until;	/* when it ended; MAPPINGS_FOREVER: it has not */
	__u64 life;	/* the process's life that had it, by its begin: a fork or an exec */
};

/*
 * Finds what a process had mapped at an address since `since`, the begin of the reader's interval. `comm` is
 * the thread's name at the time of the sample, NULL if not known. It helps if the process has executed
 * another program within the interval: often both programs had something mapped at this address, but they
 * differ in comm. If nothing is found, the mappings of a process that still exists are read, at most once per
 * interval.
 */
struct spot mappings_find(struct mappings *mappings, pid_t pid, const char *comm, __u64 address, __u64 since);

/* The same if it is known when the address was seen: `moment`, CLOCK_MONOTONIC, ns; 0: it is not known. What
 * was there then is not ambiguous. */
struct spot mappings_find_at(struct mappings *mappings, pid_t pid, const char *comm, __u64 address,
			     __u64 since, __u64 moment);

/* A mapping beside an address. */
struct beside {
	struct mapped_file *file; /* NULL: there is none; valid until the next mappings_forget() */
	__u64 begin, offset;	  /* its first address, and where that is in the file */
};

/* Finds the last mapping that ends before the address, and the first that ends after it, which may contain
 * it, as they were just before `until`; MAPPINGS_FOREVER: as they are, in the life of the process that
 * mappings_find() would prefer. */
void mappings_beside(struct mappings *mappings, pid_t pid, const char *comm, __u64 address, __u64 since,
		     __u64 until, struct beside beside[2]);

/* Whether the process is unknown, or its first thread has ended. */
bool mappings_has_ended(struct mappings *mappings, pid_t pid);

/* The program that a process executed last; NULL if not known. Valid until the next mappings_forget(). */
const struct mapped_file *mappings_program(struct mappings *mappings, pid_t pid);

/*
 * Writes the path by which this process can open a process's perf-PID.map, where a JIT writes the names of
 * the code that it compiles (/tmp/perf-PID.map in the process's own namespaces). `life` is that of the
 * spot: the process may have executed another program since. `generation` is 0 for the process's own map; 1
 * and more are those of its parent and older ancestors, whose code it has inherited by fork(). Of a former
 * life, theirs come first: its own may be that of the next program. NULL if not known, or if there is no such
 * generation. Sets who must have written the file.
 */
const char *mappings_jit(struct mappings *mappings, pid_t pid, __u64 life, unsigned int generation,
			 struct map_writer *writer, char *text, size_t size);

/* The same for the jitdump files that a process, or the one that it inherited its code from, has mapped: the
 * newest is number 0. NULL: there are not so many. */
const char *mappings_jitdump(struct mappings *mappings, pid_t pid, __u64 life, unsigned int number,
			     struct map_writer *writer, char *text, size_t size);

/* A number that grows with each change after which mappings_find() may find something else. */
__u64 mappings_changes(const struct mappings *mappings);

/* Memory for processes, their mappings and the mapped files. */
size_t mappings_bytes(const struct mappings *mappings);

/* Whether code of a file was mapped where another file's was, since the last call. */
bool mappings_replaced(struct mappings *mappings);

/* Number of mappings that were dropped for lack of room so far. */
__u64 mappings_dropped(const struct mappings *mappings);
