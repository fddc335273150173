/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Asking the kernel by doing: events are planned, opened, attached and switched on as in any run, a
 * few milliseconds of work are measured, and everything is closed again. nhmtap is then the target
 * itself, or whole CPUs are.
 */
#ifndef NHMTAP_TRIAL_H
#define NHMTAP_TRIAL_H

#include <stdbool.h>
#include <linux/perf_event.h>
#include <linux/types.h>

#include "collection/counters.h"
#include "host/host.h"
#include "refusal.h"

struct trial {
	const char *events;				/* as behind -e */
	enum { ON_SELF, ON_A_CPU, ON_ALL_CPUS } target; /* this process, the first CPU, all of them */
	bool sampled; /* by the profile program, at `period`, or nhmtap's own frequency if that is 0 */
	__u64 period;
	bool branches;				      /* by the program of nhmtap branch instead */
	void (*adjust)(struct perf_event_attr *attr); /* what the plan does not set; NULL: nothing */
};

struct found {
	char event[160];    /* the first event's name, as planned */
	bool opened;	    /* the kernel gave descriptors for all */
	bool counted;	    /* `count` was read */
	struct count count; /* of the first event */
	bool sampled;	    /* `samples` was read */
	__u64 samples;	    /* that reached the BPF program */
	bool branches;	    /* some came with a branch, if trial.branches is set */
};

/* Does a trial. Returns 0, or -1 with the refusal: of the plan, of perf_event_open, of BPF. found says
 * how far it came. Nothing stays open. */
int trial_run(const struct trial *trial, struct host *host, struct found *found, struct refusal *refusal);

/* Loads the profile program and its tables. Returns 0, or -1 with the refusal. */
int trial_load(struct host *host, struct refusal *refusal);

/* Makes memory for tables of stacks, with the programs that follow forks and execs, and loads a program that
 * walks by them. Returns 0, or -1 with the refusal. */
int trial_unwind(struct host *host, struct refusal *refusal);

/* What the page that the kernel shares with an event's owner says while it counts. */
struct shared_page {
	bool rdpmc;   /* the owner may read the counter itself: perf_event_mmap_page.cap_user_rdpmc */
	bool placed;  /* the event was on a counter when the page was read */
	__u32 number; /* that counter's, as RDPMC takes it: bit 30 set for fixed ones */
	__u64 value;  /* read by the RDPMC instruction, if rdpmc and placed */
};

/* As trial_run() of a counted event of this process; reads its page. */
int trial_page(const struct trial *trial, struct host *host, struct found *found, struct shared_page *page,
	       struct refusal *refusal);

/* As trial_run(), of an event that writes a trace (BTS); *bytes is how much it wrote. */
int trial_trace(const struct trial *trial, struct host *host, struct found *found, __u64 *bytes,
		struct refusal *refusal);

/* Counts on one CPU what runs in the root of the cgroup hierarchy. */
int trial_cgroup(const struct trial *trial, struct host *host, struct found *found, struct refusal *refusal);

/* The highest precise_ip at which the kernel takes cycles, from the core PMU's max_precise downwards; -1 if
 * it takes none, or there is no core PMU. A driver may name a level and refuse every event at it: the one for
 * architectural perfmon 1 has a debug store but no precise event. Nothing stays open. */
int trial_cycles(struct host *host);

/* Whether perf_event_open() is refused for every event: a seccomp filter. */
bool trial_perf_filtered(void);

#endif
