// SPDX-License-Identifier: GPL-2.0-only
/* Compares what follows from the program's code with what was measured. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "collection/self.h"
#include "output/member.h"
#include "selftest/tests.h"

static void add_words(char *text, size_t size, const char *words)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s", words);
}

/* --- counts ----------------------------------------------------------------------------------- */

/* The record of the i-th event; NULL if there is none. Names in tables don't contain the modifier. */
static const json_t *count_record(const struct test_run *run, size_t i)
{
	const json_t *record;
	size_t r;

	json_array_foreach(run->records, r, record)
		if (!strcmp(string(record, "type"), "count") &&
		    !strncmp(string(record, "event"), run->names[i], strlen(run->names[i])))
			return record;
	return NULL;
}

/* Gives the value of the i-th event, and adds it to run->came. Returns whether the event was counted all the
 * time. Nothing can be said of counts that are estimates, since the CPU has too few counters or others hold
 * them. */
static bool counted_value(struct test_run *run, size_t i, __u64 *value)
{
	const json_t *record = count_record(run, i);
	const char *status = string(record, "status");
	char words[160];

	*value = integer(record, "value");
	snprintf(words, sizeof(words), "%s%s %llu (%s)", *run->came ? "; " : "", run->names[i], *value,
		 status);
	add_words(run->came, sizeof(run->came), words);
	if (!strcmp(status, "multiplexed"))
		run->why =
			"its events took turns, because there are not enough free counters for all of them";
	return !strcmp(status, "counted");
}

static bool two_values(struct test_run *run, __u64 *first, __u64 *second)
{
	bool all = counted_value(run, 0, first);

	return counted_value(run, 1, second) && all;
}

static bool three_values(struct test_run *run, __u64 *first, __u64 *second, __u64 *third)
{
	bool all = two_values(run, first, second);

	return counted_value(run, 2, third) && all;
}

bool judge_counts(struct test_run *run)
{
	bool right = true;

	for (size_t i = 0; i < EVENTS && run->test->counted[i].names; i++) {
		const struct counted *counted = &run->test->counted[i];
		char words[160];
		__u64 value;

		snprintf(words, sizeof(words), "%s%s %llu to %llu", i ? "; " : "", run->names[i],
			 counted->least, counted->most);
		add_words(run->expected, sizeof(run->expected), words);
		right = counted_value(run, i, &value) && value >= counted->least && value <= counted->most &&
			right;
	}
	return right;
}

/* The events are cycles, and cycles in which instructions retire. A core retires at most 16 instructions per
 * cycle, and the loop takes less than 16 cycles per instruction. */
bool judge_masks(struct test_run *run)
{
	__u64 cycles, retiring;
	bool all = two_values(run, &cycles, &retiring);

	snprintf(run->expected, sizeof(run->expected),
		 "%d cycles at most, and %d to %d of them with instructions that retire", 16 * INSTRUCTIONS,
		 INSTRUCTIONS / 16, INSTRUCTIONS);
	return all && cycles <= 16 * INSTRUCTIONS && retiring >= INSTRUCTIONS / 16 &&
	       retiring <= INSTRUCTIONS + INSTRUCTIONS / TOLERANCE && retiring <= cycles;
}

/* The events are cycles in which nothing retires, and the number of runs of cycles in which instructions
 * retire. Between two runs there is at least one cycle in which nothing retires. */
bool judge_beginnings(struct test_run *run)
{
	__u64 idle, begun;
	bool all = two_values(run, &idle, &begun);

	snprintf(run->expected, sizeof(run->expected),
		 "not more runs of cycles with instructions that retire than there are cycles between them");
	return all && begun && begun <= idle + INSTRUCTIONS / TOLERANCE;
}

/* The events are: cycles; cycles without issue; and those of the latter for which the back end is the cause.
 * Each load depends on the previous one. */
bool judge_stalls(struct test_run *run)
{
	__u64 cycles, idle, back_end;
	bool all = three_values(run, &cycles, &idle, &back_end);

	snprintf(run->expected, sizeof(run->expected),
		 "no issue in half of the cycles at least, and half of that for want of room");
	return all && idle <= cycles && 2 * idle >= cycles && back_end <= cycles && 2 * back_end >= idle;
}

#define OWN_TURNS 5000000

/* The loop has two instructions per turn and takes some milliseconds. Interrupts are counted too if nhmtap is
 * allowed to count the kernel. */
