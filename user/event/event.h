/* SPDX-License-Identifier: GPL-2.0-only */
/* An event: a request to perf_event_open(2), with the reason for each field that is set. It is made from text
 * and facts about the host. Nothing here makes a system call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/perf_event.h>

#include "base/refusal.h"
#include "host/host.h"
#include "tables/known_event.h"

#define EVENT_REASONS 32 /* enough for all members of perf_event_attr that are ever set */

struct event {
	char name[160];	  /* its name in records: the user's spelling, or that of name= */
	unsigned int nth; /* which of the plan's events of this name it is, from 1; 0: not planned yet */
	struct perf_event_attr attr;
	char description[200];		 /* what it counts, if a table says so; else "" */
	char note[400];			 /* how it was interpreted, if that may surprise; else "" */
	const struct known_event *known; /* the row of the CPU's table, if it comes from there */
	const struct pmu_event *listed;	 /* the entry of perf's own files, if it comes from there */
	const struct known_unit *msr; /* the unit of its counter, if Linux has no driver for it; else NULL */
	const struct unit_kind *kind; /* kind of counter in that unit */
	int unit_counter; /* index among the unit's counters, ordered by kind; -1: the plan found none */
	int unit_escr;	  /* index among the kind's ESCRs, if there are any */
	const struct unit_start *start;	  /* how its counter is started, if it cascades */
	const struct unit_metric *metric; /* the kind's metric of the term metric=, or NULL */
	size_t at;			  /* its offset in the text that it was parsed from */
	char unit[32];		 /* unit of a count, once scaled: "ns", "Joules"; "": a plain number */
	double scale;		 /* from the PMU's driver, else 1 */
	char counter[16];	 /* "fixed 1": the counter that the plan assigns; "" if not known */
	char never[500];	 /* why it can't count what it is asked for, so that its count says nothing;
				    "": it can */
	int group;		 /* events in the same {…} have the same number, from 0; -1 outside */
	const struct cpus *cpus; /* the PMU's cpumask, borrowed; NULL if it counts per CPU */
	bool sideless;		 /* copied from its PMU: see struct pmu */
	bool companion; /* auxiliary event of a group, which must be counted with another one and takes no
			   samples: drivers call it mem-loads-aux */
	bool privilege_given; /* the text says u, k or h */
	bool guests_given;    /* the text says G or H */
	bool most_precise;    /* the text says P */
	bool weak;	      /* the text says W: a group that doesn't fit the counters is taken apart */
	bool leader_samples;  /* the text says S: only the group's first event takes samples */
	bool sampling_given;  /* the text says period= or freq= */
	__u64 beyond;	 /* events that a sample takes beyond the kernel's period: see event_distance() */
	bool at_least;	 /* so many or more: what occurs several at once may lose more of them in a record */
	bool miscounted; /* the kernel counts it wrongly: of its count, only what its samples stand for is
			    known */
	__u64 least;	 /* the kernel raises shorter periods to this; 0: it does not */

	struct reason {
		const char *field; /* a member of perf_event_attr */
		char why[96];
	} reasons[EVENT_REASONS];
	size_t nr_reasons;
};

struct events {
	struct event *list;
	size_t nr;
};

/* Sets a member of the event's attr and says why. */
#define EVENT_SET(event, field, value, ...)                                                                  \
	((event)->attr.field = (value), event_reason((event), #field, __VA_ARGS__))

/* Records why a field has its value. A later reason for the same field replaces an earlier one. */
void event_reason(struct event *event, const char *field, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/* Appends to the event's note, unless the text is "". */
void event_note(struct event *event, const char *text, ...) __attribute__((format(printf, 2, 3)));
/* The reason of a field, or NULL. */
const char *event_reason_of(const struct event *event, const char *field);

/*
 * Parses a list in perf's syntax: names, rNNNN, pmu/term=value,…/, each with modifiers, and {groups}. Appends
 * to `events`, which owns its list up to events_release(). Returns 0, or -1 with the refusal and `events`
 * unchanged.
 */
int events_parse(const char *text, struct host *host, struct events *events, struct refusal *refusal);
void events_release(struct events *events);

/* Makes an event that only counts of one for which the text says period= or freq=, and notes so. The counter
 * would overflow for nobody, and the kernel stops what overflows too often (__perf_event_overflow()): its
 * count is too low then. */
void event_leave_samples_out(struct event *event);

/* Whether event i is the first of its group, whose other events are enabled and disabled with it, or is not
 * in a group. */
bool event_leads(const struct events *events, size_t i);

/* Whether event i belongs to a pinned group, which is counted all the time or given up by the kernel. */
bool event_is_pinned(const struct events *events, size_t i);

/* Whether no event of event i's group ever waits for a counter. */
bool events_always_run(const struct events *events, size_t i);

/*
 * The occurrences from one sample to the next, if the period is fixed; 0 if there is a frequency. For a
 * precise event this is more than attr.sample_period: the counter's overflow, after that many events, arms
 * PEBS, and a later event is recorded ("Nehalem Core PMU" guide, section 3.5). The hardware then sets the
 * counter to 0 (intel_pmu_pebs_enable(), arch/x86/events/intel/ds.c), so the kernel does not count that
 * event.
 */
__u64 event_distance(const struct event *event);

/* Whether the event is one of the kernel's clocks, whose count and period are in ns. */
bool event_is_clock(const struct event *event);

/* Whether the kernel does not count the event while it is throttled for its own samples. It counts software
 * events, tracepoints and breakpoints on, and only their samples pause: perf_swevent_event(),
 * kernel/events/core.c. What a clock should have counted is known by its running time. */
bool event_stops_throttled(const struct event *event);

/* Whether the kernel gives the event's samples the period of the time after them: with a frequency, those of
 * what it counts in software but for the clocks. perf_swevent_event() takes the event's last_period, which
 * perf_swevent_set_period() has set for the interval that begins, kernel/events/core.c. */
bool event_tells_next_period(const struct event *event);

/* The kernel raises shorter periods of a clock to this: perf_swevent_start_hrtimer(), kernel/events/core.c.
 */
#define CLOCK_PERIOD_LEAST 10000ULL

/* The ns from tick to tick of a clock. The kernel converts a frequency to a period:
 * perf_swevent_init_hrtimer(), kernel/events/core.c. */
__u64 event_clock_period(const struct event *event);
