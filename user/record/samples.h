/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The account of an event's samples: how many there should be, how many are in the tables, and where
 * the others went. Pure arithmetic on what was read.
 */
#ifndef NHMTAP_SAMPLES_H
#define NHMTAP_SAMPLES_H

#include <stdbool.h>
#include <jansson.h>
#include <linux/types.h>

/* What was read of one event, all since the beginning. */
struct samples_read {
	__u64 count;	     /* occurrences, by the kernel's counter, read before the tables */
	__u64 sample_period; /* occurrences between two samples; 0: it varied (a frequency) */
	/* Where the period was another one before: what was counted by then, and how many samples it made. */
	__u64 count_before, samples_before;
	__u64 runs;	  /* samples that reached the program */
	__u64 period;	  /* the sum of their periods */
	__u64 aggregated; /* samples found in the tables */
	__u64 table_full;
	__u64 stack_failed;
	/* Periods that may have been begun and not finished: one for each CPU, thread and child that
	 * has a counter of its own. */
	__u64 contexts;
	bool precise;  /* its samples are PEBS records */
	bool collides; /* … and those of another event may be the same records */
	bool clock;    /* the event is a timer's */
	bool filtered; /* a timer that drops samples of the side (user, kernel) not asked for */
};

/* The account. expected = aggregated + table_full + stack_failed + missed, always; see
 * samples_account(). */
struct samples {
	__u64 expected;
	__u64 uncertainty;
	__u64 aggregated;
	__u64 table_full;
	__u64 stack_failed; /* for programs that read a stack */
	__u64 missed;	    /* for the cause that missed_cause() names */
};

/*
 * The count, divided by the period, is the number of samples that there should be, up to `uncertainty` =
 * contexts. What is lacking beyond that is `missed`. It never shrinks from one account to the next (`before`;
 * zeroed at first), because a sample that was missed does not come later.
 */
struct samples samples_account(const struct samples_read *read, const struct samples *before);

/* What has come between two accounts. */
struct samples samples_since(const struct samples *now, const struct samples *before);

/*
 * Each name stands for the first cause that applies, and for those behind it, which can't be told apart.
 * "pebs_collision": the hardware wrote one record for several precise events, which the kernel drops
 * (intel_pmu_drain_pebs_nhm(), arch/x86/events/intel/ds.c); "pebs_drained": more records than one were
 * waiting, and only the last of them comes by the program (same place); "pebs_unrecorded": no
 * record ever came, so the hardware does not record this event (from Sandy Bridge on the kernel takes every
 * event as precise), or as pebs_drained; "handler_skipped": the kernel
 * was running another BPF program or bpf() call on that CPU (bpf_prog_active); "excluded": ticks in the
 * side that was not asked for; "timer_missed": ticks that came late or were throttled.
 */
const char *missed_cause(const struct samples_read *read);

/* The account as the records have it; a new reference. */
json_t *samples_value(const struct samples *samples, const char *cause);

#endif
