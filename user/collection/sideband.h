/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's notes beside samples: processes map files with code, execute programs, fork, exit. A dummy
 * event on each CPU writes them into a ring of its own, apart from samples.
 */
#ifndef NHMTAP_SIDEBAND_H
#define NHMTAP_SIDEBAND_H

#include <stdbool.h>
#include <linux/types.h>
#include <sys/types.h>

#include "host/host.h"
#include "plan/target.h"
#include "refusal.h"

#define BUILD_ID_MAX 20

enum sideband_kind {
	SIDEBAND_MAPPED,   /* PERF_RECORD_MMAP2: only what can be executed */
	SIDEBAND_EXECUTED, /* PERF_RECORD_COMM with MISC_COMM_EXEC: all of its mappings have gone */
	SIDEBAND_NAMED,	   /* PERF_RECORD_COMM otherwise: one of its threads has another comm from now on */
	SIDEBAND_FORKED,   /* PERF_RECORD_FORK of a process */
	SIDEBAND_THREADED, /* PERF_RECORD_FORK of a thread: the process has more than its first one */
	SIDEBAND_EXITED,   /* PERF_RECORD_EXIT of a process's first thread */
	SIDEBAND_CGROUP,   /* PERF_RECORD_CGROUP: one was made; of no process */
};

/* One note; what a kind has not is zero. Its strings are valid up to the next call. */
struct sideband_note {
	enum sideband_kind kind;
	pid_t pid;
	pid_t parent; /* FORKED */
	__u64 time;   /* CLOCK_MONOTONIC, ns */
	/* MAPPED: */
	__u64 begin, size;
	__u64 offset;	  /* of begin, in the file */
	const char *path; /* as the process sees it; "[vdso]", "//anon" */
	__u8 build_id[BUILD_ID_MAX];
	size_t build_id_size; /* bytes; 0: the kernel did not find it in memory, or is older than 5.12 */
	__u64 cgroup;	      /* CGROUP, with its path from the root of all: its id */
	const char *comm;     /* EXECUTED, NAMED */
	__u64 device, inode;  /* where there is no build-id: as /proc/PID/maps has them */
};

struct sideband;

/*
 * Opens and begins. Of a command or of processes, it is told what they and their children do; where CPUs are
 * measured, or there are too many threads for a descriptor each, it is told what all processes do, on every
 * CPU: a process may have mapped its files on a CPU that is not measured. The caller owns *sideband up to
 * sideband_close(). Returns 0, or -1 with the refusal.
 */
int sideband_open(struct sideband **sideband, const struct target *target, pid_t child,
		  const struct host *host, struct refusal *refusal);
void sideband_close(struct sideband *sideband);

/*
 * Adapts to the CPUs that are online; `gone` were offline in between. The caller has to take all notes
 * before. Returns whether it listens on a CPU on which it did not before: what happened there in between was
 * not told.
 */
bool sideband_follow(struct sideband *sideband, const struct cpus *online, const struct cpus *gone);

/* The processes that the target names, by their threads where it names those; the caller frees *pids.
 * 0 stands for one that has ended. Returns how many. */
size_t sideband_processes(const struct target *target, pid_t **pids);

/* Becomes readable when something has been written, and is so up to sideband_woken(). */
int sideband_fd(const struct sideband *sideband);
void sideband_woken(struct sideband *sideband);

/* The next note of all CPUs, in the order of their times, if it is older than `before`. Returns false
 * if there is none. */
bool sideband_next(struct sideband *sideband, __u64 before, struct sideband_note *note);

/* Notes that found no room in a ring (PERF_RECORD_LOST), so far. */
__u64 sideband_lost(const struct sideband *sideband);

#endif
