// SPDX-License-Identifier: GPL-2.0-only
#include "event/branch_filter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SIDES (PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL)

/* perf-record(1), --branch-filter, and what keeps the other branches out: nhm_lbr_sel_map and
 * intel_pmu_lbr_filter(), intel/lbr.c. */
static const struct {
	const char *word;
	__u64 bits;
	const char *how; /* NULL: the CPU alone, by LBR_SELECT */
} words[] = {
	{"any", PERF_SAMPLE_BRANCH_ANY, NULL},
	{"any_call", PERF_SAMPLE_BRANCH_ANY_CALL,
	 "an erratum makes jumps come with calls; the kernel drops them"},
	{"any_ret", PERF_SAMPLE_BRANCH_ANY_RETURN,
	 "an erratum makes jumps come with returns; the kernel drops them"},
	{"ind_call", PERF_SAMPLE_BRANCH_IND_CALL,
	 "an erratum makes indirect jumps come too; the kernel drops them"},
	{"ind_jmp", PERF_SAMPLE_BRANCH_IND_JUMP, NULL},
	{"cond", PERF_SAMPLE_BRANCH_COND, NULL},
	{"u", PERF_SAMPLE_BRANCH_USER, NULL},
	{"k", PERF_SAMPLE_BRANCH_KERNEL, NULL},
};

/* What perf has and Nehalem has not. */
static const struct {
	const char *word;
	const char *why, *source, *remedy;
} absent[] = {
	{"call", "the kernel has no value of LBR_SELECT for it on this CPU and would let no branch through: "
	 "it opens, and every stack is empty", "kernel, nhm_lbr_sel_map",
	 "any_call has these calls and the indirect ones, ind_call the indirect ones alone"},
	{"abort_tx", "the CPU has no transactions; the kernel would let no branch through, and every stack "
	 "would be empty", "kernel, nhm_lbr_sel_map", "leave it out"},
	{"stack", "the CPU's record is no call stack: returns take nothing off it (EOPNOTSUPP)",
	 "kernel, intel_pmu_setup_sw_lbr_filter()", "any_call shows who calls whom"},
};

static __u64 bits_of(const char *word, size_t length)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i].word) == length && !strncmp(words[i].word, word, length))
			return words[i].bits;
	return 0;
}

static int refuse_word(const char *text, const char *word, size_t length, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "option --filter '%s'", text);
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		if (strlen(absent[i].word) != length || strncmp(absent[i].word, word, length))
			continue;
		because(refusal, "%s", absent[i].why);
		according(refusal, "%s", absent[i].source);
		return instead(refusal, "%s", absent[i].remedy);
	}
	because(refusal, "'%.*s' is no kind of branch and no side", (int)length, word);
	return instead(refusal, "kinds: any, any_call, any_ret, ind_call, ind_jmp, cond; sides: u, k");
}

/* Where all kinds are recorded, none comes by mistake. */
static const char *how(__u64 type)
{
	for (size_t i = 0; !(type & PERF_SAMPLE_BRANCH_ANY) && i < sizeof(words) / sizeof(words[0]); i++)
		if (type & words[i].bits && words[i].how)
			return words[i].how;
	return NULL;
}

static int parse_words(const char *text, __u64 *type, struct refusal *refusal)
{
	*type = 0;
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");
		__u64 bits = bits_of(at, length);

		if (!bits)
			return refuse_word(text, at, length, refusal);
		*type |= bits;
		at += length;
		if (!*at)
			return 0;
	}
}

static int parse(const char *text, __u64 *type, struct refusal *refusal)
{
	if (parse_words(text, type, refusal))
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
	EVENT_SET(event, branch_sample_type, type, "--filter %s%s%s", text, how(type) ? ": " : "",
		  how(type) ? how(type) : "");
	EVENT_SET(event, sample_type, event->attr.sample_type | PERF_SAMPLE_BRANCH_STACK,
		  "the LBR's branches come with each sample");
	return 0;
}

int branch_filter_sides(const char *text, char sides[4], struct refusal *refusal)
{
	__u64 type = 0;

	if (text && parse_words(text, &type, refusal))
		return -1;
	snprintf(sides, 4, "%s%s", type & PERF_SAMPLE_BRANCH_USER ? "u" : "",
		 type & PERF_SAMPLE_BRANCH_KERNEL ? "k" : "");
	if (!(type & ~(__u64)(SIDES | PERF_SAMPLE_BRANCH_ANY)))
		return 0;
	refuse(refusal, STATUS_USAGE, "option --filter '%s' with --trace", text);
	because(refusal, "the branch trace store knows sides, but no kinds of branches: it writes them all");
	according(refusal, "guide, IA32_DEBUGCTL: BTS_OFF_OS, BTS_OFF_USR");
	return instead(refusal, "choose among the records; or sample with the LBR: leave out --trace");
}
