// SPDX-License-Identifier: GPL-2.0-only
#include "event/branch_filter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/alternatives.h"
#include "base/list.h"

#define SIDES (PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL)

/* perf-record(1), --branch-filter. */
static const struct {
	const char *word;
	__u64 bits;
} words[] = {
	{"any", PERF_SAMPLE_BRANCH_ANY},
	{"any_call", PERF_SAMPLE_BRANCH_ANY_CALL},
	{"any_ret", PERF_SAMPLE_BRANCH_ANY_RETURN},
	{"ind_call", PERF_SAMPLE_BRANCH_IND_CALL},
	{"ind_jmp", PERF_SAMPLE_BRANCH_IND_JUMP},
	{"cond", PERF_SAMPLE_BRANCH_COND},
	{"call", PERF_SAMPLE_BRANCH_CALL},
	{"abort_tx", PERF_SAMPLE_BRANCH_ABORT_TX},
	{"in_tx", PERF_SAMPLE_BRANCH_IN_TX},
	{"no_tx", PERF_SAMPLE_BRANCH_NO_TX},
	{"stack", PERF_SAMPLE_BRANCH_CALL_STACK},
	{"u", PERF_SAMPLE_BRANCH_USER},
	{"k", PERF_SAMPLE_BRANCH_KERNEL},
};

static __u64 bits_of(const char *word, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i].word) == length && !strncmp(words[i].word, word, length))
			return words[i].bits;
	return 0;
}

__u64 branch_kind_bits(const char *word)
{
	return bits_of(word, strlen(word));
}

/* What the CPU's table says about a kind; NULL if it says nothing. */
static const struct known_branch_kind *kind_of(const struct cpu_events *cpu, const char *word, size_t length)
{
	for (size_t i = 0; cpu && i < cpu->nr_branches; i++)
		if (strlen(cpu->branches[i].filter) == length &&
		    !strncmp(cpu->branches[i].filter, word, length))
			return &cpu->branches[i];
	return NULL;
}

/* Offers the kinds: any, any_call, …. Without a table, these are all kinds that perf has. */
static void offer_kinds(const struct cpu_events *cpu, struct alternatives *alternatives)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const struct known_branch_kind *kind = kind_of(cpu, words[i].word, strlen(words[i].word));

		if (!(words[i].bits & SIDES) && (!cpu || !cpu->nr_branches || (kind && kind->records)))
			alternatives_offer(alternatives, words[i].word);
	}
}

static int refuse_word(const struct cpu_events *cpu, const char *text, const char *word, size_t length,
		       struct refusal *refusal)
{
	const struct known_branch_kind *kind = kind_of(cpu, word, length);
	struct alternatives alternatives;

	refuse(refusal, STATUS_USAGE, "option --filter '%s'", text);
	if (kind) {
		because(refusal, "%s", kind->why);
		according(refusal, "%s", kind->source);
		return instead(refusal, "%s", kind->remedy);
	}
	alternatives_begin(&alternatives, word, length);
	offer_kinds(cpu, &alternatives);
	because(refusal, "'%.*s' is no kind of branch and no side", (int)length, word);
	return alternatives_end(&alternatives, refusal, "kinds: %s; sides: u, k", alternatives.all);
}

/* A note on branches that are recorded in addition to the selected kinds, or NULL. With "any" there are none:
 * all are selected. */
static const char *how(const struct cpu_events *cpu, __u64 type)
{
	for (size_t i = 0; cpu && !(type & PERF_SAMPLE_BRANCH_ANY) && i < cpu->nr_branches; i++)
		if (type & branch_kind_bits(cpu->branches[i].filter) && cpu->branches[i].note)
			return cpu->branches[i].note;
	return NULL;
}

static int parse_words(const struct cpu_events *cpu, const char *text, __u64 *type, struct refusal *refusal)
{
	size_t length;

	*type = 0;
	for (const char *at = NULL; (at = list_next(text, at, &length));) {
		const struct known_branch_kind *kind = kind_of(cpu, at, length);
		__u64 bits = bits_of(at, length);

		if (!bits || (kind && !kind->records))
			return refuse_word(cpu, text, at, length, refusal);
		*type |= bits;
	}
	return 0;
}

static int parse_filter(const struct cpu_events *cpu, const char *text, __u64 *type, struct refusal *refusal)
{
	if (parse_words(cpu, text, type, refusal))
		return -1;
	if (*type & ~(__u64)SIDES)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --filter '%s'", text);
	because(refusal, "it names sides, but no kind of branch");
	return instead(refusal, "for all of them: any,%s", text);
}

/* precise_br_compat(), arch/x86/events/core.c. */
static bool agrees_with_precise(const struct perf_event_attr *attr, __u64 type)
{
	__u64 sides = 0;

	if (!attr->exclude_user)
		sides |= PERF_SAMPLE_BRANCH_USER;
	if (!attr->exclude_kernel)
		sides |= PERF_SAMPLE_BRANCH_KERNEL;
	/* A filter without sides gets the event's. */
	return type & PERF_SAMPLE_BRANCH_ANY && (!(type & SIDES) || (type & SIDES) == sides);
}

int branch_filter_set(struct event *event, const char *text, const struct cpu_events *cpu,
		      struct refusal *refusal)
{
	__u64 type;

	if (parse_filter(cpu, text, &type, refusal))
		return -1;
	if (event->attr.precise_ip > 1 && !agrees_with_precise(&event->attr, type)) {
		refuse(refusal, STATUS_USAGE, "event '%s' with --filter %s", event->name, text);
		refusal->error = EOPNOTSUPP;
		because(refusal, "precise_ip 2 needs the LBR for all branches on the event's own sides");
		according(refusal, "kernel, precise_br_compat()");
		return instead(refusal, "ask for --filter any, or for precise_ip 1 (one p)");
	}
	EVENT_SET(event, branch_sample_type, type, "--filter %s%s%s", text, how(cpu, type) ? ": " : "",
		  how(cpu, type) ? how(cpu, type) : "");
	EVENT_SET(event, sample_type, event->attr.sample_type | PERF_SAMPLE_BRANCH_STACK,
		  "the LBR's branches come with each sample");
	return 0;
}

int branch_filter_sides(const char *text, char sides[4], struct refusal *refusal)
{
	__u64 type = 0;

	if (text && parse_words(NULL, text, &type, refusal))
		return -1;
	snprintf(sides, 4, "%s%s", type & PERF_SAMPLE_BRANCH_USER ? "u" : "",
		 type & PERF_SAMPLE_BRANCH_KERNEL ? "k" : "");
	if (!(type & ~(__u64)(SIDES | PERF_SAMPLE_BRANCH_ANY)))
		return 0;
	refuse(refusal, STATUS_USAGE, "option --filter '%s' with --trace", text);
	because(refusal, "the branch trace store knows sides, but no kinds of branches: it writes them all");
	according(refusal, "sdm, IA32_DEBUGCTL: BTS_OFF_OS, BTS_OFF_USR");
	return instead(refusal, "choose among the records; or sample with the LBR: leave out --trace");
}
