/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers of processes. Those in records, those that a user gives and those in the kernel's notes are of
 * nhmtap's own pid namespace. /proc has those of the namespace that it was mounted in, which may be another.
 */
#ifndef NHMTAP_PROCESSES_H
#define NHMTAP_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/types.h>

/* nhmtap's pid namespace. */
struct pid_namespace {
	__u64 device, inode; /* as stat(2) has /proc/self/ns/pid; inode 0: it can't be told */
	bool initial;	     /* it is the first one */
};

struct pid_namespace pid_namespace(void);

/* Whether /proc has the numbers of nhmtap's own namespace. */
bool proc_is_ours(void);

/*
 * The number by which /proc has a process or thread of nhmtap's namespace: for a path /proc/NUMBER. 0,
 * which /proc never has, if it can't be told: it has ended, it is in no namespace of nhmtap's (pid 0), or
 * /proc is another namespace's and the kernel has no descriptor for it (pidfd_open(2)).
 */
pid_t proc_number(pid_t pid);

/* Copies what follows the name of a line ("Tgid:") in /proc/NUMBER/status of a process or thread of nhmtap's
 * namespace. Returns false if it has ended, or has no such line. */
bool proc_status(pid_t pid, const char *name, char *value, size_t size);

#endif
