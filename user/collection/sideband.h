/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's notes (perf's side-band records) of processes that map files with code, execute programs, fork
 * and exit. A dummy event on each CPU writes them into a ring of its own, separate from samples.
 */
#pragma once

#include <stdbool.h>
#include <linux/types.h>
#include <sys/types.h>

#include "base/refusal.h"
#include "host/host.h"
#include "plan/target.h"

#define MAPPED_BUILD_ID_MAX 20 /* bytes: BUILD_ID_SIZE_MAX in the kernel, of PERF_RECORD_MMAP2 */

enum sideband_kind {
	SIDEBAND_MAPPED,   /* PERF_RECORD_MMAP2: executable mappings; on request, all */
	SIDEBAND_EXECUTED, /* PERF_RECORD_COMM with MISC_COMM_EXEC: all earlier mappings of the process are
			      gone */
	SIDEBAND_NAMED,	   /* other PERF_RECORD_COMM: one of its threads has a new comm */
	SIDEBAND_FORKED,   /* PERF_RECORD_FORK of a process */
	SIDEBAND_THREADED, /* PERF_RECORD_FORK of a thread: the process has more than one */
	SIDEBAND_EXITED,   /* PERF_RECORD_EXIT of a process's first thread */
	SIDEBAND_CGROUP,   /* PERF_RECORD_CGROUP: a cgroup was created; belongs to no process */
	SIDEBAND_KSYMBOL,  /* PERF_RECORD_KSYMBOL: code that the kernel has made, such as that of a BPF
			      program,  has come or gone; belongs to no process */
};

/* One note; members that its kind does not have are zero. Its strings are valid up to the next call. */
struct sideband_note {
	enum sideband_kind kind;
	pid_t pid;
	pid_t parent; /* FORKED */
	__u64 time;   /* CLOCK_MONOTONIC, ns */
	bool data;    /* MAPPED: the mapping has no code */
	/* MAPPED, KSYMBOL: */
	__u64 begin, size;
	/* MAPPED: */
	__u64 offset;	  /* of `begin`, in the file */
	const char *path; /* as the process sees it; "[vdso]", "//anon" */
	__u8 build_id[MAPPED_BUILD_ID_MAX];
	size_t build_id_size; /* bytes; 0: the kernel could not read it from memory, or is older than 5.12 */
	__u64 cgroup;	      /* CGROUP: its id; `path` is its path from the root of the hierarchy */
	const char *symbol;   /* KSYMBOL: its name */
	bool bpf, gone;	      /* KSYMBOL: it is a BPF program's; it has gone, not come */
	const char *comm;     /* EXECUTED, NAMED */
	__u64 device, inode;  /* MAPPED without a build-id: as in /proc/PID/maps */
};

struct sideband;

/*
 * Opens the events and starts to listen. For a command or processes, it gets the notes of these and of their
 * children. If CPUs are measured, or there are too many threads for one descriptor each, it gets the notes of
 * all processes, on every CPU: a process may have mapped its files on a CPU that is not measured. The caller
 * owns *sideband up to sideband_close(). `data`: there are notes of mappings without code, too. Returns 0, or
 * -1 with the refusal.
 */
int sideband_open(struct sideband **sideband, const struct target *target, pid_t child, bool data,
		  const struct host *host, struct refusal *refusal);
void sideband_close(struct sideband *sideband);

/* The same for KSYMBOL alone, on all CPUs: the kernel writes it only on the CPU where it makes the code, and
 * not for the events of other processes than the one that loads it. Returns 0 or -errno: -EINVAL before Linux
 * 5.1. */
int sideband_open_kernel(struct sideband **sideband, const struct host *host);

/* The same for notes of cgroups that are made, which the kernel writes since 5.7. */
int sideband_open_cgroups(struct sideband **result, const struct host *host);

/*
 * Adapts to the CPUs that are online; those in `gone` have been offline in between. The caller must have
 * taken all notes before. Returns whether it now listens on a CPU on which it did not listen before: notes of
 * that CPU up to now are missing.
 */
bool sideband_follow(struct sideband *sideband, const struct cpus *online, const struct cpus *gone);

/* Lists the processes of the target, including those of its threads; the caller frees *pids. 0 stands for one
 * that has ended. Returns how many there are. */
size_t sideband_processes(const struct target *target, pid_t **pids);

/* The descriptor becomes readable when notes have been written, and stays so up to sideband_woken(). */
int sideband_fd(const struct sideband *sideband);
void sideband_woken(struct sideband *sideband);

/* Gives the next note of all CPUs, in the order of their times, if it is older than `before`. Returns false
 * if there is none. */
bool sideband_next(struct sideband *sideband, __u64 before, struct sideband_note *note);

/* Whether there were notes that were not older, when sideband_next() last returned false. */
bool sideband_has_more(const struct sideband *sideband);

/* The number of notes so far that found no room in a ring (PERF_RECORD_LOST). */
__u64 sideband_lost(const struct sideband *sideband);

/* The most processes and threads that those to which it listens have made, by the notes read so far. Returns
 * false if there may be more. */
bool sideband_forks(const struct sideband *sideband, __u64 *forks);
