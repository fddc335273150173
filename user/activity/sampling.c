// SPDX-License-Identifier: GPL-2.0-only
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "activity/doubt.h"
#include "activity/activity.h"
#include "activity/call_stacks.h"
#include "activity/missing.h"
#include "activity/pacing.h"
#include "activity/sampling.h"
#include "activity/silence.h"
#include "activity/streaming.h"
#include "activity/warning.h"
#include "activity/why.h"
#include "aggregation/aggregation.h"
#include "aggregation/wakes.h"
#include "annotate/annotation.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/note.h"
#include "host/kernel.h"
#include "host/processes.h"
#include "plan/unwind.h"
#include "plan/where.h"
#include "record/called.h"
#include "record/entry.h"
#include "record/fold.h"
#include "record/record.h"
#include "record/rows.h"
#include "record/samples.h"
#include "record/type.h"
#include "session/names.h"
#include "unwind/unwinding.h"

#define DEFAULT_TABLE_ENTRIES 20

/* The most keys that the events of all activities keep together, and the most entries of their records. A run
 * without --memory stays within 64 MiB by these. Entries with stacks take more. */
#define KEYS_MOST	   (1UL << 15)
#define HEAVY_KEYS_MOST	   (3UL << 12)
#define ENTRIES_MOST	   (3UL << 12)
#define HEAVY_ENTRIES_MOST (3UL << 10)
#define STACK_KEYS_MOST	   (1UL << 13)
#define STACK_ENTRIES_MOST (1UL << 12)

/* Memory for the paths and names of keys that were named early. */
#define NAMED_BYTES (6UL << 20)

/* The most keys of an event that are kept with --memory. */
#define MERGED_KEYS_MOST (1UL << 20)

/* Keys are named and summed up by their names before the end of an interval if half of those that fit are
 * there. Whether they are is looked at in this period. */
#define LOOK_AT_KEPT_NS 10000000000ULL

/* If tables fill faster than that, they are only emptied. */
#define FILLING_FAST_NS 5000000ULL

/* How long that may take: half the time since the last time, no longer than the tables took to fill to a
 * quarter, because they fill meanwhile, and at most this. */
#define NAMING_EARLY_NS 20000000ULL

/* The same if the reader says that it is due: see reader_on_due(). The files may have to be read first. */
#define NAMING_DUE_NS 200000000ULL

/* Of an event. */
struct sampled_event {
	struct count before;	       /* count at the last report */
	struct samples account;	       /* so far */
	const char *cause;	       /* missed_cause() */
	bool warned_loss, warned_keys; /* see warn_of_loss(), warn_of_keys() */
	bool filled;		       /* some samples brought something: see put_emptiness() */
	bool filling;		       /* its tables should be emptied */
	bool by_count;		       /* see struct samples_read */
	size_t left;		       /* keys that the last early naming left unnamed */
};

struct sampling_run {
	const struct sampling *sampling;
	size_t nr;			   /* events */
	struct aggregation **aggregations; /* per event, since with inherit only the program tells them apart;
					      NULL for an event without samples */
	struct sampled_event *events;	   /* per event of the plan */
	struct streaming *stream;	   /* NULL: none was asked for */
	struct annotator *annotator;	   /* NULL: nothing was annotated yet */
	void **gathered;		   /* per event: entries named early; NULL: none */
	__u64 named_ns, drained_ns;	   /* CLOCK_MONOTONIC: when keys were last named early; drained */
	struct wakes wakes;		   /* sets `filling` */
	__u64 forks, noted;    /* forks until the run began: on this machine; that its reader knows of */
	struct pacing *pacing; /* NULL: periods do not change */
	struct unwinding *unwinding; /* NULL: stacks are not walked by unwind tables */
	const char *unwind_why;	     /* if nhmtap chose not to walk stacks by tables: why; else NULL */
};

static const char *keys_of(const struct activity *activity)
{
	const struct sampling *sampling = activity->details;

	if (activity->options->annotate)
		return sampling->annotated_keys;
	if (activity->options->by)
		return activity->options->by;
	return activity->streams ? sampling->stream_keys : sampling->default_keys;
}

/* Whether to look for pauses, in which the event is not counted, or wrongly. A clock never ticks faster than
 * asked for, so it is paused only if that is near the kernel's limit; half of it allows for a limit that is
 * lowered later. */
static bool may_be_throttled(const struct activity *activity, const struct event *event)
{
	const struct sampling *sampling = activity->details;
	double limit = activity->session->host.max_sample_rate;

	if (sampling->knows_throttling)
		return false;
	return event_is_clock(event) ? 1e9 / event_clock_period(event) > limit / 2
				     : event_stops_throttled(event);
}

/* Code is annotated by the places of its samples, so other keys would be in the way. */
static int check_annotate(const struct activity *activity, struct refusal *refusal)
{
	const struct options *options = activity->options;
	const struct sampling *sampling = activity->details;

	if (!options->annotate || (sampling->annotated_keys && !options->by && !activity->streams))
		return 0;
	refuse(refusal, STATUS_USAGE, "option --annotate '%.200s'", options->annotate);
	because(refusal, options->call_graph ? "with -g samples are told by their stacks"
			 : activity->streams ? "a stream has each sample by itself"
			 : options->by	     ? "it has keys of its own, and --by asks for others"
					     : "these samples are not told by their code");
	return instead(refusal, "nhmtap %s --annotate %.200s, without other keys", sampling->command,
		       options->annotate);
}

/* The number of events whose samples are aggregated, or one: a trace has none. By the plan, because other
 * activities than those of sampling.c have a state of their own. */
static size_t nr_sampled(const struct activity *activity)
{
	size_t nr = 0;

	for (size_t i = 0; i < activity->plan.events.nr; i++)
		nr += !activity->plan.events.list[i].companion;
	return nr ? nr : 1;
}

size_t sampling_tables_most(const struct activity *activity)
{
	size_t half = activity->session->limits.memory / 2;

	return (half > AGGREGATION_BYTES ? half : AGGREGATION_BYTES) / nr_sampled(activity);
}

/* The tables of a stream have few keys, but all stacks on their way into a ring. */
static size_t table_most(const struct activity *activity)
{
	size_t most = sampling_tables_most(activity);

	if (!activity->streams)
		return most;
	return activity->options->call_graph ? most / 2 : 0;
}