bool judge_own_reading(struct test_run *run)
{
	struct self *self = self_begin();
	__u64 before, after, turns = OWN_TURNS;

	if (!self || !self_instructions(self, &before)) {
		self_end(self);
		run->why = "nhmtap has no counter for itself all the time";
		return false;
	}
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
	if (!self_instructions(self, &after))
		after = before;
	self_end(self);
	snprintf(run->expected, sizeof(run->expected), "%d to %d instructions", 2 * OWN_TURNS, 3 * OWN_TURNS);
	snprintf(run->came, sizeof(run->came), "%llu", after - before);
	return after - before >= 2 * OWN_TURNS && after - before <= 3 * OWN_TURNS;
}

/* --- samples ---------------------------------------------------------------------------------- */

/* The number of samples, the number of those that are where they should be, and an example of one that is
 * not. */
struct shares {
	__u64 all, right;
	char example[100];
};

static void add_share(struct shares *shares, __u64 samples, bool right, const char *example)
{
	shares->all += samples;
	shares->right += right ? samples : 0;
	if (!right && !*shares->example)
		snprintf(shares->example, sizeof(shares->example), "%s", example);
}

/* Whether there are enough samples, and at least this percentage of them is right. */
static bool judge_shares(struct test_run *run, const struct shares *shares, __u64 least, int percent)
{
	snprintf(run->came, sizeof(run->came), "%llu of %llu%s%s", shares->right, shares->all,
		 *shares->example ? ", not so: " : "", shares->example);
	return shares->all >= least && shares->right * 100 >= shares->all * percent;
}

static void take_any(struct test_run *run, const json_t *entry, void *samples)
{
	*(__u64 *)samples += integer(entry, "samples");
}

#define PERIOD 9973 /* as in the row of selftest.c */

bool judge_period(struct test_run *run)
{
	const __u64 expected = INSTRUCTIONS / PERIOD;
	__u64 samples = 0;

	run_each_entry(run, "profile", take_any, &samples);
	snprintf(run->expected, sizeof(run->expected), "%llu samples, 2 of 100 more or less", expected);
	snprintf(run->came, sizeof(run->came), "%llu", samples);
	return samples * 100 >= expected * 98 && samples * 100 <= expected * 102;
}

static void lies(struct test_run *run, const json_t *entry, void *shares)
{
	const struct test_places *places = run->test->places;
	__u64 ip = hex_member(entry, "ip");
	bool right = false;

	for (size_t i = 0; i < ARRAY_SIZE(places->at) && places->at[i]; i++)
		right = right || ip == landmark_address(run->landmarks, places->at[i]);
	add_share(shares, integer(entry, "samples"), right, string(entry, "ip"));
}

bool judge_places(struct test_run *run)
{
	struct shares shares = {0};

	snprintf(run->expected, sizeof(run->expected), "99 of 100 samples, and 50 at least, lie at %s",
		 run->test->places->what);
	run_each_entry(run, "profile", lies, &shares);
	return judge_shares(run, &shares, 50, 99);
}

/* --- branches --------------------------------------------------------------------------------- */

#define EDGES_MOST 16

struct edges_seen {
	struct shares shares;
	__u64 counts[EDGES_MOST];
	__u64 foretold, missed; /* of edges that any predictor predicts: all, and the mispredicted */
};

static void along_edge(struct test_run *run, const json_t *entry, void *context)
{
	const struct edges *edges = run->test->edges;
	struct edges_seen *seen = context;
	const json_t *from = json_object_get(entry, "from"), *to = json_object_get(entry, "to");
	__u64 count = integer(entry, "count");
	char example[100];
	bool right = false;

	if (strcmp(string(entry, "kind"), "edge"))
		return;
	for (size_t i = 0; i < edges->nr; i++) {
		if (hex_member(from, "offset") != landmark_offset(run->landmarks, edges->list[i].from) ||
		    hex_member(to, "offset") != landmark_offset(run->landmarks, edges->list[i].to))
			continue;
		right = true;
		seen->counts[i] += count;
		seen->foretold += edges->list[i].foretold ? count : 0;
		seen->missed += edges->list[i].foretold ? integer(entry, "mispredicted") : 0;
	}
	snprintf(example, sizeof(example), "%.40s to %.40s", string(from, "offset"), string(to, "offset"));
	add_share(&seen->shares, count, right, example);
}

