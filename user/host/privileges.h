/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What this process is privileged to do: capabilities(7). Before a session starts any thread and reads what
 * other programs have written, only what it needs later has an effect, and it gives up the rest. Without
 * COMMAND that is for good; COMMAND is to have all that it would have without nhmtap, and a process that
 * gains capabilities by execve(2) is not measured (begin_new_exec(), fs/exec.c), so with one they stay
 * permitted. What remains:
 *
 * - CAP_PERFMON: events are opened and programs attached for CPUs, processes and activities that come later.
 * - CAP_BPF: programs and tables are loaded, likewise.
 * - CAP_SYSLOG: the kernel's symbols (kallsyms).
 * - CAP_SYS_PTRACE: the mappings and the roots of other users' processes.
 * - CAP_DAC_READ_SEARCH: their files, and cgroups by their ids (open_by_handle_at).
 * - CAP_CHECKPOINT_RESTORE: mapped files that have no path any more (/proc/PID/map_files).
 * - CAP_IPC_LOCK: memory for samples beyond perf_event_mlock_kb.
 * - CAP_SYS_ADMIN: only where perf_event_paranoid is 3 or more, where it is held in the place of
 *   CAP_PERFMON, CAP_BPF or CAP_CHECKPOINT_RESTORE, or before Linux 6.2, where mem is not loaded without it.
 * - CAP_SYS_RESOURCE: only before Linux 5.11, where BPF's memory is locked memory.
 * - CAP_DAC_OVERRIDE: only with outputs that have a path: HUP opens files again, a socket is connected again.
 * - CAP_SYS_RAWIO: only with --msr, to open /dev/cpu/N/msr.
 * - CAP_KILL: only with COMMAND, which may have changed its user and is to be told to end.
 */
#ifndef NHMTAP_PRIVILEGES_H
#define NHMTAP_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct host;

/*
 * To be called first. A program that gives its caller privileges (file capabilities, setuid: AT_SECURE) takes
 * the caller's user and group, and none of its capabilities has an effect until privileges_raise(). Returns
 * -1 and sets errno if the caller's can't be taken: nothing else may be done then.
 */
int privileges_begin(void);

/*
 * Around what is opened because the caller names it, so that it is opened with the caller's own rights; only
 * where the caller has less than the program, otherwise they do nothing. Of the calling thread, and of those
 * that it starts.
 */
void privileges_lower(void);
void privileges_raise(void);

/* What a session will do. */
struct privileges_for {
	bool paths;   /* its outputs have paths */
	bool command; /* it runs a command */
	bool msr;     /* it writes model-specific registers */
};

/* Leaves what is needed, and tells the host which that are. With a host of a test's it does nothing. */
void privileges_keep(struct host *host, const struct privileges_for *purpose);

/* In the child that is to execute COMMAND: gives it what nhmtap was started with, or nothing where that was
 * lent. */
void privileges_of_command(void);

/* The effective capabilities of this thread, a bit each, or what is effective after privileges_raise(). */
__u64 privileges_held(void);

/* The names of the table above that are in a set, from *at on, which is moved behind: "CAP_PERFMON"; NULL:
 * there are no more. */
const char *privileges_name(__u64 set, size_t *at);

#endif
