/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much less often to sample, so that a session costs no more than its share of a CPU: a controller, pure
 * arithmetic on what was spent.
 *
 * A session's cost has two parts. What the kernel spends on samples is as much less as there are fewer of
 * them, so the factor that makes it fit follows from what it is now. What nhmtap itself spends is not, and
 * comes in bursts (an interval's records): its mean over a window is taken from what is allowed, and samples
 * have the rest.
 */
#ifndef NHMTAP_SHARE_CONTROL_H
#define NHMTAP_SHARE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#define SHARE_TICK_NS 100000000ULL /* how often to decide */
#define SHARE_TICKS   600	   /* the longest window, in ticks */

/* Since the tick before. */
struct share_tick {
	__u64 ns;
	__u64 own_ns;	  /* CPU time of nhmtap's threads */
	__u64 samples_ns; /* CPU time of the kernel for samples */
};

enum share_because {
	SHARE_ASKED,	/* periods are as they were asked for */
	SHARE_TOO_DEAR, /* they were raised: it cost more than allowed */
	SHARE_ROOM,	/* they were lowered again, as far as there is room */
};

struct share_control {
	double allowed;	 /* CPU time by time: 0.01 is 1 % of one CPU */
	__u64 window_ns; /* for the mean of nhmtap's own cost: no less than an interval */
	double most;	 /* the largest factor; 1: nothing can be sampled less often */
	double factor;	 /* periods are those asked for, times this; never less than 1 */
	enum share_because because;
	struct share_tick ticks[SHARE_TICKS]; /* the i-th is at i % SHARE_TICKS */
	size_t nr;			      /* so far */
	size_t held;			      /* since the factor was changed */
	double own_before; /* nhmtap's own share when the factor was raised for it alone; 0: it was not */
};

struct share_control share_control_of(double allowed);

/* Takes a tick, and decides. Returns whether the factor is another one now. */
bool share_decide(struct share_control *control, const struct share_tick *tick);

/* Whether the share is exceeded by more than a fifth, over a window, and fewer samples would not help. */
bool share_exceeded(const struct share_control *control);

/* The share that a text asks for, "1%" or "0.5%", of one CPU: 0.01. 0: it is none, less than 0.01% or more
 * than 1000%. */
double share_of_text(const char *text);

#endif
