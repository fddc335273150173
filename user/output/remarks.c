// SPDX-License-Identifier: GPL-2.0-only
#include "output/remarks.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "output/member.h"
#include "output/rows.h"

#define TOLERATED_PERCENT	    1  /* of the expected samples, as for warnings of a run */
#define TOLERATED_UNSAMPLED_PERCENT 10 /* of the occurrences: a thread's last period is never full */
#define TOLERATED_STACKS_PERCENT    1  /* of those with frames */

/* Hands over a text, which is consumed. */
static void remark(remark_fn take, void *to, const char *title, char *text, bool serious)
{
	take(to, &(struct remark){title, text, serious});
	free(text);
}

/* Shares are of what samples stand for. */
static void remark_of_unsampled(const json_t *record, remark_fn take, void *to)
{
	const json_t *samples = json_object_get(record, "samples");
	json_int_t value = integer(record, "value"),
		   unsampled = integer(samples, "unsampled") - integer(samples, "unsampled_before");
	char lacking[40], all[40];

	if ((double)unsampled * 100 <= (double)value * TOLERATED_UNSAMPLED_PERCENT)
		return;
	remark(take, to, "unsampled",
	       xasprintf(
		       "no sample stands for %s of %s, which came after the last one of their thread or CPU; "
		       "-c 1 has them all",
		       row_grouped(unsampled, lacking, sizeof(lacking)),
		       row_grouped(value, all, sizeof(all))),
	       true);
}

/* Of branches these are call_stacks, and `stacks` is something else. */
static void remarks_of_stacks(const json_t *record, remark_fn take, void *to)
{
	static const char *const ends[][2] = {
		{"no_table", "in code without an unwind table"},
		{"no_row", "at an address without a row in its unwind table"},
		{"unreadable", "at memory that could not be read"},
		{"truncated", "at the limit of --max-stack"},
	};
	const json_t *branches = json_object_get(record, "call_stacks"),
		     *stacks = branches ? branches : json_object_get(record, "stacks");
	json_int_t delivered = integer(stacks, "delivered");
	char cut[40], all[40];

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		json_int_t nr = integer(stacks, ends[i][0]);

		if ((double)nr * 100 <= (double)delivered * TOLERATED_STACKS_PERCENT)
			continue;
		remark(take, to, "stacks",
		       xasprintf("stacks of %s of %s samples end %s, without the outer functions",
				 row_grouped(nr, cut, sizeof(cut)), row_grouped(delivered, all, sizeof(all)),
				 ends[i][1]),
		       true);
	}
}

void remarks_of_status(const json_t *record, remark_fn take, void *to)
{
	const char *status = string(record, "status"), *why = string(record, "why");
	const char *no_samples = string(record, "no_samples"), *no_entries = string(record, "no_entries");

	if (*status && strcmp(status, "counted"))
		remark(take, to, "status",
		       xasprintf("%s, %.1f%% of the time: %s", status,
				 row_share(integer(record, "running_ns"), integer(record, "enabled_ns")),
				 why),
		       true);
	else if (*why)
		remark(take, to, "at least", xasprintf("there was at least so much: %s", why), true);
	remark_of_unsampled(record, take, to);
	remarks_of_stacks(record, take, to);
	if (*no_samples)
		remark(take, to, "no samples", xasprintf("no samples: %s", no_samples), true);
	if (*no_entries)
		remark(take, to, "no entries", xasprintf("no entries: %s", no_entries), true);
}

/* Ticks on a side that was not asked for are no loss of those that were. */
static bool is_serious(const char *cause, json_int_t lost, json_int_t expected)
{
	return strcmp(cause, "excluded") && (double)lost * 100 > (double)expected * TOLERATED_PERCENT;
}

static void remarks_of_losses(const json_t *samples, remark_fn take, void *to)
{
	json_int_t expected = integer(samples, "expected");
	char lost[40], all[40];
	const char *cause;
	json_t *count;

	json_object_foreach(json_object_get(samples, "lost"), cause, count) {
		json_int_t nr = json_integer_value(count);

		if (!nr)
			continue;
		remark(take, to, "lost samples",
		       xasprintf("%s of %s expected samples are missing: %s",
				 row_grouped(nr, lost, sizeof(lost)), row_grouped(expected, all, sizeof(all)),
				 cause),
		       is_serious(cause, nr, expected));
	}
}

void remarks_of(const json_t *record, remark_fn take, void *to)
{
	const json_t *samples = json_object_get(record, "samples");
	char expected[40], uncertain[40];

	remarks_of_status(record, take, to);
	if (json_object_get(samples, "at_least") && !*string(record, "why"))
		remark(take, to, "at least",
		       xstrdup("there was at least so much: the event may occur several times at once, or "
			       "the kernel counts it wrongly"),
		       false);
	remarks_of_losses(samples, take, to);
	if (!integer(samples, "uncertainty"))
		return;
	row_grouped(integer(samples, "expected"), expected, sizeof(expected));
	row_grouped(integer(samples, "uncertainty"), uncertain, sizeof(uncertain));
	remark(take, to, "uncertainty",
	       xasprintf("%s samples were expected, which may be off by %s", expected, uncertain), false);
}

static void add_line(void *to, const struct remark *remark)
{
	text_add(to, "# %s\n", remark->text);
}

void lines_of_status(struct text *text, const json_t *record)
{
	remarks_of_status(record, add_line, text);
}

/* Commands that name the instruction where the processor samples an event some instructions late. */
static const char *const instead_of[][2] = {
	{"branch-misses", "nhmtap branch --by line --sort mispredicted names it"},
	{"cache-misses", "nhmtap mem --by line names loads that wait"},
	{"LLC-load-misses", "nhmtap mem --by line names loads that wait"},
	{"LLC-loads", "nhmtap mem --by line names loads that wait"},
};

static const char *instead_of_event(const char *event)
{
	size_t length = strcspn(event, ":");

	for (size_t i = 0; i < ARRAY_SIZE(instead_of); i++)
		if (!strncmp(event, instead_of[i][0], length) && !instead_of[i][0][length])
			return instead_of[i][1];
	return "with :pp it is that one, where nhmtap explain says that the event takes it";
}

/* Clocks and the kernel's own events come where they happen. */
static bool comes_late(const json_t *attr)
{
	json_int_t type = integer(attr, "type");

	return attr && !integer(attr, "precise_ip") &&
	       (type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE || type == PERF_TYPE_RAW);
}

void lines_of_lateness(struct text *text, const json_t *start)
{
	const json_t *by = json_object_get(start, "by");
	json_t *event;
	size_t i;

	/* Branch records name their branches, whatever brought them. */
	if (!strcmp(string(start, "command"), "branch"))
		return;
	if (!has_text(by, "line") && !has_text(by, "ip") && !json_object_get(start, "annotate"))
		return;
	json_array_foreach(json_object_get(start, "events"), i, event) {
		const char *name = string(event, "name");

		if (comes_late(json_object_get(event, "attr")))
			text_add(text,
				 "# %s: its samples are some instructions behind the one that counted; %s\n",
				 name, instead_of_event(name));
	}
}