/* The rings take half of what an activity may take, or what its tables leave if that is less. */
static void add_to_stream(struct activity *activity)
{
	struct sampling_run *state = activity->state;
	size_t left = sampling_tables_most(activity) * nr_sampled(activity);
	struct ring_share share = {left / 2, nr_sampled(activity)};

	for (size_t i = 0; i < state->nr; i++) {
		size_t bytes = state->aggregations[i]
				       ? aggregation_bytes(state->aggregations[i], &activity->session->host)
				       : 0;

		left -= bytes < left ? bytes : left;
	}
	if (left < share.bytes)
		share.bytes = left;
	for (size_t i = 0; i < state->nr; i++)
		if (state->aggregations[i])
			streaming_add(state->stream, &activity->plan.events.list[i], state->aggregations[i],
				      &share);
}

int sampling_check(struct activity *activity, struct refusal *refusal)
{
	struct sampling_run *state = xcalloc(1, sizeof(*state));
	struct where condition = {.nr = 0};

	activity->state = state;
	state->sampling = activity->details;
	if (check_annotate(activity, refusal))
		return -1;
	activity->drain_ns = activity->streams ? STREAM_NS : LOOK_AT_KEPT_NS;
	state->nr = activity->plan.events.nr;
	state->aggregations = xcalloc(state->nr, sizeof(*state->aggregations));
	state->events = xcalloc(state->nr, sizeof(*state->events));
	if (activity->streams)
		state->stream = streaming_new(activity, state->sampling->stream_shows ?: keys_of(activity));
	state->gathered = xcalloc(state->nr, sizeof(*state->gathered));
	keys_choose(&activity->keys, keys_of(activity), state->sampling->code_keys);
	activity->keys.option = state->sampling->keys_option;
	/* A stream's samples are written as they come, before the paths of their cgroups are known. */
	if (!activity->streams)
		target_tell_by_samples(&activity->plan.target, &activity->session->host);
	if (activity->plan.target.by_samples)
		keys_need(&activity->keys, "cgroup");
	if (activity->options->where &&
	    where_compile(&condition, activity->options->where, state->sampling->where_fields,
			  &activity->session->host, refusal))
		return -1;
	for (size_t i = 0; i < state->nr; i++) {
		const struct event *event = &activity->plan.events.list[i];
		const struct perf_event_attr *attr = &event->attr;

		if (event->companion)
			continue;
		if (where_check(&condition, activity->options->where, event, refusal))
			return -1;
		if (keys_open(&state->aggregations[i], state->sampling->aggregation, &activity->keys,
			      &activity->session->host, table_most(activity), refusal))
			return -1;
		if (condition.nr)
			aggregation_where(state->aggregations[i], condition.terms, condition.nr);
		aggregation_distance(state->aggregations[i], event->least, event->beyond);
		if (event_tells_next_period(event))
			state->events[i].by_count = aggregation_weigh_by_count(state->aggregations[i]);
		if (may_be_throttled(activity, event))
			aggregation_see_throttling(state->aggregations[i]);
		if (activity->options->call_graph)
			aggregation_stacks(state->aggregations[i], !attr->exclude_kernel, !attr->exclude_user,
					   attr->sample_max_stack, attr->sample_type & PERF_SAMPLE_CALLCHAIN);
	}
	if (state->stream)
		add_to_stream(activity);
	return 0;
}

int sampling_attach_at(struct activity *activity, size_t place, struct refusal *refusal)
{
	struct sampling_run *state = activity->state;

	for (size_t i = 0; i < state->nr; i++)
		if (state->aggregations[i] &&
		    aggregation_attach(state->aggregations[i], counters_fd(activity->counters, i, place),
				       &activity->session->host, refusal))
			return -1;
	if (state->pacing)
		pacing_join(state->pacing, place);
	return 0;
}

const struct sampled_part *sampling_part(const struct activity *activity)
{
	const struct sampling_run *state = activity->state;

	return pacing_part(state->pacing);
}

void sampling_detach_at(struct activity *activity, size_t place)
{
	struct sampling_run *state = activity->state;

	for (size_t i = 0; i < state->nr; i++)
		aggregation_detach(state->aggregations[i], counters_fd(activity->counters, i, place));
}

/* Details for addresses beyond those asked for by keys: tables show names anyway. */
static unsigned int shown_detail(const struct activity *activity)
{
	const struct sampling *sampling = activity->details;

	return (session_all_people(activity->session) ? CODE_SYMBOL : 0) |
	       (activity->keys.detail ? 0 : sampling->names);
}

/* How long to wait for unwind tables at the begin. If one is made later, only the first samples miss it. */
#define WAIT_FOR_TABLES_NS 1000000000ULL

static bool any_user_stacks(const struct activity *activity)
{
	for (size_t i = 0; i < activity->plan.events.nr; i++)
		if (!activity->plan.events.list[i].attr.exclude_user)
			return true;
	return false;
}

/* Has stacks walked by unwind tables, if the options and the machine allow it. */
static int begin_unwinding(struct activity *activity, struct refusal *refusal)
{
	struct sampling_run *state = activity->state;
	const struct options *options = activity->options;
	const struct limits *limits = &activity->session->limits;
	bool tables;

	if (plan_unwind(options, &activity->session->host, &tables, &state->unwind_why, refusal))
		return -1;
	if (!tables || !any_user_stacks(activity))
		return 0;
	if (limits->shared && !limits->parts[MEMORY_UNWINDING].share) {
		state->unwind_why = "the limit of memory leaves no room for their tables";
		return 0;
	}
	if (names_unwind(activity->session->names, &state->unwinding, refusal)) {
		if (options->unwind && !strcmp(options->unwind, UNWIND_TABLES))
			return -1;
		state->unwind_why = "their memory can't be made";
		*refusal = (struct refusal){0};
		return 0;
	}
	for (size_t i = 0; i < state->nr; i++)
		if (state->aggregations[i])
			aggregation_unwind(state->aggregations[i], unwinding_memory(state->unwinding),
					   activity->plan.events.list[i].attr.precise_ip);
	if (activity_child(activity) && activity->plan.target.command)
		unwinding_expect(state->unwinding, activity->plan.target.command);
	return 0;
}

