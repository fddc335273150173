// SPDX-License-Identifier: GPL-2.0-only
#include "session/cpu_share.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/note.h"
#include "record/overhead.h"

/* The largest factor: beyond it, samples are so rare that fewer would change nothing. */
#define FACTOR_MOST 65536

struct share_member {
	struct share_member *next;
	const struct sampled_part *part; /* NULL: it takes no samples */
	__u64 interval_ns;
};

struct cpu_share {
	struct loop *loop;
	struct source *source;
	struct share_control control;
	struct share_member *members;
	struct spent_so_far {
		__u64 own_ns, samples_ns;
	} spent, at_tick;
	__u64 own_before; /* this process's CPU time when the first member joined */
	__u64 tick;	  /* CLOCK_MONOTONIC */
	bool told;	  /* see cpu_share_exceeded() */
};

struct cpu_share *cpu_share_new(struct loop *loop, double allowed)
{
	struct cpu_share *share = xcalloc(1, sizeof(*share));

	share->loop = loop;
	share->control = share_control_of(allowed);
	return share;
}

static void read_spent(struct cpu_share *share)
{
	if (!share->source)
		return;
	share->spent.own_ns = own_cpu_ns() - share->own_before;
	for (struct share_member *member = share->members; member; member = member->next)
		if (member->part)
			share->spent.samples_ns += member->part->cost(member->part->context);
}

static void on_tick(void *context)
{
	struct cpu_share *share = context;
	__u64 now = clock_ns(CLOCK_MONOTONIC);
	struct share_tick tick = {.ns = now - share->tick};

	read_spent(share);
	tick.own_ns = share->spent.own_ns - share->at_tick.own_ns;
	tick.samples_ns = share->spent.samples_ns - share->at_tick.samples_ns;
	share->at_tick = share->spent;
	share->tick = now;
	if (!share_decide(&share->control, &tick))
		return;
	note("periods are %.3g times those asked for: in %.3f s nhmtap took %.3f ms, samples %.3f ms",
	     share->control.factor, tick.ns / 1e9, tick.own_ns / 1e6, tick.samples_ns / 1e6);
	for (struct share_member *member = share->members; member; member = member->next)
		if (member->part && member->part->hold)
			member->part->hold(member->part->context, share->control.factor);
}

/* Sets the window and the largest factor by the members. */
static void adapt(struct cpu_share *share)
{
	struct share_control *control = &share->control;

	control->window_ns = share_control_of(1).window_ns;
	control->most = 1;
	for (const struct share_member *member = share->members; member; member = member->next) {
		if (member->interval_ns > control->window_ns)
			control->window_ns = member->interval_ns;
		if (member->part && member->part->hold)
			control->most = FACTOR_MOST;
	}
	if (control->window_ns > SHARE_TICKS * SHARE_TICK_NS)
		control->window_ns = SHARE_TICKS * SHARE_TICK_NS;
}

struct share_member *cpu_share_join(struct cpu_share *share, const struct sampled_part *part,
				    __u64 interval_ns)
{
	struct share_member *member;

	if (!share)
		return NULL;
	if (!share->source) {
		share->tick = clock_ns(CLOCK_MONOTONIC);
		share->own_before = own_cpu_ns() - share->spent.own_ns;
		share->source = loop_every(share->loop, share->tick, SHARE_TICK_NS, on_tick, share);
	}
	member = xcalloc(1, sizeof(*member));
	*member = (struct share_member){share->members, part, interval_ns};
	share->members = member;
	adapt(share);
	if (part && part->hold && share->control.factor > 1)
		part->hold(part->context, share->control.factor);
	return member;
}

void cpu_share_leave(struct cpu_share *share, struct share_member **member)
{
	if (!*member)
		return;
	read_spent(share);
	for (struct share_member **at = &share->members; *at; at = &(*at)->next)
		if (*at == *member) {
			*at = (*member)->next;
			break;
		}
	free(*member);
	*member = NULL;
	adapt(share);
	if (!share->members)
		loop_remove(share->loop, &share->source);
}

__u64 cpu_share_spent(struct cpu_share *share)
{
	read_spent(share);
	return share->spent.own_ns + share->spent.samples_ns;
}

bool cpu_share_exceeded(struct cpu_share *share)
{
	if (share->told || !share_exceeded(&share->control))
		return false;
	share->told = true;
	return true;
}

const struct share_control *cpu_share_control(const struct cpu_share *share)
{
	return &share->control;
}

void cpu_share_release(struct cpu_share *share)
{
	if (!share)
		return;
	loop_remove(share->loop, &share->source);
	for (struct share_member *member = share->members, *next; member; member = next) {
		next = member->next;
		free(member);
	}
	free(share);
}
