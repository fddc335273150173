/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An event: what perf_event_open is to be asked for, and why each field of the request is as it
 * is. Made from text and facts about the host; nothing here makes a system call of its own.
 */
#ifndef NHMTAP_EVENT_H
#define NHMTAP_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/perf_event.h>

#include "tables/known_event.h"
#include "host/host.h"
#include "refusal.h"

#define EVENT_REASONS 32 /* the members of perf_event_attr that anything sets, with room */

struct event {
	char name[160]; /* as the records call it: the user's own spelling, or name= */
	struct perf_event_attr attr;
	char description[200];		 /* what it counts, where a table says so; "" otherwise */
	char note[400];			 /* how it was understood, where that may surprise; "" otherwise */
	const struct known_event *known; /* the row of the CPU's table, if it comes from there */
	const struct pmu_event *listed;	 /* or of perf's own files */
	const struct known_unit *msr;	 /* its counter is one that Linux has no driver for; else NULL */
	const struct unit_kind *kind;	 /* of the unit */
	int unit_counter;		 /* of the unit, in the order of its kinds; -1: the plan finds none */
	int unit_escr;			 /* of the kind, where it has ESCRs */
	const struct unit_start *start;	 /* what starts its counter, if that cascades */
	const struct unit_metric *metric; /* of the kind, or NULL */
	size_t at;			  /* where it begins in the list that it was parsed from */
	char unit[32];		 /* of one count after scale: "ns", "Joules"; "" for a plain number */
	double scale;		 /* from the PMU's driver, else 1 */
	char counter[16];	 /* "fixed 1": where the plan places it; "" where that is not known */
	int group;		 /* events of one {…} share a number from 0; -1 outside */
	const struct cpus *cpus; /* the PMU's cpumask, borrowed; NULL if it counts per CPU */
	bool sideless;		 /* its PMU is: struct pmu */
	bool companion;		 /* has to count beside another one of its group, and takes no samples
				  * itself: what drivers call mem-loads-aux */
	bool privilege_given;	 /* the text says u, k or h */
	bool sampling_given;	 /* the text says period= or freq= */

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

/* Notes why a field is as it is; a later reason for the same field replaces the earlier. */
void event_reason(struct event *event, const char *field, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/* Adds to the event's note; nothing if the text is "". */
void event_note(struct event *event, const char *text, ...) __attribute__((format(printf, 2, 3)));
/* The reason of a field, or NULL. */
const char *event_reason_of(const struct event *event, const char *field);

/*
 * Parses a list as perf writes one: names, rNNNN, pmu/term=value,…/, each with modifiers, and
 * {groups}. Appends to events, which owns its list up to events_release(). Returns 0, or -1 with
 * the refusal filled in and events as they were.
 */
int events_parse(const char *text, struct host *host, struct events *events, struct refusal *refusal);
void events_release(struct events *events);

/* Whether event i is the first of its group, or stands alone: the one that switches the others. */
bool event_leads(const struct events *events, size_t i);

/* Whether the event counts time by one of the kernel's clocks: its count and period are in ns. */
bool event_is_clock(const struct event *event);

/* The period of a clock in ns, to which the kernel turns a frequency: perf_swevent_init_hrtimer(),
 * kernel/events/core.c. */
__u64 event_clock_period(const struct event *event);

#endif