static void on_due(void *context);

static int attach_everywhere(struct activity *activity, struct refusal *refusal)
{
	const struct places *places = counters_places(activity->counters);

	for (size_t p = 0; p < places->nr; p++)
		if (places->list[p].open && sampling_attach_at(activity, p, refusal))
			return -1;
	return 0;
}

static int open_again(struct activity *activity, struct refusal *refusal)
{
	const struct places *places = counters_places(activity->counters);

	for (size_t p = 0; p < places->nr; p++)
		if (places->list[p].open)
			sampling_detach_at(activity, p);
	counters_close(activity->counters);
	activity->counters = NULL;
	return activity_open_counters(activity, refusal);
}

/*
 * A process that is made after its parent's events were opened and before the program is attached to these
 * inherits events without the program. The kernel may then exchange the events of the two where it switches
 * from one to the other (perf_event_context_sched_out(), kernel/events/core.c), and the parent's samples are
 * lost, too. So events are opened again, up to this many times, until no process was made meanwhile.
 */
#define OPENINGS 50

static int attach_before_forks(struct activity *activity, struct refusal *refusal)
{
	struct sampling_run *state = activity->state;

	for (int left = OPENINGS;; left--) {
		if (attach_everywhere(activity, refusal))
			return -1;
		state->forks = proc_forks();
		if (!left || !activity_runs_already(activity) || state->forks == activity->forks)
			return 0;
		if (open_again(activity, refusal))
			return -1;
	}
}

static bool wants_cgroup(void *activity, __u64 id)
{
	return cgroup_watch_wants(activity, id);
}

int sampling_attach(struct activity *activity, struct refusal *refusal)
{
	const struct host *host = &activity->session->host;
	struct sampling_run *state = activity->state;

	if (begin_unwinding(activity, refusal))
		return -1;
	state->pacing = pacing_new(activity, state->aggregations);
	/* Load the programs first, so that if they are refused, that is what is reported. */
	for (size_t i = 0; i < state->nr; i++)
		if (state->aggregations[i] && (aggregation_load(state->aggregations[i], host, refusal) ||
					       aggregation_wake(state->aggregations[i], &state->wakes,
								&state->events[i].filling, host, refusal)))
			return -1;
	for (size_t i = 0; i < state->nr; i++)
		if (state->aggregations[i] && activity->plan.target.by_samples)
			aggregation_filter(state->aggregations[i], wants_cgroup, activity);
	note("loaded %zu of bpf/%s.bpf.c, keys %s", state->nr, state->sampling->aggregation,
	     activity->keys.kernel);
	if ((state->sampling->places || activity->keys.detail) &&
	    names_read(&activity->reader, activity->session->names, &activity->plan.target,
		       activity_child(activity), activity->keys.detail | shown_detail(activity),
		       activity->options->interval_ms, refusal))
		return -1;
	if (activity->reader) {
		reader_take(activity->reader, true);
		reader_forks(activity->reader, &state->noted);
	}
	if (attach_before_forks(activity, refusal))
		return -1;
	state->named_ns = state->drained_ns = clock_ns(CLOCK_MONOTONIC);
	if (activity->reader)
		reader_on_due(activity->reader, on_due, activity);
	note("attached it to every counter");
	if (state->unwinding)
		unwinding_wait(state->unwinding, WAIT_FOR_TABLES_NS);
	return 0;
}

bool sampling_unwinds(const struct activity *activity)
{
	const struct sampling_run *state = activity->state;

	return state->unwinding;
}

static json_t *unwind_value(const struct sampling_run *state)
{
	json_t *value = json_pack("{s:s}", "by", state->unwinding ? UNWIND_TABLES : UNWIND_FP);
	struct unwinding_account account;

	if (state->unwind_why)
		json_object_set_new(value, "why", json_string(state->unwind_why));
	if (!state->unwinding)
		return value;
	account = unwinding_account(state->unwinding);
	json_object_set_new(value, "tables", json_integer(account.tables));
	json_object_set_new(value, "tables_refused", json_integer(account.refused));
	json_object_set_new(value, "bytes", json_integer(account.bytes));
	json_object_set_new(value, "build_ms", json_real(account.ns / 1e6));
	json_object_set_new(value, "follow", json_string(account.follows ? "programs" : "notes"));
	return value;
}