static bool see_edges(struct test_run *run, struct edges_seen *seen)
{
	const struct edges *edges = run->test->edges;
	char words[80];
	bool all = true;

	snprintf(run->expected, sizeof(run->expected),
		 "%s; %d of 100 that are recorded are these, and of those that are always the same not one "
		 "in 100 is mispredicted",
		 edges->what, run->test->percent);
	run_each_entry(run, "branch", along_edge, seen);
	for (size_t i = 0; i < edges->nr; i++)
		all = all && seen->counts[i];
	all = judge_shares(run, &seen->shares, 1000, run->test->percent) && all;
	snprintf(words, sizeof(words), "; %llu mispredicted of %llu", seen->missed, seen->foretold);
	add_words(run->came, sizeof(run->came), words);
	return all && seen->missed * 100 <= seen->foretold;
}

bool judge_edges(struct test_run *run)
{
	struct edges_seen seen = {0};

	return see_edges(run, &seen);
}

/* The last edge is taken once per turn. A few branches are lost between two buffers. */
bool judge_trace(struct test_run *run)
{
	struct edges_seen seen = {0};
	bool right = see_edges(run, &seen);
	__u64 turns = seen.counts[run->test->edges->nr - 1];
	char words[80];

	snprintf(words, sizeof(words), "; %d turns, or one in 1000 less", CHANCES - 1);
	add_words(run->expected, sizeof(run->expected), words);
	snprintf(words, sizeof(words), "; %llu turns", turns);
	add_words(run->came, sizeof(run->came), words);
	return right && turns <= CHANCES - 1 && turns >= CHANCES - 1 - CHANCES / 1000;
}

/* A third of the loop's branches are returns. If others were removed only after recording, a record would be
 * a third full. */
bool judge_filter(struct test_run *run)
{
	const json_t *depths = json_object_get(json_object_get(run_record(run, "branch"), "stacks"),
					       "by_depth"),
		     *nr;
	size_t depth, deepest = json_array_size(depths) ? json_array_size(depths) - 1 : 0;
	__u64 samples = 0, branches = 0;

	json_array_foreach(depths, depth, nr) {
		samples += json_integer_value(nr);
		branches += depth * json_integer_value(nr);
	}
	snprintf(run->expected, sizeof(run->expected),
		 "records that are filled with returns by half at least, of 300 samples at least");
	snprintf(run->came, sizeof(run->came), "%llu branches in %llu records of %zu", branches, samples,
		 deepest);
	return samples >= 300 && 2 * branches >= deepest * samples;
}

/* --- memory ----------------------------------------------------------------------------------- */

static bool is_level(const struct level *level, __u64 data_src)
{
	unsigned int bits = data_src >> PERF_MEM_LVL_SHIFT & 0x3fff,
		     number = data_src >> PERF_MEM_LVLNUM_SHIFT & 0xf,
		     snoop = data_src >> PERF_MEM_SNOOP_SHIFT & 0x1f;

	if (level->snoop && snoop != level->snoop)
		return false;
	return bits & ~(PERF_MEM_LVL_HIT | PERF_MEM_LVL_MISS | PERF_MEM_LVL_NA) ? (bits & level->bits)
										: number == level->number;
}

/* Whether the access is to the first `bytes` bytes of the program's buffer. */
static bool in_buffer(const struct test_run *run, const json_t *entry, __u64 bytes)
{
	__u64 buffer = landmark_address(run->landmarks, "buffer"), line = hex_member(entry, "cacheline");

	return line >= buffer && line < buffer + bytes;
}

static bool is_at(const struct test_run *run, const json_t *entry, const char *site)
{
	return hex_member(entry, "ip") == landmark_address(run->landmarks, site);
}

/* The kernel's value for an entry's source. */
static __u64 source_value(const struct test_run *run, const json_t *entry)
{
	const json_t *source;
	size_t i;

	json_array_foreach(json_object_get(run_record(run, "mem"), "sources"), i, source)
		if (!strcmp(string(source, "source"), string(entry, "source")))
			return hex_member(source, "data_src");
	return 0;
}

static void take_answered(struct test_run *run, const json_t *entry, void *shares)
{
	const struct level *level = run->test->level;
	char example[100];

	if (!is_at(run, entry, level->site))
		return;
	snprintf(example, sizeof(example), "%.60s at %.30s", string(entry, "source"),
		 string(entry, "cacheline"));
	add_share(shares, integer(entry, "samples"),
		  is_level(level, source_value(run, entry)) && in_buffer(run, entry, BUFFER_BYTES), example);
}

bool judge_level(struct test_run *run)
{
	struct shares shares = {0};

	snprintf(
		run->expected, sizeof(run->expected),
		"80 of 100 samples of the chain's load, and 20 at least, from the program's buffer and in %s",
		run->test->level->name);
	run_each_entry(run, "mem", take_answered, &shares);
	return judge_shares(run, &shares, 20, 80);
}

