/* SPDX-License-Identifier: GPL-2.0-only */
/* The command that is measured: a child that waits, before exec, until everything is attached. */
#pragma once

#include <stdbool.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <linux/types.h>

#include "base/refusal.h"

struct exec_watch;

struct child {
	pid_t pid;	/* 0: there is no child */
	int go_fd;	/* writing lets the child exec, closing lets it end; -1: closed */
	int failure_fd; /* delivers the errno if exec fails, and is closed by it otherwise; -1: it has begun
			 */
	bool exited;
	int wait_status; /* of waitpid(2), once exited */
	__u64 began_ns;	 /* CLOCK_MONOTONIC: when it was let go */
	struct spent {
		__u64 elapsed_ns; /* from then to its end */
		__u64 user_ns,
			system_ns;	/* of the process and of the children that it waited for: wait4(2) */
		__u64 faults, switches; /* minor page faults, and switches between threads, of the same */
	} spent;			/* once exited */
	__u64 before_ns;		/* the CPU time that it had used when it was let go */
	__u64 exec_ns;			/* from its being let go to its exec; 0: not known. Once exited */
	struct exec_watch *watch;	/* NULL: none */
};

/* What nhmtap changes for itself, and a command gets back as it was. */
struct inherited {
	sigset_t signals;	   /* blocked ones */
	struct rlimit descriptors; /* RLIMIT_NOFILE */
	bool limited;		   /* `descriptors` is valid */
};

/*
 * Forks the child, which restores what it inherited and waits. Returns 0, or -1 with the refusal.
 */
int child_start(struct child *child, char **argv, const struct inherited *inherited, struct refusal *refusal);

/* Whether the kernel has ended the counting of the child because of the program that it executed: see
 * exec_watch.h. */
bool child_cut(const struct child *child);

/*
 * Lets the child exec, and waits for that; but only for a short time, and not once a signal that ends the
 * session is pending: the program may be on a file system that does not answer. Returns as child_begin().
 */
int child_go(struct child *child, char **argv, struct refusal *refusal);

/* Whether it is not known yet if exec succeeds. failure_fd becomes readable then. */
bool child_is_beginning(const struct child *child);

/* Looks whether exec has succeeded. Returns 0, also if that is not known yet; or -1 with the refusal (status
 * 127: not found, 126: not executable): then the child has ended and been reaped. */
int child_begin(struct child *child, char **argv, struct refusal *refusal);

/* Reaps what has exited, without waiting: the child, and orphans, whose parent nhmtap is if it is PID 1.
 * Returns whether the child has ended. If the kernel refuses to tell its status, this is reported on stderr,
 * and the status is taken to be 3. */
bool child_reap(struct child *child);

/* Its exit status as the shell has it: the command's own, or 128 + the signal that ended it. */
int child_status(const struct child *child);

/* Ends a child that was never allowed to exec, and closes the descriptors. A running command keeps
 * running. */
void child_release(struct child *child);