void sampling_describe(struct activity *activity, json_t *start)
{
	const struct sampling_run *state = activity->state;
	size_t sampled = 0;

	while (!state->aggregations[sampled])
		sampled++;
	json_object_set_new(start, state->sampling->keys_option ? state->sampling->keys_option + 2 : "by",
			    keys_value(&activity->keys, aggregation_layout(state->aggregations[sampled])));
	put_text(start, "where", activity->options->where);
	put_text(start, "annotate", activity->options->annotate);
	if (activity->options->call_graph)
		json_object_set_new(start, "unwind", unwind_value(state));
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Memory for each key of an interval, and for each entry of a record, in which a stack names its frames.
 * Estimates by the resident set of a few runs. */
#define KEY_BYTES	  512
#define STACK_KEY_BYTES	  2048
#define KEYS_LEAST	  256
#define ENTRY_BYTES	  2048
#define STACK_ENTRY_BYTES 16384
#define ENTRIES_LEAST	  32

/* Memory that must be left for names and entries; with less, unwind tables are not worth their memory. */
#define UNWIND_SPARE (16UL << 20)

static size_t key_bytes(const struct activity *activity)
{
	return activity->options->call_graph ? STACK_KEY_BYTES : KEY_BYTES;
}

static size_t entry_bytes(const struct activity *activity)
{
	return activity->options->call_graph ? STACK_ENTRY_BYTES : ENTRY_BYTES;
}

/* Most memory for an interval of an event. */
static size_t most_bytes(const struct activity *activity)
{
	return MERGED_KEYS_MOST * (key_bytes(activity) + entry_bytes(activity));
}

void sampling_want_entries(const struct activity *activity, struct limits *limits)
{
	size_t events = nr_sampled(activity);

	limits_want(limits, MEMORY_ENTRIES,
		    events * (KEYS_LEAST * key_bytes(activity) + ENTRIES_LEAST * entry_bytes(activity)),
		    events * most_bytes(activity));
}

void sampling_want(const struct activity *activity, struct limits *limits)
{
	const struct sampling_run *state = activity->state;
	const struct options *options = activity->options;

	for (size_t i = 0; i < state->nr; i++)
		if (state->aggregations[i]) {
			size_t bytes = aggregation_bytes(state->aggregations[i], &activity->session->host);

			limits_want(limits, MEMORY_TABLES, bytes, bytes);
		}
	sampling_want_entries(activity, limits);
	/* All activities of a session share the unwind tables. */
	if (!options->call_graph || !any_user_stacks(activity) ||
	    (options->unwind && !strcmp(options->unwind, UNWIND_FP)))
		return;
	if (!limits->parts[MEMORY_UNWINDING].most) {
		limits_want(limits, MEMORY_UNWINDING, UNWIND_MEMORY_LEAST,
			    UNWIND_MEMORY_LEAST + UNWIND_MEMORY);
		limits->parts[MEMORY_UNWINDING].spare = UNWIND_SPARE;
	}
	/* With --unwind tables they are required. Otherwise stacks can be walked by frame pointers. */
	if (options->unwind && !strcmp(options->unwind, UNWIND_TABLES))
		limits->parts[MEMORY_UNWINDING].spare = 0;
}

/* Memory for entries of an event: all events of all activities get the same proportion of what they want. */
static size_t share_bytes(const struct activity *activity)
{
	const struct memory_want *want = &activity->session->limits.parts[MEMORY_ENTRIES];

	return (double)want->share / want->most * most_bytes(activity);
}

/* The number of this run's events whose samples are aggregated, in all activities; those with stacks are as
 * many as their keys take memory. */
static size_t nr_sampled_in_run(const struct activity *activity)
{
	size_t all = activity->session->limits.parts[MEMORY_ENTRIES].most / most_bytes(activity);
	size_t own = nr_sampled(activity);

	return all > own ? all : own;
}

/* Number of entries of a record by the limit of memory: entries get at most half of it, and keys the rest. */
static size_t entries_fitting(const struct activity *activity)
{
	size_t most = activity->options->call_graph ? STACK_ENTRIES_MOST
		      : activity->heavy		    ? HEAVY_ENTRIES_MOST
						    : ENTRIES_MOST;

	return activity->session->limits.memory ? share_bytes(activity) / 2 / entry_bytes(activity)
						: most / nr_sampled_in_run(activity);
}

size_t sampling_most_keys(const struct activity *activity)
{
	size_t left;

	if (!activity->session->limits.memory)
		return (activity->options->call_graph ? STACK_KEYS_MOST
			: activity->heavy	      ? HEAVY_KEYS_MOST
						      : KEYS_MOST) /
		       nr_sampled_in_run(activity);
	left = share_bytes(activity) - sampling_most_entries(activity, SIZE_MAX) * entry_bytes(activity);
	return left / key_bytes(activity) < MERGED_KEYS_MOST ? left / key_bytes(activity) : MERGED_KEYS_MOST;
}

/* --- entries ---------------------------------------------------------------------------------- */

size_t sampling_most_entries(const struct activity *activity, size_t nr)
{
	size_t top = activity->options->top, most = entries_fitting(activity);

	if (activity->options->annotate)
		return most < nr ? most : nr;
	if (!top && session_all_people(activity->session))
		top = DEFAULT_TABLE_ENTRIES;
	if (top && top < most)
		most = top;
	return most < nr ? most : nr;
}

/* Puts a list of entries. `folded`: the entries after folding by names; NULL: they are as read. `shed`: the
 * sum of `nr_shed` others. */
static void put_list(const struct activity *activity, json_t *record, const struct layout *layout,
		     struct entry *list, size_t nr, const struct folded *folded, __u64 nr_shed,
		     const __u64 *shed)
{
	const struct host *host = &activity->session->host;
	size_t top = sampling_most_entries(activity, nr);
	struct entry_columns columns = entry_columns(host, layout, NULL);
	struct rows rows = {0};

	entries_sort(layout, list, nr);
	for (size_t i = 0; i < top; i++) {
		struct compact *text = rows_begin(&rows);

		append_entry(text, &columns, &list[i]);
		if (folded)
			folded_append(text, folded, &list[i]);
		rows_end(&rows);
	}
	if (top < nr || nr_shed)
		json_object_set_new(record, "rest",
				    rest_value(host, layout, list + top, nr - top, nr_shed, shed));
	rows_put(&rows, record, "entries");
}

/* The index of the event whose aggregation has this layout. */
static size_t event_of(const struct sampling_run *state, const struct layout *layout)
{
	size_t i = 0;

	while (!state->aggregations[i] || aggregation_layout(state->aggregations[i]) != layout)
		i++;
	return i;
}

/* --- what is named before the end of an interval ------------------------------------------------ */

static void *begin_called(const struct activity *activity, struct codes *codes, const struct layout *layout)
{
	return called_new(&activity->session->host, codes, call_stacks_detail(activity),
			  sampling_unwinds(activity), layout);
}

static void called_now_from(void *called, const struct stacks *stacks)
{
	called_from(called, stacks);
}

static bool take_called(void *called, const struct entry *entry)
{
	return called_try(called, entry);
}

static size_t count_called(const void *called)
{
	return called_count(called);
}

static void release_called(void *called)
{
	called_release(called);
}

const struct gathering gathering_of_stacks = {
	.begin = begin_called,
	.from = called_now_from,
	.take = take_called,
	.count = count_called,
	.release = release_called,
};

static void *begin_folded(const struct activity *activity, struct codes *codes, const struct layout *layout)
{
	return folded_new(layout, codes, activity->keys.detail);
}

static bool take_folded(void *folded, const struct entry *entry)
{
	return folded_try(folded, entry);
}

static size_t count_folded(const void *folded)
{
	return ((const struct folded *)folded)->keys.nr;
}

static void choose_folded(void *folded, size_t most, bool *used)
{
	folded_choose(folded, most, used);
}

static void keep_folded(void *folded, const __u32 *numbers)
{
	folded_keep(folded, numbers);
}

static void release_folded(void *folded)
{
	folded_release(folded);
}

static const struct gathering gathering_by_names = {
	.begin = begin_folded,
	.take = take_folded,
	.count = count_folded,
	.choose = choose_folded,
	.keep = keep_folded,
	.release = release_folded,
};

/* NULL: keys stay as they are until the interval ends. */
static const struct gathering *gathering_of(const struct activity *activity)
{
	const struct sampling *sampling = activity->details;

	if (sampling->put)
		return sampling->gathering;
	return activity->keys.detail ? &gathering_by_names : NULL;
}

static bool names_early(const struct activity *activity)
{
	const struct sampling *sampling = activity->details;

	return activity->reader && !sampling->follow && gathering_of(activity);
}

void *sampling_gathered(const struct activity *activity, const struct layout *layout)
{
	struct sampling_run *state = activity->state;
	struct codes *codes = reader_codes(activity->reader);
	void **at = &state->gathered[event_of(state, layout)], *gathered = *at;

	*at = NULL;
	return gathered ? gathered : gathering_of(activity)->begin(activity, codes, layout);
}

void sampling_put_stacks(const struct activity *activity, json_t *record, const struct layout *layout,
			 struct reading *reading)
{
	struct called *called = sampling_gathered(activity, layout);

	called_add(called, reading);
	called_put(called, record, sampling_most_entries(activity, called_count(called)));
	called_release(called);
}

static void put_entries(const struct activity *activity, json_t *record, const struct layout *layout,
			struct reading *reading)
{
	struct folded *folded;
	size_t nr;

	if (!activity->keys.detail) {
		put_list(activity, record, layout, reading->entries, reading->nr_entries, NULL,
			 reading->nr_shed, reading->shed);
		return;
	}
	folded = sampling_gathered(activity, layout);
	folded_add(folded, reading);
	if (reading->nr_shed)
		values_add(layout, folded->shed, reading->shed);
	reading->nr_shed += folded->nr_shed;
	nr = folded_list(folded);
	put_list(activity, record, layout, folded->entries, nr, folded, reading->nr_shed, folded->shed);
	folded_release(folded);
}

struct early {
	const struct gathering *gathering;
	void *gathered;
	__u64 until; /* CLOCK_MONOTONIC, ns */
};

static bool take_early(void *context, const struct entry *entry)
{
	struct early *early = context;

	return clock_ns(CLOCK_MONOTONIC) < early->until && early->gathering->take(early->gathered, entry);
}

static size_t count_gathered(const struct activity *activity, size_t i)
{
	const struct sampling_run *state = activity->state;

	return state->gathered[i] ? gathering_of(activity)->count(state->gathered[i]) : 0;
}

/* Entries with stacks are never given up once they are named, so their number is limited. */
static bool has_room_for_stacks(const struct activity *activity, size_t i)
{
	const struct codes *codes = reader_codes_now(activity->reader);

	return codes_nr(codes) < STACK_KEYS_MOST && codes_nr_places(codes) < KEYS_MOST &&
	       count_gathered(activity, i) < sampling_most_keys(activity) / 2;
}

/* Returns whether all keys of the event have names by now. */
static bool name_event(struct activity *activity, size_t i, __u64 until)
{
	struct sampling_run *state = activity->state;
	struct early early = {.gathering = gathering_of(activity), .until = until};
	struct aggregation *aggregation = state->aggregations[i];
	struct codes *codes;

	if (!aggregation)
		return true;
	aggregation_drain(aggregation, sampling_most_keys(activity));
	if (activity->options->call_graph && !has_room_for_stacks(activity, i))
		return false;
	codes = reader_codes_early(activity->reader, until);
	if (!state->gathered[i])
		state->gathered[i] = early.gathering->begin(activity, codes, aggregation_layout(aggregation));
	early.gathered = state->gathered[i];
	if (early.gathering->from)
		early.gathering->from(early.gathered, aggregation_kept_stacks(aggregation));
	aggregation_take(aggregation, take_early, &early);
	state->events[i].left = aggregation_kept(aggregation);
	return !state->events[i].left;
}

/* Keeps this many of the larger entries of each event, and the codes that they need. */
static void keep_largest(const struct gathering *gathering, void *const *gathered, size_t nr,
			 struct codes *codes, size_t most)
{
	bool *used = xcalloc(codes_nr(codes) + 1, sizeof(*used));
	__u32 *numbers = xcalloc(codes_nr(codes) + 1, sizeof(*numbers));

	for (size_t i = 0; i < nr; i++)
		if (gathered[i])
			gathering->choose(gathered[i], most, used);
	codes_keep(codes, used, numbers);
	for (size_t i = 0; i < nr; i++)
		if (gathered[i])
			gathering->keep(gathered[i], numbers);
	free(used);
	free(numbers);
}

void gathering_trim(const struct gathering *gathering, void *const *gathered, size_t nr, struct codes *codes,
		    size_t most)
{
	size_t bytes = codes_text_bytes(codes), kept = most / 4;
	bool many = codes_nr(codes) > most || codes_nr_places(codes) > most || bytes > NAMED_BYTES;

	for (size_t i = 0; i < nr; i++)
		many = many || (gathered[i] && gathering->count(gathered[i]) > most / 2);
	if (bytes > NAMED_BYTES)
		kept = kept * (NAMED_BYTES / 2) / bytes;
	if (many)
		keep_largest(gathering, gathered, nr, codes, kept);
}

/*
 * Names the keys and sums them up by their names, so that processes that have ended and the many addresses of
 * a function need no memory until the end of the interval. Keys whose names take time are kept for the next
 * time.
 */
static void name_early(struct activity *activity, __u64 most)
{
	struct sampling_run *state = activity->state;
	__u64 now = clock_ns(CLOCK_MONOTONIC), half = (now - state->named_ns) / 2;
	__u64 until = now + (half < most ? half : most);
	bool all = true;

	reader_take(activity->reader, true);
	for (size_t i = 0; i < state->nr; i++)
		all = name_event(activity, i, until) && all;
	if (!activity->options->call_graph) /* chains have numbers of codes */
		gathering_trim(gathering_of(activity), state->gathered, state->nr,
			       reader_codes_now(activity->reader), sampling_most_keys(activity));
	state->named_ns = clock_ns(CLOCK_MONOTONIC);
	if (all)
		reader_named(activity->reader, now);
}

static void on_due(void *context)
{
	struct activity *activity = context;

	if (names_early(activity))
		name_early(activity, NAMING_DUE_NS);
}

/* Whether an event has many keys, and many more than the last naming left: each naming looks at all. */
static bool has_many(const struct activity *activity, size_t i)
{
	const struct sampling_run *state = activity->state;
	size_t most = sampling_most_keys(activity), kept = aggregation_kept(state->aggregations[i]);

	return kept >= most / 2 && kept >= state->events[i].left + most / 4;
}

static bool should_name_early(const struct activity *activity)
{
	const struct sampling_run *state = activity->state;
	bool many = false;

	if (!names_early(activity))
		return false;
	for (size_t i = 0; i < state->nr; i++)
		many = many || (state->aggregations[i] && has_many(activity, i));
	return many;
}

static void release_gathered(struct activity *activity)
{
	struct sampling_run *state = activity->state;

	for (size_t i = 0; i < state->nr; i++) {
		if (state->gathered[i])
			gathering_of(activity)->release(state->gathered[i]);
		state->gathered[i] = NULL;
		state->events[i].left = 0;
	}
}

/* --- draining --------------------------------------------------------------------------------- */

/* A program may write a sample a little after it took the sample's time. Samples newer than this are left for
 * the next reading, so that all are read in the order of their times. */
#define SETTLED_NS 1000000

/* Empties tables before they are full. */
static void drain_tables(struct activity *activity)
{
	struct sampling_run *state = activity->state;

	__u64 now = clock_ns(CLOCK_MONOTONIC), before = state->drained_ns;

	wakes_take(&state->wakes);
	state->drained_ns = now;
	for (size_t i = 0; i < state->nr; i++) {
		if (state->events[i].filling)
			aggregation_drain(state->aggregations[i], sampling_most_keys(activity));
		state->events[i].filling = false;
	}
	if (now - before > FILLING_FAST_NS && should_name_early(activity))
		name_early(activity, now - before < NAMING_EARLY_NS ? now - before : NAMING_EARLY_NS);
}

int sampling_wake_fd(const struct activity *activity)
{
	const struct sampling_run *state = activity->state;

	return wakes_fd(&state->wakes);
}

int sampling_drain(struct activity *activity)
{
	const struct sampling_run *state = activity->state;
	__u64 before = clock_ns(CLOCK_MONOTONIC) - SETTLED_NS;

	drain_tables(activity);
	return state->stream ? streaming_drain(state->stream, before, false) : 0;
}

void sampling_so_far(struct activity *activity, struct so_far *sum)
{
	struct sampling_run *state = activity->state;

	sum->sampled = true;
	for (size_t i = 0; i < state->nr; i++)
		aggregation_so_far(state->aggregations[i], &sum->samples, &sum->lost);
}

/* --- intervals -------------------------------------------------------------------------------- */

/* Whether samples of another event of the plan may end up in the same PEBS record. */
static bool collides(const struct events *events, const struct event *event)
{
	size_t precise = 0;

	for (size_t i = 0; i < events->nr; i++)
		precise += events->list[i].attr.precise_ip > 0;
	return event->attr.precise_ip && precise > 1;
}

/* How many processes and threads the target may have made: no more than the machine, nor than the kernel has
 * noted. */
static __u64 forks_since(const struct activity *activity)
{
	const struct sampling_run *state = activity->state;
	__u64 most = proc_forks() - state->forks, noted;

	if (activity->reader && reader_forks(activity->reader, &noted) && noted - state->noted < most)
		return noted - state->noted;
	return most;
}

/* What was read of an event at the end of an interval. */
struct event_read {
	struct count count;
	struct reading reading;
};

/* How often the event was stopped because another one of its group sampled too often. From Linux 6.16 on the
 * kernel stops them all, and the others don't know of it: perf_event_throttle_group(), kernel/events/core.c.
 * `read` has all events of the plan. */
static __u64 stopped_by_group(const struct activity *activity, size_t i, const struct event_read *read)
{
	const struct events *events = &activity->plan.events;
	__u64 throttled = 0;

	if (events->list[i].group < 0 || !kernel_at_least(&activity->session->host, 6, 16))
		return 0;
	for (size_t j = 0; j < events->nr; j++)
		if (j != i && events->list[j].group == events->list[i].group)
			throttled += read[j].reading.throttled;
	return throttled;
}

static struct samples_read read_samples(const struct activity *activity, const struct event *event,
					const struct event_read *of, __u64 by_group)
{
	const struct reading *reading = &of->reading;
	const struct sampling_run *state = activity->state;
	const struct perf_event_attr *attr = &event->attr;
	struct paced paced = {.period = attr->freq ? 0 : event_distance(event) - event->beyond};
	__u64 contexts = counters_opened(activity->counters) + (attr->inherit ? forks_since(activity) : 0);

	if (state->pacing)
		paced = pacing_of(state->pacing, event - activity->plan.events.list);
	return (struct samples_read){
		.count = of->count.value,
		.sample_period = paced.period,
		.by_count = state->events[event - activity->plan.events.list].by_count,
		.beyond = event->beyond,
		.count_before = paced.count,
		.samples_before = paced.samples,
		.runs = reading->runs,
		.period = reading->period,
		.aggregated = reading->aggregated,
		.filtered = reading->filtered,
		.table_full = reading->table_full,
		.stack_failed = reading->stack_failed,
		.contexts = contexts * (1 + paced.changes),
		.throttled = reading->throttled + by_group,
		.by_group = by_group,
		.stops = event_stops_throttled(event) || (by_group && !event_is_clock(event)),
		.at_least = event->at_least || event->miscounted || reading->counts_dropped,
		.precise = attr->precise_ip,
		.collides = collides(&activity->plan.events, event),
		.clock = event_is_clock(event),
		.one_side = attr->exclude_user || attr->exclude_kernel,
	};
}

static json_t *interval_record(const struct activity *activity, const struct sampled *sampled)
{
	const struct sampling_run *state = activity->state;
	json_t *record = json_pack("{s:s}", "type", state->sampling->command);
	const struct count *count = sampled->count;

	activity_put_event(record, sampled->event);
	activity_put_interval(activity, record);
	activity_put_missing(activity, record, NULL, -1);
	json_object_set_new(record, "value", json_integer(count->value));
	if (activity->plan.target.by_samples)
		json_object_set_new(record, "value_of_samples", json_true());
	json_object_set_new(record, "enabled_ns", json_integer(count->enabled_ns));
	json_object_set_new(record, "running_ns", json_integer(count->running_ns));
	why_put(activity, sampled->index, count, record);
	return record;
}

/* Reads the count and samples of an event. */
static void read_event(struct activity *activity, size_t i, struct event_read *read)
{
	const struct event *event = &activity->plan.events.list[i];
	struct sampling_run *state = activity->state;

	/* Read the count first. Then all samples to be expected by it are in the tables. */
	counters_read(activity->counters, i, &read->count);
	if (event->never[0])
		read->count = (struct count){0};
	aggregation_read(state->aggregations[i], sampling_most_keys(activity), &read->reading);
	/* By now the kernel has noted all mappings that precede the samples, and all forks. */
	if (activity->reader)
		reader_take(activity->reader, true);
	if (event->miscounted)
		read->count.value = read->reading.period;
}

/* Updates the account of an event, and corrects its count by it. `all` has all events of the plan. */
static void account_event(struct activity *activity, size_t i, struct event_read *all)
{
	const struct event *event = &activity->plan.events.list[i];
	__u64 by_group = stopped_by_group(activity, i, all);
	struct sampling_run *state = activity->state;
	struct samples before = state->events[i].account;
	struct count *count = &all[i].count;
	struct samples_read read;

	/* The kernel starts a throttled clock anew, as if no time had passed, or counts some of it twice. */
	if ((all[i].reading.throttled || by_group) && event_is_clock(event))
		count->value = count->running_ns;
	read = read_samples(activity, event, &all[i], by_group);
	state->events[i].account = samples_account(&read, &before);
	state->events[i].cause = missed_cause(&read);
	count->value += samples_uncounted(&read, &state->events[i].account);
	/* The counter has counted other cgroups, too. */
	if (activity->plan.target.by_samples) {
		count->value = all[i].reading.aggregated_period;
		state->events[i].account.unsampled = 0;
	}
}

static json_t *account_value(const struct sampling_run *state, size_t i, const struct samples *before)
{
	struct samples since = samples_since(&state->events[i].account, before);
	json_t *value = samples_value(&since, state->events[i].cause);

	if (state->sampling->reads_stacks)
		json_object_set_new(json_object_get(value, "lost"), "stack_failed",
				    json_integer(since.stack_failed));
	if (state->sampling->knows_throttling)
		json_object_set_new(value, "throttled", json_integer(since.throttled));
	return value;
}

/* Moves a list out of a record into a record of its own, with the members that all parts of a record have. */
static int write_ahead(struct activity *activity, json_t *record, const char *list)
{
	json_t *ahead = json_pack("{s:s}", "type", list);
	const struct record_type *type = record_type_of(ahead);

	for (const char *const *kept = type->kept; *kept; kept++)
		json_object_set(ahead, *kept, json_object_get(record, *kept));
	json_object_set(ahead, list, json_object_get(record, list));
	json_object_del(record, list);
	return activity_write(activity, ahead);
}

static void say_not_counted(const struct activity *activity, size_t i, const struct count *count)
{
	char why[WHY_SIZE];

	activity_say(activity, "%s: no samples: %s", activity->plan.events.list[i].name,
		     why_not_counted(activity, i, count, why));
}

static struct silence silence_of(const struct activity *activity, size_t i, const struct count *count,
				 const struct samples *samples)
{
	const struct sampling_run *state = activity->state;

	return (struct silence){activity, &activity->plan.events.list[i], count, samples,
				state->events[i].cause};
}

/* Says in the record why it has no samples, although the event was counted. */
static void put_silence(const struct silence *silence, json_t *record)
{
	char why[SILENCE_SIZE];

	if (silence_is(silence))
		json_object_set_new(record, "no_samples", json_string(silence_why(silence, why)));
}

/* Says in the record why its samples brought nothing, and after the last one if none of the run did. */
static void put_emptiness(const struct activity *activity, size_t i, __u64 samples, json_t *record, bool last)
{
	const struct sampling_run *state = activity->state;
	const struct sampling *sampling = state->sampling;
	char text[SILENCE_SIZE];
	const char *why = sampling->empty ? sampling->empty(activity, record, text) : NULL;

	if (!why) {
		state->events[i].filled = true;
		return;
	}
	if (samples)
		json_object_set_new(record, "no_entries", json_string(why));
	if (last && !state->events[i].filled && state->events[i].account.aggregated)
		activity_say(activity, "%s: no entries: %s", activity->plan.events.list[i].name, why);
}

/* Says at the end why there was not a single sample, unless uncounted_say_never() has said it. */
static void say_silence(const struct activity *activity, size_t i, const struct count *count)
{
	const struct sampling_run *state = activity->state;
	struct silence silence = silence_of(activity, i, count, &state->events[i].account);
	char why[SILENCE_SIZE];

	if (activity->plan.events.list[i].never[0])
		return;
	if (!count->running_ns)
		say_not_counted(activity, i, count);
	else if (silence_is(&silence))
		activity_say(activity, "%s: no samples: %s", silence.event->name, silence_why(&silence, why));
}

/* The code that was asked for, by the entries of a record; NULL: none was. */
static json_t *annotations_of(struct activity *activity, json_t *record)
{
	struct sampling_run *state = activity->state;

	if (!activity->options->annotate)
		return NULL;
	if (!state->annotator)
		state->annotator = annotator_new();
	rows_open(record, "entries");
	return annotate(state->annotator, activity->options->annotate, record);
}

static int write_annotations(struct activity *activity, const json_t *annotations)
{
	json_t *record;
	size_t i;
	int err = 0;

	json_array_foreach(annotations, i, record)
		err = err ? err : activity_write(activity, json_incref(record));
	return err;
}

/* `read` has all events of the plan, `found` is what this one counted in the interval. */
static int report_event(struct activity *activity, size_t i, bool last, struct event_read *read,
			struct count *found, struct sampled *sampled)
{
	struct sampling_run *state = activity->state;
	const struct sampling *sampling = state->sampling;
	put_fn put = sampling->put ? sampling->put : put_entries;
	struct samples before = state->events[i].account, since;
	struct reading *reading = &read[i].reading;
	struct silence silence;
	json_t *record, *annotations;
	int err;

	*sampled = (struct sampled){&activity->plan.events.list[i], i,
				    aggregation_layout(state->aggregations[i]), reading, found};
	account_event(activity, i, read);
	*found = count_beyond(&read[i].count, &state->events[i].before);
	state->events[i].before = read[i].count;
	if (activity_cut(activity))
		found->running_ns = 0;
	record = interval_record(activity, sampled);
	since = samples_since(&state->events[i].account, &before);
	silence = silence_of(activity, i, found, &since);
	put_silence(&silence, record);
	if (samples_paused(&since))
		why_put_pauses(since.throttled, since.by_group, record);
	json_object_set_new(record, "samples", account_value(state, i, &before));
	if (state->pacing)
		pacing_put(state->pacing, i, record);
	if (sampling->complete)
		sampling->complete(activity, sampled, record);
	put(activity, record, sampled->layout, reading);
	put_emptiness(activity, i, since.aggregated, record, last);
	err = sampling->ahead ? write_ahead(activity, record, sampling->ahead) : 0;
	if (err) {
		json_decref(record);
		return err;
	}
	annotations = annotations_of(activity, record);
	err = activity_write(activity, record);
	if (!err)
		err = write_annotations(activity, annotations);
	json_decref(annotations);
	if (last)
		say_silence(activity, i, &read[i].count);
	if (!err)
		err = warn_of_loss(activity, sampled->event->name, &since, reading,
				   &state->events[i].warned_loss);
	return err ? err
		   : warn_of_keys(activity, sampled->event->name, reading->nr_shed,
				  sampling_most_keys(activity), &state->events[i].warned_keys);
}

static int doubt_sampled(struct activity *activity, const struct count *found, const struct sampled *sampled,
			 size_t nr, bool last)
{
	struct count *counts = xcalloc(activity->plan.events.nr + 1, sizeof(*counts));
	int err;

	for (size_t i = 0; i < nr; i++)
		counts[sampled[i].index] = found[i];
	err = doubt_counts(activity, &activity->plan.events, 0, counts, last);
	free(counts);
	return err;
}

int sampling_report(struct activity *activity, bool last)
{
	const struct sampling_run *state = activity->state;
	__u64 now = clock_ns(CLOCK_MONOTONIC) - SETTLED_NS;
	struct event_read *read = xcalloc(activity->plan.events.nr, sizeof(*read));
	struct count *found = xcalloc(activity->plan.events.nr, sizeof(*found));
	struct sampled *sampled = xcalloc(activity->plan.events.nr, sizeof(*sampled));
	size_t nr = 0;
	int err = 0;

	if (state->stream)
		err = streaming_drain(state->stream, last ? ~0ULL : now, true);
	for (size_t i = 0; i < activity->plan.events.nr; i++)
		if (state->aggregations[i])
			read_event(activity, i, &read[i]);
	for (size_t i = 0; i < activity->plan.events.nr && !err; i++) {
		if (!state->aggregations[i])
			continue;
		err = report_event(activity, i, last, read, &found[nr], &sampled[nr]);
		nr++;
	}
	if (!err && state->sampling->follow)
		err = state->sampling->follow(activity, sampled, nr);
	if (!err && !activity_cut(activity))
		err = doubt_sampled(activity, found, sampled, nr, last);
	/* What was not reported because of an error refers to codes that end with the interval. */
	release_gathered(activity);
	free(read);
	free(found);
	free(sampled);
	return err;
}

/* Adds the account of the whole run, summed over all events. */
int sampling_finish(struct activity *activity, json_t *end)
{
	const struct sampling_run *state = activity->state;
	struct samples sum = {0};
	json_t *value, *lost;

	if (!state || !timespec_is_set(&activity->began))
		return 0;
	lost = json_object();
	for (size_t i = 0; i < state->nr; i++) {
		const struct samples *account = &state->events[i].account;

		sum.expected += account->expected;
		sum.uncertainty += account->uncertainty;
		sum.aggregated += account->aggregated;
		sum.table_full += account->table_full;
		sum.stack_failed += account->stack_failed;
		sum.at_least |= account->at_least || samples_paused(account);
		sum.throttled += account->throttled;
		sum.filtered += account->filtered;
		sum.unsampled += account->unsampled;
	}
	value = json_pack("{s:I, s:I, s:I}", "expected", (json_int_t)sum.expected, "uncertainty",
			  (json_int_t)sum.uncertainty, "aggregated", (json_int_t)sum.aggregated);
	if (sum.at_least)
		json_object_set_new(value, "at_least", json_true());
	if (sum.filtered)
		json_object_set_new(value, "filtered", json_integer(sum.filtered));
	if (sum.unsampled)
		json_object_set_new(value, "unsampled", json_integer(sum.unsampled));
	json_object_set_new(lost, "table_full", json_integer(sum.table_full));
	if (state->sampling->reads_stacks)
		json_object_set_new(lost, "stack_failed", json_integer(sum.stack_failed));
	for (size_t i = 0; i < state->nr; i++) {
		const char *cause = state->events[i].cause;
		json_int_t so_far = cause ? json_integer_value(json_object_get(lost, cause)) : 0;

		if (cause)
			json_object_set_new(lost, cause,
					    json_integer(so_far + state->events[i].account.missed));
	}
	json_object_set_new(value, "lost", lost);
	if (state->sampling->knows_throttling || sum.throttled)
		json_object_set_new(value, "throttled", json_integer(sum.throttled));
	json_object_set_new(end, "samples", value);
	if (activity->streams)
		json_object_set_new(end, "stream", streaming_value(state->stream));
	return 0;
}

void sampling_release(struct activity *activity)
{
	struct sampling_run *state = activity->state;

	if (!state)
		return;
	wakes_close(&state->wakes);
	release_gathered(activity);
	streaming_release(state->stream);
	annotator_release(state->annotator);
	for (size_t i = 0; i < state->nr; i++)
		aggregation_close(state->aggregations[i]);
	free(state->gathered);
	pacing_release(state->pacing);
	free(state->aggregations);
	free(state->events);
	free(state);
}
