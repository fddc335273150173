/* SPDX-License-Identifier: GPL-2.0-only */
/* The command that is measured: a child that waits, before exec, until everything is attached. */
#ifndef NHMTAP_CHILD_H
#define NHMTAP_CHILD_H

#include <stdbool.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <linux/types.h>

#include "refusal.h"

struct child {
	pid_t pid;	/* 0: there is none */
	int go_fd;	/* writing here, or closing it, lets the child go or end; -1 */
	int failure_fd; /* delivers the errno of an exec that failed; -1 */
	bool exited;
	int wait_status; /* waitpid(2)'s, once exited */
	__u64 began_ns;	 /* CLOCK_MONOTONIC: when it was let go */
	struct spent {
		__u64 elapsed_ns; /* from then to its end */
		__u64 user_ns,
			system_ns; /* of the process and of the children that it waited for: wait4(2) */
	} spent;		   /* once exited */
};

/* What nhmtap changes for itself and a command is to have as it was. */
struct inherited {
	sigset_t signals;	   /* blocked ones */
	struct rlimit descriptors; /* RLIMIT_NOFILE */
	bool limited;		   /* they are known */
};

/*
 * Forks the child. It restores what was inherited and waits. Returns 0, or -1 with the refusal filled in.
 */
int child_start(struct child *child, char **argv, const struct inherited *inherited, struct refusal *refusal);

/* Lets it exec. Returns 0, or -1 with the refusal (status 127: not found, 126: not executable);
 * the child is gone then. */
int child_go(struct child *child, char **argv, struct refusal *refusal);

/* Collects the exits that there are, without waiting: the child's, and those of orphans, whose parent
 * nhmtap is where it is PID 1. Returns whether the child has ended. Where its status is refused, that is
 * said on stderr, and it has ended with status 3. */
bool child_reap(struct child *child);

/* Its exit status as the shell has it: the command's own, or 128 + the signal that ended it. */
int child_status(const struct child *child);

/* Ends a child that was never let go, closes what is open. A running command is left running. */
void child_release(struct child *child);

#endif
