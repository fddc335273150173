// SPDX-License-Identifier: GPL-2.0-only
#include "event/branch_filter.h"

#include <errno.h>
#include <string.h>

#define SIDES (PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL)

/* perf-record(1), --branch-filter. Not here: "call", for which Nehalem's LBR_SELECT would leave out
 * every branch (nhm_lbr_sel_map, intel/lbr.c, has no entry), "stack" and what speaks of transactions,
 * which Nehalem has not. */
static const struct {
	const char *word;
	__u64 bits;
} words[] = {
	{"any", PERF_SAMPLE_BRANCH_ANY},           {"any_call", PERF_SAMPLE_BRANCH_ANY_CALL},
	{"any_ret", PERF_SAMPLE_BRANCH_ANY_RETURN}, {"ind_call", PERF_SAMPLE_BRANCH_IND_CALL},
	{"ind_jmp", PERF_SAMPLE_BRANCH_IND_JUMP},  {"cond", PERF_SAMPLE_BRANCH_COND},
	{"u", PERF_SAMPLE_BRANCH_USER},            {"k", PERF_SAMPLE_BRANCH_KERNEL},
};

static __u64 bits_of(const char *word, size_t length)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i].word) == length && !strncmp(words[i].word, word, length))
			return words[i].bits;
	return 0;
}

static int parse(const char *text, __u64 *type, struct refusal *refusal)
{
	*type = 0;
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");
		__u64 bits = bits_of(at, length);

		if (!bits) {
			refuse(refusal, STATUS_USAGE, "option --filter '%s'", text);
			because(refusal, "'%.*s' is no kind of branch and no side", (int)length, at);
			return instead(refusal, "any, any_call, any_ret, ind_call, ind_jmp, cond; u, k");
		}
		*type |= bits;
		at += length;
		if (!*at)
			break;
	}
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
	/* Without sides of its own the filter gets the event's. */
	return type & PERF_SAMPLE_BRANCH_ANY && (!(type & SIDES) || (type & SIDES) == sides);
}

int branch_filter_set(struct event *event, const char *text, struct refusal *refusal)
{
	__u64 type;

	if (parse(text, &type, refusal))
		return -1;
	if (event->attr.precise_ip > 1 && !agrees_with_precise(&event->attr, type)) {
		refuse(refusal, STATUS_USAGE, "event '%s' with --filter %s", event->name, text);
		refusal->error = EOPNOTSUPP;
		because(refusal, "precise_ip 2 needs the LBR for all branches on the event's own sides");
		according(refusal, "kernel, precise_br_compat()");
		return instead(refusal, "ask for --filter any, or for precise_ip 1 (one p)");
	}
	EVENT_SET(event, branch_sample_type, type, "--filter %s", text);
	EVENT_SET(event, sample_type, event->attr.sample_type | PERF_SAMPLE_BRANCH_STACK,
		  "the LBR's branches come with each sample");
	return 0;
}
