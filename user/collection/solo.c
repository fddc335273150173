// SPDX-License-Identifier: GPL-2.0-only
#include "collection/solo.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include "base/clock.h"
#include "base/memory.h"

/* Whether a group is counted by the core's counters, and gives them to others in turn. */
static bool gives_way(const struct event *leader)
{
	const struct perf_event_attr *attr = &leader->attr;

	return !leader->msr && !leader->cpus && !attr->pinned && !attr->sample_period && attr->disabled &&
	       (attr->type == PERF_TYPE_RAW || attr->type == PERF_TYPE_HARDWARE ||
		attr->type == PERF_TYPE_HW_CACHE);
}

void solo_begin(struct solo *solo, const struct plan *plan)
{
	const struct events *events = &plan->events;

	*solo = (struct solo){.alone = SOLO_NONE,
			      .random = clock_ns(CLOCK_MONOTONIC) ^ (__u64)getpid() << 32};
	solo->leaders = xcalloc(events->nr + 1, sizeof(*solo->leaders));
	for (size_t i = 0; i < events->nr; i++)
		if (event_leads(events, i) && gives_way(&events->list[i]))
			solo->leaders[solo->nr++] = i;
	if (solo->nr == 1)
		solo->nr = 0;
}

void solo_release(struct solo *solo)
{
	free(solo->leaders);
	free(solo->places);
	*solo = (struct solo){.alone = SOLO_NONE};
}

static struct solo_place *place_at(struct solo *solo, size_t place)
{
	while (solo->nr_places <= place) {
		*xappend(solo->places, solo->nr_places) = (struct solo_place){.alone = SOLO_NONE};
	}
	return &solo->places[place];
}

static size_t alone_at(const struct solo *solo, size_t place)
{
	return place < solo->nr_places ? solo->places[place].alone : SOLO_NONE;
}

static size_t leader_of(const struct plan *plan, size_t event)
{
	while (!event_leads(&plan->events, event))
		event--;
	return event;
}

bool solo_takes_turns(const struct solo *solo, const struct plan *plan, size_t event)
{
	size_t leader = leader_of(plan, event);

	for (size_t i = 0; i < solo->nr; i++)
		if (solo->leaders[i] == leader)
			return true;
	return false;
}

bool solo_silences(const struct solo *solo, const struct plan *plan, size_t event, size_t place)
{
	return solo_is_on(solo, place) && alone_at(solo, place) != leader_of(plan, event) &&
	       solo_takes_turns(solo, plan, event);
}

bool solo_is_on(const struct solo *solo, size_t place)
{
	return alone_at(solo, place) != SOLO_NONE;
}

size_t solo_clock(const struct solo *solo, size_t place)
{
	return solo_is_on(solo, place) ? solo->places[place].alone : 0;
}

void solo_forget(struct solo *solo, size_t place)
{
	if (place < solo->nr_places)
		solo->places[place].alone = SOLO_NONE;
}

/* A random number below `most` (Marsaglia's xorshift). */
static size_t tossed(struct solo *solo, size_t most)
{
	solo->random = solo->random ? solo->random : 1;
	solo->random ^= solo->random << 13;
	solo->random ^= solo->random >> 7;
	solo->random ^= solo->random << 17;
	return (solo->random >> 32) % most;
}

/* Chosen as from a pack of cards: before a group comes again, each of the others does. */
static size_t choose_group(struct solo *solo)
{
	size_t card, event;

	solo->left = solo->left ? solo->left : solo->nr;
	card = tossed(solo, solo->left--);
	event = solo->leaders[card];
	solo->leaders[card] = solo->leaders[solo->left];
	solo->leaders[solo->left] = event;
	return event;
}

void solo_choose(struct solo *solo, bool any)
{
	size_t most = solo->nr > 3 ? solo->nr / 2 : 1;

	any = any && solo->nr && solo->in_a_row < most;
	solo->rounds += !any;
	solo->in_a_row = any ? solo->in_a_row + 1 : 0;
	solo->alone = any ? choose_group(solo) : SOLO_NONE;
}

static void switch_one(int fd, unsigned long request)
{
	if (fd >= 0)
		ioctl(fd, request, 0);
}

void solo_switch(struct solo *solo, size_t place, const int *fds, __u64 now_ns)
{
	struct solo_place *here = place_at(solo, place);

	if (here->alone == solo->alone)
		return;
	for (size_t i = 0; i < solo->nr; i++)
		if (solo->alone != SOLO_NONE && solo->leaders[i] != solo->alone)
			switch_one(fds[solo->leaders[i]], PERF_EVENT_IOC_DISABLE);
	/* Only enabling makes the kernel choose anew who has the counters: ctx_resched(). */
	if (solo->alone != SOLO_NONE) {
		switch_one(fds[solo->alone], PERF_EVENT_IOC_DISABLE);
		switch_one(fds[solo->alone], PERF_EVENT_IOC_ENABLE);
	}
	for (size_t i = 0; i < solo->nr; i++)
		if (solo->alone == SOLO_NONE && solo->leaders[i] != here->alone)
			switch_one(fds[solo->leaders[i]], PERF_EVENT_IOC_ENABLE);
	*here = (struct solo_place){solo->alone, now_ns};
}

__u64 solo_missed_ns(struct solo *solo, size_t place, __u64 now_ns)
{
	struct solo_place *here = place_at(solo, place);
	__u64 missed = now_ns > here->since_ns ? now_ns - here->since_ns : 0;

	here->since_ns += missed;
	return missed;
}
