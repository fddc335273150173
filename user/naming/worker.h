/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files written by others (ELF, DWARF, perf-PID.map) are parsed in a separate process, the worker, which can
 * do nothing else: it has no capabilities and can gain no privileges, its only descriptors are its socket and
 * the files passed to it, and seccomp allows it only the system calls for reading and memory. It opens no
 * files. nhmtap opens debug files for it, if they belong to the owner of the file that names them or are
 * readable by all. Symbols and unwind tables come back in sealed memory and are checked once; everything else
 * comes in messages. Symbols are demangled by nhmtap itself: asking for each would cost more than looking
 * them all up. If a worker dies or does not answer, that request fails, and the next request starts another
 * worker.
 *
 * What nhmtap still reads itself are fields of fixed size: build-ids (naming/foreign.c), segments
 * (unwind/cache.c), and the libraries that a command's program names (unwind/needed.c).
 *
 * A worker that an attacker has taken over can return wrong names, also of other files, and read the files
 * that were passed to it. If there can be no worker, because fork or seccomp is refused, nothing is read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "naming/debug_file.h"
#include "naming/message.h"
#include "naming/naming.h"

struct worker;

/* Starts nothing: the worker is started by the first request or by worker_start(). It may use `memory` bytes,
 * not counting code and libraries; if it needs more, it ends. Only one thread may use it at a time. */
struct worker *worker_new(size_t memory);
/* Starts the worker, so that it is ready for the first request. Returns whether it is running. */
bool worker_start(struct worker *worker);
/* The same, and waits until it answers its first request. */
void worker_wait(struct worker *worker);
void worker_release(struct worker *worker);

/* From its next start on, the worker can show code as instructions, which takes a further library. */
void worker_disassembles(struct worker *worker);

/* The number of workers that have ended so far. What they had read is lost. */
__u32 worker_generation(const struct worker *worker);

/* CPU time of all workers of this process so far, including those that have ended. Any thread may call it. */
__u64 workers_cpu_ns(void);

#define WORKER_FAILED "the reader of files has failed on it"
/* Why the last request failed: WORKER_FAILED, or why there is no worker. A constant sentence. */
const char *worker_why(const struct worker *worker);

/* Memory with lists from a worker, sealed so that it can't change any more. */
struct sealed {
	char *memory;
	size_t size;
};
void sealed_release(struct sealed *sealed);

/* A request to the worker. */
struct question_of_worker {
	struct ask ask;
	int fd; /* passed to the worker and closed; -1: none */
	const char *text;
	size_t size;
	const struct file_place *place; /* if not NULL, the worker may ask for debug files of this place … */
	uid_t owner;			/* … that may belong to this user … */
	const char *debug_dir;		/* … or are in this folder */
	struct sealed *sealed;		/* gets the memory that comes back; NULL: none is expected */
	bool unsent; /* set if the request failed because the worker had already ended before it */
};

/*
 * Sends a request and waits for the answer. Returns NULL on failure. The answer and the data after it are
 * valid until the next request; its `why` is the text of a constant sentence. The caller owns the memory that
 * comes with it.
 */
const struct answer *worker_ask(struct worker *worker, struct question_of_worker *question);

/* A frame after an answer, and a text of it by its offset; NULL if there is no text, or if the offset is out
 * of range. */
const struct told_frame *answer_frame(const struct answer *answer, size_t i);
const char *answer_text(const struct answer *answer, __u32 at);

/* Tells the worker to forget a file. */
void worker_forget(struct worker *worker, __u32 id);

/* Takes symbols from an answer's memory; they take ownership of it. Returns false if they are invalid. */
struct told_symbols {
	struct symbols functions, objects; /* the functions own the memory of all */
	struct nameless nameless;
	struct segment *segments, *loaded; /* with code; all, if objects were asked for */
	size_t nr_segments, nr_loaded;
};
bool worker_symbols(struct sealed *sealed, const struct answer *answer, struct told_symbols *told);
