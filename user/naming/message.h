/* SPDX-License-Identifier: GPL-2.0-only */
/* What a process and its worker tell each other: one message of a socket each. See worker.h. */
#ifndef NHMTAP_MESSAGE_H
#define NHMTAP_MESSAGE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/uio.h>

#include "naming/image.h"
#include "naming/symbols.h"

#define MESSAGE_MOST  (1 << 16) /* bytes */
#define WHY_MOST      120
#define ASK_TEXT_MOST (3 * (64 + PATH_MAX)) /* behind a question: see struct place */

/* Sends the parts as one message, with a descriptor, which stays the caller's, or -1. Returns whether it was
 * sent whole. */
bool message_send(int socket, struct iovec *parts, size_t nr, int fd);

/* Waits for one of at most so many bytes. Returns its size; 0: there is none, or it is not whole. *fd: the
 * descriptor that came with it, which is the caller's then, also where the message is none; -1: none came;
 * FD_CUT: there was no number left for it, or several came. */
#define FD_CUT (-2)
size_t message_receive(int socket, void *bytes, size_t most, int *fd);

/* The worker's program is this process's own, by this name; its socket has this number. */
#define WORKER_NAME "nhmtap-worker"
#define WORKER_FD   3

enum ask_kind {
	ASK_OPEN,   /* the file that comes with it, or without one the vdso: its build-id */
	ASK_LOAD,   /* its symbols and lines; texts: see struct place, and the folder of debug files */
	ASK_MAP,    /* the symbols of the perf-PID.map that comes with it */
	ASK_NAME,   /* what lines say of an address */
	ASK_TABLE,  /* the unwind table of the file that comes with it, or without one of the vdso */
	ASK_FORGET, /* a file's lines: has no answer */
	ASK_OPENED, /* what ANSWER_OPEN asked for, or without a descriptor: it can't be had */
};

struct ask {
	__u32 kind;
	__u32 id; /* of the file */
	__u64 address;
	__u64 most; /* see struct naming_settings, memory */
	__u32 lines;
	__u32 unused;
};

enum answer_kind {
	ANSWER_DONE,
	ANSWER_OPEN,
	ANSWER_NEVER,  /* it can't be confined, and reads nothing: `why` */
	ANSWER_MEMORY, /* the question takes more memory than it may have, and it ends */
};

/* A function that the address is in: see struct source_place. Texts are where they begin behind the frames;
 * -1: there is none. */
struct told_frame {
	__u32 function, file;
	__u32 line;
	__u32 unused;
	__u64 entry;
};

/* Why there can't be a worker. */
#define WORKER_UNSTARTED "the process that reads files can't be started"
#define WORKER_RESTS	 "the process that reads files rests: files have ended it too often"
#define WORKER_MEMORY	 "reading the file takes more memory than it may"
#define NEVER_LIBRARY	 "the process that reads files can't be confined: libseccomp is missing"
#define NEVER_SECCOMP	 "the process that reads files can't be confined: seccomp is refused"

#define FRAMES_MAX 32 /* of a name */

struct answer {
	__u32 kind;
	__u32 ours; /* ANSWER_OPEN: a debug file in our own system, not in the file's; its path is the text */
	char why[WHY_MOST]; /* "" : it was done */
	char build_id[2 * BUILD_ID_MAX + 1];
	__u64 counts[4];   /* of the items of each list in the memory that comes with it, in their order */
	__u64 base;	   /* of an unwind table */
	__u64 lines_bytes; /* that lines take in the worker */
	__u32 has_lines;
	__u32 nr_frames;
	__u32 nr_text; /* bytes */
	__u32 unused;
};

#endif
