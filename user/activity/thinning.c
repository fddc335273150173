// SPDX-License-Identifier: GPL-2.0-only
#include "activity/thinning.h"

#define CALM_NS 1000000000ULL

void thinning_adapt(struct thinning *thinning, bool too_fast, __u64 now)
{
	if (!thinning->every || too_fast)
		thinning->calm_ns = now;
	thinning->every = thinning->every ?: 1;
	if (too_fast && thinning->every < THINNING_MOST)
		thinning->every *= 2;
	if (now - thinning->calm_ns < CALM_NS)
		return;
	thinning->calm_ns = now;
	thinning->every = thinning->every > 1 ? thinning->every / 2 : 1;
}

/* Marsaglia's xorshift: the same in every run. */
static __u64 next_random(__u64 *seed)
{
	*seed = *seed ?: 0x9e3779b97f4a7c15ULL;
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

unsigned int thinning_take(struct thinning *thinning, struct thinned_row *row)
{
	if (!thinning->on)
		return 1;
	if (row->taken == row->every)
		*row = (struct thinned_row){.every = thinning->every ?: 1};
	if (!row->taken)
		row->kept = next_random(&thinning->seed) % row->every;
	if (row->taken++ == row->kept)
		return row->every;
	thinning->left_out++;
	return 0;
}
