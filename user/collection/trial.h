/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds out what the kernel supports by trying it: events are planned, opened, attached and enabled as in any
 * run, a few milliseconds of work are measured, and everything is closed again. The target is nhmtap itself,
 * or whole CPUs.
 */
#pragma once

#include <stdbool.h>
#include <linux/perf_event.h>
#include <linux/types.h>

#include "base/refusal.h"
#include "collection/counters.h"
#include "host/host.h"

struct trial {
	const char *events;				/* as behind -e */
	enum { ON_SELF, ON_A_CPU, ON_ALL_CPUS } target; /* this process, the first CPU, all of them */
	bool sampled; /* by the profile program, with `period`, or nhmtap's own frequency if that is 0 */
	__u64 period;
	bool branches;				      /* by the program of nhmtap branch instead */
	void (*adjust)(struct perf_event_attr *attr); /* sets what the plan does not; NULL: nothing */
};

struct found {
	char event[160];    /* the first event's name, as planned */
	bool opened;	    /* all descriptors were opened */
	bool counted;	    /* `count` was read */
	struct count count; /* of the first event */
	bool sampled;	    /* `samples` was read */
	__u64 samples;	    /* that reached the BPF program */
	bool branches;	    /* some came with a branch, if trial.branches is set */
};

/* Runs a trial. Returns 0, or -1 with the refusal of the plan, of perf_event_open(2) or of BPF. *found says
 * how far it got. Nothing stays open. */
int trial_run(const struct trial *trial, struct host *host, struct found *found, struct refusal *refusal);

/* Loads the profile program and its tables. Returns 0, or -1 with the refusal. */
int trial_load(struct host *host, struct refusal *refusal);

/* Makes the memory for tables of stacks, with the programs that follow forks and execs, and loads a program
 * that walks stacks by tables. Returns 0, or -1 with the refusal. */
int trial_unwind(struct host *host, struct refusal *refusal);

/* Contents of the page that the kernel shares with an event's owner, while the event counts. */
struct shared_page {
	bool rdpmc;   /* the owner may read the counter itself: perf_event_mmap_page.cap_user_rdpmc */
	bool placed;  /* the event was on a counter when the page was read */
	__u32 number; /* that counter's, as RDPMC takes it: bit 30 set for fixed ones */
	__u64 value;  /* read by the RDPMC instruction, if rdpmc and placed */
};

/* Like trial_run() with a counted event of this process; also reads its page. */
int trial_page(const struct trial *trial, struct host *host, struct found *found, struct shared_page *page,
	       struct refusal *refusal);

/* Like trial_run(), with an event that writes a trace (BTS); *bytes is the size of the trace. */
int trial_trace(const struct trial *trial, struct host *host, struct found *found, __u64 *bytes,
		struct refusal *refusal);

/* Like trial_run(), but counts on one CPU what runs in the root of the cgroup hierarchy. */
int trial_cgroup(const struct trial *trial, struct host *host, struct found *found, struct refusal *refusal);

/* The highest precise_ip with which the kernel opens a cycles event, tried from the core PMU's max_precise
 * downwards; -1 if there is none, or no core PMU. A driver may announce a level and yet refuse every event
 * with it: the one for architectural perfmon 1 has a debug store but no precise event. Nothing stays open. */
int trial_cycles(struct host *host);

/* Whether perf_event_open(2) is refused for every event, as by a seccomp filter. */
bool trial_perf_filtered(void);
