/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Merges entries as a reading of tables does. Its input has lines of a word and numbers:
 *
 *   + KIND STACK ADDRESS SOURCE PID SAMPLES PERIOD MAXIMUM   an entry; STACK: see number_of()
 *   keep MOST          keep this many keys; the others are shed, and summed up apart
 *   sums, apart        print what there is: of each key its members, of its stack the frame, and its values
 *   clear              forget all
 *   pair FROM TO WHICH, pairs, forget   counts of pairs of addresses
 *   without KIND STACK ADDRESS SOURCE   begin anew; keys have none of what is 1
 *   stack STACK SAMPLES, stacks         what became of samples' stacks
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/pairs.h"
#include "aggregation/remainder.h"
#include "aggregation/sums.h"

struct key {
	__u32 kind, stack;
	__u64 address, source, pid;
};

struct value {
	__u64 samples, period, maximum;
};

#define KEY(member, typedef_name)                                                                            \
	{                                                                                                    \
		.name = #member, .type = typedef_name, .offset = offsetof(struct key, member),               \
		.size = sizeof(((struct key *)0)->member)                                                    \
	}
#define VALUE(member, largest)                                                                               \
	{                                                                                                    \
		.name = #member, .type = "", .offset = offsetof(struct value, member), .size = 8,            \
		.maximum = largest                                                                           \
	}

static struct member keys[] = {
	KEY(kind, "entry_kind_t"),    KEY(stack, "stack_id_t"), KEY(address, "address_t"),
	KEY(source, "data_source_t"), KEY(pid, "pid_t"),
};
static struct member values[] = {VALUE(samples, false), VALUE(period, false), VALUE(maximum, true)};
static struct layout layout = {.keys = keys,
			       .values = values,
			       .nr_keys = 5,
			       .nr_values = 3,
			       .key_size = sizeof(struct key),
			       .value_size = sizeof(struct value)};

static struct sums sums;
static struct remainder apart;

/* Of layout.c, whose other functions need BTF. */
const struct member *layout_key_of_type(const struct layout *of, const char *type)
{
	for (size_t i = 0; i < of->nr_keys; i++)
		if (!strcmp(of->keys[i].type, type))
			return &of->keys[i];
	return NULL;
}

/* A stack by what it is called here: 0, 1 and 2 as in enum stack_id; others have two frames of the user, the
 * outer one STACK itself. STACK mod 10: its end; the tens: how its frames were guessed; from 1000 on, the
 * outer one is marked as guessed; from 2000 on, there are more frames than were asked for. */
static __u32 number_of(__u64 called)
{
	struct {
		struct stored_stack stored;
		__u64 frames[4];
	} stack = {.stored = {.hash = called, .user_frames = called >= 2000 ? 4 : 2}};

	if (called < STACK_FIRST)
		return called;
	stack.stored.end = called % 10;
	stack.stored.guessed = called / 10 % 10;
	stack.frames[1] = called | (called >= 1000 ? FRAME_GUESSED : 0);
	return stacks_number(sums.stacks, &stack.stored);
}

static __u64 called(__u32 number)
{
	return number < STACK_FIRST ? number : FRAME_ADDRESS(stacks_at(sums.stacks, number).frames[1]);
}

static void print_sums(const struct sums *of, const __u64 *nr)
{
	for (size_t i = 0; i < of->keys.nr; i++) {
		const struct key *key = interned_at(&of->keys, i);
		const struct value *value = (const void *)sums_at(of, i);

		printf("%u,%llu,%llu,%llu,%llu,%llu,%llu,%llu", key->kind,
		       of->stacks ? called(key->stack) : key->stack, key->address, key->source, key->pid,
		       value->samples, value->period, value->maximum);
		printf(nr ? ",%llu " : " ", nr ? nr[i] : 0);
	}
	printf("\n");
}

static void shed(void *context, const void *key, const __u64 *of)
{
	remainder_add(context, key, of);
}

static struct pairs pairs;
static struct stack_account account;

static void print_pairs(void)
{
	for (size_t i = 0; i < pairs.nr_slots; i++) {
		const struct pair *pair = &pairs.slots[i];

		if (pair->counts[0] | pair->counts[1])
			printf("%llu,%llu,%llu,%llu ", pair->from, pair->to, pair->counts[0],
			       pair->counts[1]);
	}
	printf("%zu\n", pairs.nr);
}

static void print_account(void)
{
	struct stack_account twice = account;

	stack_account_join(&twice, &account);
	printf("%llu %llu %llu %llu", twice.delivered, twice.failed, twice.table_full, twice.guessed);
	for (int end = 0; end <= STACK_UNREADABLE; end++)
		printf(" %llu", twice.ends[end]);
	printf("\n");
}

static void step(const char *word, const __u64 *n)
{
	struct key key = {n[0], 0, n[2], n[3], n[4]};

	if (!strcmp(word, "+")) {
		key.stack = number_of(n[1]);
		sums_add(&sums, &key, n + 5);
	} else if (!strcmp(word, "keep")) {
		sums_shed(&sums, n[0], shed, &apart);
	} else if (!strcmp(word, "sums")) {
		print_sums(&sums, NULL);
	} else if (!strcmp(word, "apart")) {
		print_sums(&apart.sums, apart.keys);
	} else if (!strcmp(word, "clear")) {
		sums_clear(&sums);
		remainder_clear(&apart);
	} else if (!strcmp(word, "pair")) {
		pairs_add(&pairs, n[0], n[1], n[2]);
	} else if (!strcmp(word, "pairs")) {
		print_pairs();
	} else if (!strcmp(word, "forget")) {
		pairs_clear(&pairs);
	} else if (!strcmp(word, "stack")) {
		stack_account_add(&account, sums.stacks, number_of(n[0]), n[1]);
	} else if (!strcmp(word, "stacks")) {
		print_account();
	}
}

static void begin(unsigned int frames)
{
	sums_init(&sums, &layout, frames);
	remainder_init(&apart, &layout);
}

static void end(void)
{
	remainder_release(&apart);
	sums_release(&sums);
}

int main(void)
{
	char line[300], word[20];

	begin(4);
	while (fgets(line, sizeof(line), stdin)) {
		__u64 n[8] = {0};

		sscanf(line, "%19s %llu %llu %llu %llu %llu %llu %llu %llu", word, &n[0], &n[1], &n[2], &n[3],
		       &n[4], &n[5], &n[6], &n[7]);
		if (strcmp(word, "without")) {
			step(word, n);
			continue;
		}
		end();
		for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
			keys[i].type = n[i] ? "" : keys[i].type;
		begin(n[1] ? 0 : 4);
	}
	end();
	free(pairs.slots);
	return 0;
}