#define LATENCY 4 /* in cycles, as in the row of selftest.c */

/* If all samples took longer than LATENCY, their mean is at least one cycle longer. */
static void took(struct test_run *run, const json_t *entry, void *shares)
{
	__u64 samples = integer(entry, "samples");
	char example[100];

	snprintf(example, sizeof(example), "%llu samples took %lld cycles together", samples,
		 (long long)integer(entry, "latency_sum"));
	add_share(shares, samples, (__u64)integer(entry, "latency_sum") >= samples * (LATENCY + 1), example);
}

bool judge_threshold(struct test_run *run)
{
	struct shares shares = {0};

	snprintf(run->expected, sizeof(run->expected),
		 "samples, if any, of loads that took more than %d cycles", LATENCY);
	run_each_entry(run, "mem", took, &shares);
	return judge_shares(run, &shares, 0, 100);
}

static void walked(struct test_run *run, const json_t *entry, void *shares)
{
	char example[100];

	if (!is_at(run, entry, "load_site"))
		return;
	snprintf(example, sizeof(example), "TLB %.30s, lock %.30s", string(entry, "tlb"),
		 string(entry, "lock"));
	add_share(shares, integer(entry, "samples"),
		  !strcmp(string(entry, "tlb"), "stlb_miss") && strcmp(string(entry, "lock"), "locked"),
		  example);
}

bool judge_walked(struct test_run *run)
{
	struct shares shares = {0};

	snprintf(run->expected, sizeof(run->expected),
		 "80 of 100 samples of the chain's load, and 20 at least, missed the TLB and are not locked");
	run_each_entry(run, "mem", walked, &shares);
	return judge_shares(run, &shares, 20, 80);
}

static void stored(struct test_run *run, const json_t *entry, void *shares)
{
	const char *lock = string(entry, "lock");
	bool plain = is_at(run, entry, "store_site"), locked = is_at(run, entry, "lock_site");
	unsigned int level = source_value(run, entry) >> PERF_MEM_LVL_SHIFT & 0x3fff;
	char example[100];

	snprintf(example, sizeof(example), "%.30s to %.30s, %.20s, lock %.10s", string(entry, "ip"),
		 string(entry, "cacheline"), string(entry, "source"), lock);
	add_share(shares, integer(entry, "samples"),
		  in_buffer(run, entry, STORED_BYTES) && !(level & PERF_MEM_LVL_MISS) &&
			  ((plain && strcmp(lock, "locked")) || (locked && strcmp(lock, "none"))),
		  example);
}

/* The first store to each line may miss, and an interrupt may evict lines. */
bool judge_stores(struct test_run *run)
{
	struct shares shares = {0};

	snprintf(run->expected, sizeof(run->expected),
		 "95 of 100 samples of stores, and 300 at least, from the program's store or its locked "
		 "addition, told apart, to its buffer and in L1");
	run_each_entry(run, "mem", stored, &shares);
	return judge_shares(run, &shares, 300, 95);
}

/* --- off-core --------------------------------------------------------------------------------- */

/* What prefetchers have fetched is not requested again. So half of the requests are sufficient, if the other
 * responses together have less than a quarter of that. The sum of all responses is counted in another
 * execution, by the second register if there is one, and must be about the same. */
bool judge_responses(struct test_run *run)
{
	const json_t *cell;
	__u64 first = 0, others = 0, together = 0;
	bool all = false;
	size_t i;

	json_array_foreach(json_object_get(run_record(run, "offcore"), "cells"), i, cell) {
		const char *response = string(cell, "response");
		__u64 value = json_number_value(json_object_get(cell, "value"));
		char words[120];

		snprintf(words, sizeof(words), "%s%.60s %llu (%.20s)", i ? "; " : "", response, value,
			 string(cell, "status"));
		add_words(run->came, sizeof(run->came), words);
		if (strcmp(string(cell, "status"), "counted"))
			return false;
		if (!strcmp(response, "all")) {
			all = true;
			together = value;
		} else
			*(i > run->elsewhere ? &others : &first) += value;
	}
	snprintf(run->expected, sizeof(run->expected),
		 "%s %llu times at least and not four times as often, the others not a quarter of it, all as "
		 "often",
		 run->elsewhere ? "the first two responses" : "the first response", run->test->requests / 2);
	return 2 * first >= run->test->requests && first < 2 * run->test->requests && others * 4 < first &&
	       (!all || together * 10 >= first * 9);
}
