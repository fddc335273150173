// SPDX-License-Identifier: GPL-2.0-only
#include "facility/summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "facility/facility.h"
#include "output/member.h"
#include "record/type.h"

/* --- how large a change is -------------------------------------------------------------------- */

/*
 * How large the change is that a remedy needs, in ascending order. If a remedy offers several changes, the
 * smallest counts. A remedy with none of these words needs no change of the machine: it is about nhmtap's own
 * options, or other programs.
 */
static const struct {
	const char *words;
	int size;
} changes[] = {
	{"sysctl ", 1}, /* settings that last until the next boot */
	{"modprobe ", 1},
	{"echo ", 1},
	{"ulimit ", 1},
	{"mount ", 1},
	{"run as ", 2}, /* the user, or how it is started */
	{"setcap ", 2},
	{"--cap-add", 2},
	{"seccomp", 2},
	{"boot ", 3},	      /* the boot parameters */
	{"QEMU", 4},	      /* the virtual machine's configuration */
	{"run a kernel ", 5}, /* another kernel */
	{"hardware", 6},      /* another machine */
	{"the host itself", 6},
	{"a CPU of ", 6},
	{"power supply", 6},
};

static int size_of_change(const char *remedy)
{
	static const char *const otherwise[] = {"use ", "leave out ", "count ", "end ", "see ", "take "};
	int size = 0;

	for (size_t i = 0; i < ARRAY_SIZE(otherwise); i++)
		if (!strncmp(remedy, otherwise[i], strlen(otherwise[i])))
			return 0;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		if (strstr(remedy, changes[i].words) && (!size || changes[i].size < size))
			size = changes[i].size;
	return size;
}

/* --- lists ------------------------------------------------------------------------------------ */

static const char *name_of(const json_t *finding)
{
	const char *name = string(finding, "name");

	return *name ? name : string(finding, "type");
}

/* The element of the list whose `member` is this text. If there is none, it is appended. */
static json_t *element_of(json_t *list, const char *member, const char *text, const char *names)
{
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
		if (!strcmp(string(one, member), text))
			return one;
	one = json_pack("{s:s, s:[]}", member, text, names);
	json_array_append_new(list, one);
	return one;
}

static void add_name(json_t *one, const char *names, const char *name)
{
	json_array_append_new(json_object_get(one, names), json_string(name));
}

static void add_reason(json_t *reasons, json_t *remedies, const json_t *finding)
{
	const char *name = name_of(finding), *why = string(finding, "why"), *remedy;
	const struct facility *facility = facility_find(name, strlen(name));
	json_t *reason = element_of(reasons, "why", why, "stops");

	add_name(reason, "stops", name);
	json_object_set_new(reason, "possible", json_boolean(!facility || !facility->never));
	remedy = string(finding, "remedy");
	if (*remedy)
		add_name(element_of(remedies, "remedy", remedy, "mends"), "mends", name);
}

/* --- order ------------------------------------------------------------------------------------ */

struct ranked {
	json_t *element;
	int rank;
	size_t place; /* position before sorting, so that equal elements keep their order */
};

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->place < y->place ? -1 : 1;
}

static int rank_of_reason(const json_t *reason)
{
	return -(int)json_array_size(json_object_get(reason, "stops"));
}

static int rank_of_remedy(const json_t *remedy)
{
	return size_of_change(string(remedy, "remedy"));
}

static void sort_by_rank(json_t *list, int (*rank)(const json_t *element))
{
	size_t nr = json_array_size(list);
	struct ranked ranked[nr + 1];

	for (size_t i = 0; i < nr; i++) {
		json_t *one = json_incref(json_array_get(list, i));

		ranked[i] = (struct ranked){one, rank(one), i};
	}
	qsort(ranked, nr, sizeof(ranked[0]), by_rank);
	json_array_clear(list);
	for (size_t i = 0; i < nr; i++)
		json_array_append_new(list, ranked[i].element);
}

/* --- the record ------------------------------------------------------------------------------- */

json_t *diagnosis_record(const json_t *findings)
{
	json_t *works = json_array(), *reasons = json_array(), *remedies = json_array(), *finding;
	size_t i;

	json_array_foreach(findings, i, finding) {
		if (json_is_true(json_object_get(finding, "works")))
			json_array_append_new(works, json_string(name_of(finding)));
		else if (json_object_get(finding, "why"))
			add_reason(reasons, remedies, finding);
	}
	sort_by_rank(reasons, rank_of_reason);
	sort_by_rank(remedies, rank_of_remedy);
	return json_pack("{s:s, s:o, s:o, s:o}", "type", "diagnosis", "works", works, "reasons", reasons,
			 "remedies", remedies);
}

static const struct record_type diagnosis = {
	.name = "diagnosis",
	.list = "reasons",
};
REGISTER_RECORD(diagnosis);
