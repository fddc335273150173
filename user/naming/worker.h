/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files that others have written (ELF, DWARF, perf-PID.map) are parsed in a process of its own, which can do
 * nothing else: it has no capabilities and no new privileges, its descriptors are its socket and the files
 * that are passed to it, and seccomp leaves it what reading and memory need. It opens nothing: debug files
 * are opened here, as files that belong to the owner of the file that names them or that all may read.
 * Symbols and unwind tables come in sealed memory and are checked once; everything else in messages. Symbols
 * are demangled here: to ask for each costs more than to look them all up. A worker that dies, or does not
 * answer, costs what was asked, and the next question starts another one.
 *
 * What stays here reads fields of a fixed size: build-ids and segments (mapped_file.c, unwind/tables.c), and
 * the libraries that a command's program names (unwind/needed.c).
 *
 * What a worker that was taken over can do: tell wrong names, of other files as well, and read the files that
 * were passed to it. Where there can't be a worker, because fork or seccomp is refused, nothing is read.
 */
#ifndef NHMTAP_WORKER_H
#define NHMTAP_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "naming/debug_file.h"
#include "naming/message.h"
#include "naming/naming.h"

struct worker;

/* Starts nothing before the first question, or worker_start(). It may take `memory` bytes of its own, code
 * and libraries left out; asking for more ends it. One thread at a time. */
struct worker *worker_new(size_t memory);
/* Has it ready when it is asked. Returns whether it could be started, or was. */
bool worker_start(struct worker *worker);
/* The same, and waits until it answers. */
void worker_wait(struct worker *worker);
void worker_release(struct worker *worker);

/* How many have ended so far: what they knew is lost. */
__u32 worker_generation(const struct worker *worker);

/* CPU time of all workers of this process so far, also of those that have ended. Any thread may ask. */
__u64 workers_cpu_ns(void);

#define WORKER_FAILED "the reader of files has failed on it"
/* Why the last question has failed: this, or why there can't be a worker; a constant sentence. */
const char *worker_why(const struct worker *worker);

/* Memory of lists that a worker has made: it does not change any more. */
struct sealed {
	char *memory;
	size_t size;
};
void sealed_release(struct sealed *sealed);

/* A question. */
struct question_of_worker {
	struct ask ask;
	int fd; /* is passed, and closed; -1: none */
	const char *text;
	size_t size;
	const struct place *place; /* debug files may be asked for: those of this place … */
	uid_t owner;		   /* … that this user may have chosen, */
	const char *debug_dir;	   /* and of this folder */
	struct sealed *sealed;	   /* NULL: no memory is expected */
	bool unsent;		   /* it failed, because the worker had ended before */
};

/*
 * Asks. NULL: it failed. The answer, whose `why` is a constant sentence's text, and what is behind it are
 * valid up to the next question; memory that came with it is the caller's.
 */
const struct answer *worker_ask(struct worker *worker, struct question_of_worker *question);

/* The frames behind an answer, and a text of it; NULL where it has none, or it is not within. */
const struct told_frame *answer_frame(const struct answer *answer, size_t i);
const char *answer_text(const struct answer *answer, __u32 at);

/* Has the worker forget a file. */
void worker_forget(struct worker *worker, __u32 id);

/* Takes symbols from an answer's memory, which is theirs then. Returns false where they are not right. */
bool worker_symbols(struct sealed *sealed, const struct answer *answer, struct symbols *symbols,
		    struct segment **segments, size_t *nr_segments);

#endif
