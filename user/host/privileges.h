/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What this process is privileged to do: capabilities(7). Before a session starts a thread or reads anything
 * that other programs have written, it keeps effective only those capabilities that it needs later. Without
 * COMMAND it gives up the others for good. With COMMAND they stay permitted, because COMMAND must have all
 * that it would have without nhmtap, and a process that gains capabilities by execve(2) is not measured
 * (begin_new_exec(), fs/exec.c). These remain effective:
 *
 * - CAP_PERFMON: to open events and attach programs for CPUs, processes and activities that come later.
 * - CAP_BPF: to load programs and tables, for the same.
 * - CAP_SYSLOG: for the kernel's symbols (kallsyms).
 * - CAP_SYS_PTRACE: for the mappings and the roots of other users' processes.
 * - CAP_DAC_READ_SEARCH: for their files, and for cgroups by their ids (open_by_handle_at(2)).
 * - CAP_CHECKPOINT_RESTORE: for mapped files that no longer have a path (/proc/PID/map_files).
 * - CAP_IPC_LOCK: for sample memory beyond perf_event_mlock_kb.
 * - CAP_SYS_ADMIN: only if perf_event_paranoid is 3 or more, if it replaces a missing CAP_PERFMON, CAP_BPF or
 *   CAP_CHECKPOINT_RESTORE, or before Linux 6.2, where mem can't be loaded without it.
 * - CAP_SYS_RESOURCE: only before Linux 5.11, where BPF's memory is locked memory.
 * - CAP_DAC_OVERRIDE: only with outputs that have a path: SIGHUP reopens files, and sockets are reconnected.
 * - CAP_SYS_RAWIO: only with --msr, to open /dev/cpu/N/msr.
 * - CAP_SYS_NICE: only with CONFIG: SIGHUP may add a stream, which is read before others run.
 * - CAP_KILL: only with COMMAND, which may have changed its user and must be told to end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct host;

/*
 * Must be called first. If the program gives its caller privileges (file capabilities, setuid: AT_SECURE), it
 * takes the caller's user and group, and none of its capabilities is effective until privileges_raise().
 * Returns 0, or -1 and sets errno if the user or group can't be changed: then nothing else may be done.
 */
int privileges_begin(void);

/*
 * privileges_lower() must be called before anything is opened because the caller named it, and
 * privileges_raise() after it, so that it is opened with the caller's own rights. They only do something if
 * the caller has fewer rights than the program. They apply to the calling thread and to threads that it
 * starts.
 */
void privileges_lower(void);
void privileges_raise(void);

/* What a session is going to do. */
struct privileges_for {
	bool paths;   /* its outputs have paths */
	bool command; /* it runs a command */
	bool msr;     /* it writes model-specific registers */
	bool reloads; /* SIGHUP may add activities */
};

/* Keeps the capabilities that are needed, and updates the host's sets of capabilities. Does nothing with the
 * host of a test. Returns 0, or -errno if the others can't be given up. */
int privileges_keep(struct host *host, const struct privileges_for *purpose);

/* Called in the child that executes COMMAND. Gives it the capabilities with which nhmtap was started, or none
 * if the program itself gave them to its caller (AT_SECURE). */
void privileges_of_command(void);

/* Called in a process that only opens, reads and writes files. Keeps the capabilities for these, of those
 * that are effective. */
void privileges_of_files(void);

/* The capabilities of this thread that are effective, or that are after privileges_raise(); one bit each. */
__u64 privileges_held(void);

/* The name of the next capability of the table above that is in the set: "CAP_PERFMON"; NULL if there are no
 * more. Starts at *at and advances it. */
const char *privileges_name(__u64 set, size_t *at);
