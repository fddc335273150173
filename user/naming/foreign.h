/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files that others own may be on a file system that does not answer: a FUSE server that hangs, an NFS server
 * that is gone. Who waits for it can't be interrupted, not even by SIGKILL. So such files are looked up,
 * opened and read in helper processes, and the caller waits for an answer for a limited time. A helper that
 * has not answered by then is left alone. While it is stuck, everything on the same device and in the same
 * folder fails at once, so each file system that does not answer holds one helper.
 *
 * What /proc tells of a process's memory is asked for in the same way: it waits for the lock of that memory,
 * which the process holds while a file that it has mapped is read.
 *
 * This process itself gets only descriptors that it can read and close without waiting: those of files on
 * local file systems, copies in memory of others, and descriptors that were opened with O_PATH.
 *
 * Any thread may call these functions.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/guarded.h"

#define FOREIGN_BUILD_ID 41 /* bytes of the longest build-id in hex, with its final zero */

enum foreign_want {
	FOREIGN_STAT, /* only what stat(2) tells */
	FOREIGN_READ, /* a descriptor to be read; its `stat` is that of the file, also if it is a copy */
	FOREIGN_HOLD, /* a descriptor to be kept, and the build-id */
	FOREIGN_COPY, /* a copy to be read, of local files too: see `from` */
};

struct foreign_question {
	enum foreign_want want;
	const char
		*folder; /* that the path is relative to; NULL: none. Both may begin with /proc/self/fd/N */
	const char *path;
	__u64 resolve;	    /* see guarded_open() */
	struct guard guard; /* not for FOREIGN_STAT */
	dev_t device;	    /* that the file is on; 0: not known */
	/* FOREIGN_COPY: where to begin, and how many bytes to copy; 0: up to the end. */
	__u64 from, size;
	unsigned int wait_ms;
};

struct foreign_answer {
	int fd;	    /* owned by the caller; -1: none was wanted */
	bool local; /* FOREIGN_HOLD: the descriptor can be read. Otherwise it was opened with O_PATH */
	struct stat stat;
	char build_id[FOREIGN_BUILD_ID]; /* lower-case hex; "": none */
	char path[PATH_MAX];		 /* not for FOREIGN_STAT: where links lead; "": not known */
};

/* How long to wait: where samples wait, and where nothing but names of other files does. */
#define FOREIGN_SOON_MS	   200
#define FOREIGN_PATIENT_MS 3000

/* From now on, no thread waits for longer than FOREIGN_SOON_MS: the end waits for it. */
void foreign_hurry(bool hurry);

/* Returns 0, or an errno: ETIMEDOUT if the file system did not answer, or did not before; ECHILD if there can
 * be no helper; otherwise see guarded_open(). */
int foreign_ask(const struct foreign_question *question, struct foreign_answer *answer);

/* Asks, and returns the answer's descriptor, or -1 with errno. `stat` may be NULL. */
int foreign_open_as(const struct foreign_question *question, struct stat *stat);

/* Opens a file to be read, as FOREIGN_READ, if any owner is accepted. Returns the descriptor, or -1 with
 * errno. */
int foreign_open(const char *path, unsigned int wait_ms, struct stat *stat);

/* What stat(2) tells of a descriptor, as far as it is known without asking the file system. */
bool foreign_known(int fd, struct stat *stat);

/* The same for where a link of /proc leads, such as /proc/PID/root. */
bool foreign_known_link(const char *path, struct stat *stat);

/* As stat(2). Asks a helper only if the path, or what is there, is not in the kernel's cache. `device`,
 * `wait_ms`: see struct foreign_question. Returns false with errno. */
bool foreign_stat(const char *path, dev_t device, unsigned int wait_ms, struct stat *stat);

/* Whether a helper is stuck on a file of this device. */
bool foreign_is_stuck(dev_t device);

/* Whether a helper is stuck on a file of this name in a process's folder of /proc, such as "maps". */
bool foreign_is_stuck_in_proc(const char *name);

#define FOREIGN_STUCK "its file system does not answer"
