// SPDX-License-Identifier: GPL-2.0-only
#include "session/share_control.h"

#include <stdlib.h>
#include <string.h>

/* Fractions of what is allowed. GOAL: the cost that periods are set for. ROOM: below it, periods are lowered
 * again. LEAST: what samples may always cost, even if nhmtap itself takes nearly everything. */
#define GOAL  0.85
#define ROOM  0.7
#define LEAST 0.1

#define SAMPLES_NS  1000000000ULL /* time over which the samples' cost is averaged, at most */
#define RAISE_LEAST 1.1
#define LOWER_MOST  2.0
#define HELPED	    0.8
#define EXCEEDED    1.2

#define SHARE_LEAST 0.0001
#define SHARE_MOST  10

struct share_control share_control_of(double allowed)
{
	return (struct share_control){
		.allowed = allowed, .window_ns = SAMPLES_NS, .most = 1, .factor = 1, .because = SHARE_ASKED};
}

/* Sums up the last ticks: at most `ticks`, until they cover `ns`. */
static struct share_tick sum_of(const struct share_control *control, size_t ticks, __u64 ns)
{
	struct share_tick sum = {0};

	if (ticks > control->nr)
		ticks = control->nr;
	if (ticks > SHARE_TICKS)
		ticks = SHARE_TICKS;
	for (size_t i = 1; i <= ticks && sum.ns < ns; i++) {
		const struct share_tick *tick = &control->ticks[(control->nr - i) % SHARE_TICKS];

		sum.ns += tick->ns;
		sum.own_ns += tick->own_ns;
		sum.samples_ns += tick->samples_ns;
	}
	return sum;
}

/* nhmtap's own share over a window. Time is counted as a whole window even before that has passed, so that
 * the burst at the beginning is not taken for the usual cost. */
static double own_share(const struct share_control *control)
{
	struct share_tick sum = sum_of(control, SHARE_TICKS, control->window_ns);

	return (double)sum.own_ns / (sum.ns > control->window_ns ? sum.ns : control->window_ns);
}

/* The samples' share since the factor was last changed. */
static double samples_share(const struct share_control *control)
{
	struct share_tick sum = sum_of(control, control->held, SAMPLES_NS);

	return sum.ns ? (double)sum.samples_ns / sum.ns : 0;
}

static bool held_for_window(const struct share_control *control)
{
	return sum_of(control, control->held, control->window_ns).ns >= control->window_ns ||
	       control->held >= SHARE_TICKS;
}

/* nhmtap's own cost alone is too high. Fewer samples make fewer entries, which may lower it: this is tried as
 * long as it helps. */
static double raised_for_own(struct share_control *control, double own)
{
	if (!held_for_window(control) || (control->own_before > 0 && own > HELPED * control->own_before))
		return control->factor;
	control->own_before = own;
	return control->factor * 2;
}

static double decided(struct share_control *control)
{
	double own = own_share(control), samples = samples_share(control);
	double left = control->allowed * GOAL - own, least = control->allowed * LEAST;
	double fits = control->factor * samples / (left > least ? left : least);

	if (own + samples > control->allowed) {
		if (fits > control->factor)
			return fits > control->factor * RAISE_LEAST ? fits : control->factor * RAISE_LEAST;
		return raised_for_own(control, own);
	}
	if (own + samples >= control->allowed * ROOM || !held_for_window(control))
		return control->factor;
	control->own_before = 0;
	return fits > control->factor / LOWER_MOST ? fits : control->factor / LOWER_MOST;
}

bool share_decide(struct share_control *control, const struct share_tick *tick)
{
	double factor;

	control->ticks[control->nr++ % SHARE_TICKS] = *tick;
	control->held++;
	factor = decided(control);
	factor = factor < 1 ? 1 : factor > control->most ? control->most : factor;
	if (factor == control->factor)
		return false;
	control->because = factor == 1 ? SHARE_ASKED : factor > control->factor ? SHARE_TOO_DEAR : SHARE_ROOM;
	control->factor = factor;
	control->held = 0;
	return true;
}

bool share_exceeded(const struct share_control *control)
{
	double samples = samples_share(control);
	bool helpless = control->factor >= control->most || samples <= control->allowed * LEAST;

	return helpless && held_for_window(control) &&
	       own_share(control) + samples > control->allowed * EXCEEDED;
}

double share_of_text(const char *text)
{
	double share;
	char *end;

	/* Only digits and dots before the last byte: strtod(3) would also accept "nan", " 1" or "0x1". */
	if (strspn(text, "0123456789.") + 1 != strlen(text))
		return 0;
	share = strtod(text, &end) / 100;
	return !strcmp(end, "%") && share >= SHARE_LEAST && share <= SHARE_MOST ? share : 0;
}
