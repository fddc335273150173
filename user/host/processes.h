/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers of processes. Those in records, those that a user gives, and those in the kernel's records are in
 * nhmtap's own pid namespace. /proc has those of the namespace in which it was mounted, which may be another
 * one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/types.h>
#include <time.h>

/* nhmtap's pid namespace. */
struct pid_namespace {
	__u64 device, inode; /* those of stat(2) on /proc/self/ns/pid; inode 0: not known */
	bool initial;	     /* it is the initial one */
};

struct pid_namespace pid_namespace(void);

/* The number of processes and threads made since boot (/proc/stat, "processes": total_forks, kernel/fork.c),
 * without nhmtap's own helpers (base/apart.h), which have none of the counters. 0: not known. */
__u64 proc_forks(void);

/* Whether /proc has the numbers of nhmtap's own namespace. */
bool proc_is_ours(void);

/*
 * The number of a process or thread of nhmtap's namespace in /proc, for a path /proc/NUMBER. Returns 0, which
 * /proc never has, if it can't be found out: the process has ended, it is not in nhmtap's namespace (pid 0),
 * or /proc belongs to another namespace and the kernel can't give a descriptor of the process
 * (pidfd_open(2)).
 */
pid_t proc_number(pid_t pid);

/*
 * The number in /proc of a thread that still has what the threads of a process share: memory, files, root,
 * namespaces. This is the process's own number, unless its first thread has ended before the others: then
 * /proc/PID shows a zombie that has none of this.
 */
pid_t proc_living(pid_t pid);

/* Whether a thread of nhmtap's namespace has ended, though /proc still has it. */
bool proc_is_zombie(pid_t tid);

/* Whether a process, or (`thread`) a thread, of nhmtap's namespace has not ended. A process has ended when
 * all of its threads have, though /proc still has it until somebody waits for it. */
bool proc_is_there(pid_t id, bool thread);

/* Copies what follows the name of a line ("Tgid:") in /proc/NUMBER/status of a process or thread of nhmtap's
 * namespace. Returns false if the process has ended, or there is no such line. */
bool proc_status(pid_t pid, const char *name, char *value, size_t size);

/* When a process of nhmtap's namespace began: seconds of CLOCK_REALTIME, by what that clock shows now. 0: it
 * has ended, or that is not known. */
time_t proc_began(pid_t pid);
