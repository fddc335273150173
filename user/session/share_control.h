/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The controller for a session's share of a CPU: it decides how much less often to sample. Pure arithmetic on
 * the time that was spent.
 *
 * A session's cost has two parts. The kernel's cost for samples is proportional to their number, so the
 * factor that is needed follows from the present cost. nhmtap's own cost is not, and comes in bursts, when
 * the records of an interval are written: its mean over a window is subtracted from what is allowed, and the
 * rest is for samples.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#define SHARE_TICK_NS 100000000ULL /* time between two decisions */
#define SHARE_TICKS   600	   /* the longest window, in ticks */

/* What was spent since the last tick. */
struct share_tick {
	__u64 ns;
	__u64 own_ns;	  /* CPU time of nhmtap's threads */
	__u64 samples_ns; /* CPU time of the kernel for samples */
};

enum share_because {
	SHARE_ASKED,	/* periods are those asked for */
	SHARE_TOO_DEAR, /* periods were raised: the cost was more than allowed */
	SHARE_ROOM,	/* periods were lowered again as far as there is room */
};

struct share_control {
	double allowed;	 /* CPU time divided by time: 0.01 is 1 % of one CPU */
	__u64 window_ns; /* window for the mean of nhmtap's own cost: at least an interval */
	double most;	 /* the largest factor; 1: no periods can be raised */
	double factor;	 /* periods are those asked for times this; at least 1 */
	enum share_because because;
	struct share_tick ticks[SHARE_TICKS]; /* the i-th is at i % SHARE_TICKS */
	size_t nr;			      /* number of ticks so far */
	size_t held;			      /* ticks since the factor was changed */
	double own_before; /* nhmtap's own share when only that raised the factor; 0: it did not */
};

struct share_control share_control_of(double allowed);

/* Adds a tick and decides. Returns whether the factor has changed. */
bool share_decide(struct share_control *control, const struct share_tick *tick);

/* Whether the share was exceeded by more than a fifth over a window, and fewer samples would not help. */
bool share_exceeded(const struct share_control *control);

/* Parses a share of one CPU, "1%" or "0.5%": 0.01 is 1 %. Returns 0 if it is invalid, less than 0.01 % or
 * more than 1000 %. */
double share_of_text(const char *text);
