// SPDX-License-Identifier: GPL-2.0-only
#include "activity/thinning.h"

#define CALM_NS 1000000000ULL
/* Levels by which a queue has become fuller. */
#define FILLING (THINNING_LEVELS / 32)
/* A queue that is nearly full, and no less than before, for so long has a reader for which n is too small. */
#define FULL_LEVEL (THINNING_LEVELS * 7 / 8)
#define FULL_NS	   20000000ULL

static bool is_too_fast(const struct thinning *thinning, unsigned int level, __u64 now)
{
	if (level < THINNING_LEVELS / 2)
		return false;
	return level >= thinning->level + FILLING ||
	       (level >= FULL_LEVEL && level >= thinning->level && now - thinning->doubled_ns >= FULL_NS);
}

void thinning_adapt(struct thinning *thinning, bool behind, unsigned int level, __u64 now)
{
	bool filling = level >= THINNING_LEVELS / 2, too_fast = behind || is_too_fast(thinning, level, now);

	if (!thinning->every || behind || filling)
		thinning->calm_ns = now;
	thinning->level = too_fast ? level : filling ? thinning->level : 0;
	thinning->every = thinning->every ?: 1;
	if (too_fast && thinning->every < THINNING_MOST) {
		thinning->every *= 2;
		thinning->doubled_ns = now;
	}
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
