/* SPDX-License-Identifier: GPL-2.0-only */
/* The account of an event's samples: how many there should be, how many are in the tables, and where the
 * others were lost. Pure arithmetic on what was read. */
#pragma once

#include <stdbool.h>
#include <jansson.h>
#include <linux/types.h>

/* What was read of an event; all numbers are totals since the run began. */
struct samples_read {
	__u64 count;	     /* occurrences by the kernel's counter, which is read before the tables */
	__u64 sample_period; /* what the kernel counts for each sample; 0 if that varied (a frequency) */
	bool by_count; /* a sample stands for all that its event has counted since the one before, also if
			  some between them were missed */
	__u64 beyond;  /* occurrences for each sample that the kernel does not count: event_distance() */
	/*
	 * If the period was changed during the run: the count at that time, and the samples expected of it.
	 */
	__u64 count_before, samples_before;
	__u64 runs;	  /* samples for which the BPF program ran */
	__u64 period;	  /* sum of the occurrences that these samples stand for */
	__u64 aggregated; /* samples found in the tables */
	__u64 filtered;	  /* samples that a condition left out; they belong to `runs` */
	__u64 table_full;
	__u64 stack_failed;
	/* Number of periods that may have begun without giving their sample: one for each CPU, thread and
	 * child with a counter of its own, and once more for each change of the period. */
	__u64 contexts;
	__u64 throttled; /* how often the kernel paused the event */
	__u64 by_group;	 /* those of them for which another event of its group was the cause */
	bool stops;	 /* what occurs in such a pause is not counted */
	bool at_least;	 /* samples may take more occurrences than `beyond`: see struct event */
	bool precise;	 /* its samples are PEBS records */
	bool collides;	 /* another precise event may use the same PEBS records */
	bool clock;	 /* it is one of the kernel's clocks */
	bool one_side;	 /* a clock with samples of one side (user, kernel) only; the others are dropped */
};

/* The account. It always holds that expected = aggregated + table_full + stack_failed + missed; see
 * samples_account(). */
struct samples {
	__u64 expected;
	__u64 uncertainty;
	bool at_least;	 /* the count is what there was at least: see struct event */
	__u64 throttled; /* how often the kernel paused the event until its next tick: it sampled too often */
	__u64 by_group;	 /* see struct samples_read */
	bool stops;	 /* see struct samples_read */
	__u64 aggregated;
	__u64 table_full;
	__u64 stack_failed;	/* only of programs that read stacks */
	__u64 missed;		/* lost for the cause that missed_cause() returns */
	__u64 filtered;		/* not expected: see struct samples_read */
	__u64 unsampled;	/* if `by_count`: occurrences so far that no sample stands for */
	__u64 unsampled_before; /* of a difference: the same at its beginning */
};

/*
 * The count divided by the period is the number of samples that there should be, with an uncertainty of
 * `contexts` samples. What is lacking beyond that is `missed`. `missed` never shrinks from one account to the
 * next, because a sample that was missed does not come later: `before` is the previous account, zeroed for
 * the first.
 */
struct samples samples_account(const struct samples_read *read, const struct samples *before);

/* The occurrences that the kernel's counter lacks: those that precise samples took beyond their periods. Of a
 * sample that is missed, this is only known if there was a record. Never shrinks from one account to the
 * next. */
__u64 samples_uncounted(const struct samples_read *read, const struct samples *account);

/* Whether the kernel has paused the event, and did not count what occurred meanwhile. */
bool samples_paused(const struct samples *account);

/* The difference of two accounts. */
struct samples samples_since(const struct samples *now, const struct samples *before);

/*
 * The name of the cause of missed samples. It stands for the first of these causes that applies to the event,
 * and for the later ones, because they can't be distinguished:
 * - "pebs_collision": the hardware wrote one record for several precise events, and the kernel drops it
 *   (intel_pmu_drain_pebs_nhm(), arch/x86/events/intel/ds.c).
 * - "pebs_drained": several records were in the buffer, and the program runs only for the last of them (same
 *   place).
 * - "pebs_unrecorded": no record ever came, so the hardware does not record this event (from Sandy Bridge on
 *   the kernel accepts any event as precise), or the cause is that of pebs_drained.
 * - "handler_skipped": the kernel was running another BPF program or a bpf() call on that CPU
 *   (bpf_prog_active), or raised what was left of a period when it switched a thread in
 *   (x86_perf_event_set_period(), arch/x86/events/core.c).
 * - "excluded": the clock's ticks on the side that was not asked for.
 * - "timer_missed": ticks that came late or were throttled.
 */
const char *missed_cause(const struct samples_read *read);

/* The account as a value of a record. Returns a new reference. */
json_t *samples_value(const struct samples *samples, const char *cause);
