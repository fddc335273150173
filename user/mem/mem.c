// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap mem: loads by the source of their data and by latency, and stores. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "activity/activity.h"
#include "activity/call_stacks.h"
#include "activity/sampling.h"
#include "aggregation/remainder.h"
#include "annotate/annotation.h"
#include "base/array.h"
#include "base/list.h"
#include "base/memory.h"
#include "mem/plan.h"
#include "option/command.h"
#include "record/code.h"
#include "record/entry.h"
#include "record/fold.h"
#include "record/key.h"
#include "record/record.h"
#include "record/rows.h"
#include "record/source.h"
#include "record/type.h"

/* --- sums by source --------------------------------------------------------------------------- */

struct by_source {
	const struct layout *layout;
	struct source_sum {
		__u64 source;
		__u64 *values; /* layout.value_size bytes */
	} * list;
	size_t nr;
};

static void add_entry(struct by_source *sums, const struct entry *entry)
{
	__u64 source = key_number(sums->layout, entry, "source");
	size_t i = 0;

	while (i < sums->nr && sums->list[i].source != source)
		i++;
	if (i == sums->nr)
		*xappend(sums->list, sums->nr) =
			(struct source_sum){source, xcalloc(1, sums->layout->value_size)};
	values_add(sums->layout, sums->list[i].values, entry->values);
}

/* For qsort(): the source with the most samples first. The first word of a value is the number of samples. */
static int by_samples(const void *a, const void *b)
{
	const struct source_sum *x = a, *y = b;

	if (x->values[0] != y->values[0])
		return x->values[0] < y->values[0] ? 1 : -1;
	return x->source < y->source ? -1 : x->source > y->source;
}

static json_t *sources_value(const struct host *host, const struct sampled *sampled)
{
	struct by_source sums = {.layout = sampled->layout};
	const struct sums *apart = &sampled->reading->apart->sums;
	json_t *list = json_array();

	for (size_t i = 0; i < sampled->reading->nr_entries; i++)
		add_entry(&sums, &sampled->reading->entries[i]);
	for (size_t i = 0; i < apart->keys.nr; i++)
		add_entry(&sums, &(struct entry){interned_at(&apart->keys, i), sums_at(apart, i)});
	if (sums.nr)
		qsort(sums.list, sums.nr, sizeof(*sums.list), by_samples);
	for (size_t i = 0; i < sums.nr; i++) {
		json_t *value = json_object();

		put_source(value, host, sums.list[i].source);
		put_values(value, host, sums.layout, sums.list[i].values);
		json_array_append_new(list, value);
		free(sums.list[i].values);
	}
	free(sums.list);
	return list;
}

/* --- records ---------------------------------------------------------------------------------- */

static void mem_complete(const struct activity *activity, const struct sampled *sampled, json_t *record)
{
	json_object_set_new(record, "sources", sources_value(&activity->session->host, sampled));
}

/* --- lines that cores share ------------------------------------------------------------------- */

#define LINE_BYTES	    64
#define DEFAULT_TABLE_LINES 10
#define SHARED_KEYS	    "line,variable_offset,type,ip,cacheline,offset,cpu,pid,tid,comm"

/* A cache line and its accesses: `entries` are consecutive entries of the line. */
struct line {
	const struct entry *entries;
	size_t nr;
	__u64 address;
	__u64 loads, stores;
	__u64 modified, other_core; /* numbers of loads */
	struct {
		__u64 all, stores, modified, other_core;
	} period; /* what these samples stand for */
};

/* For qsort_r(): by cache line, then by weight. */
static int by_line(const void *a, const void *b, void *layout)
{
	const struct entry *x = a, *y = b;
	__u64 first = key_number(layout, x, "cacheline"), second = key_number(layout, y, "cacheline");

	if (first != second)
		return first < second ? -1 : 1;
	return entry_compare(x, y);
}

static int by_sharing(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->period.modified != y->period.modified)
		return x->period.modified < y->period.modified ? 1 : -1;
	if (x->period.other_core != y->period.other_core)
		return x->period.other_core < y->period.other_core ? 1 : -1;
	if (x->period.stores != y->period.stores)
		return x->period.stores < y->period.stores ? 1 : -1;
	return x->address < y->address ? -1 : 1;
}

static void add_access(struct line *line, const struct entry *entry, __u64 source)
{
	__u64 samples = entry->values[0], period = entry_weight(entry);
	bool modified = source_modified(source), other_core = source_other_core(source);

	*(source_store(source) ? &line->stores : &line->loads) += samples;
	line->modified += modified ? samples : 0;
	line->other_core += other_core ? samples : 0;
	line->period.all += period;
	line->period.stores += source_store(source) ? period : 0;
	line->period.modified += modified ? period : 0;
	line->period.other_core += other_core ? period : 0;
}

static struct line line_from(const struct layout *layout, const struct entry *first, size_t left)
{
	struct line line = {.entries = first, .address = key_number(layout, first, "cacheline")};

	for (; line.nr < left; line.nr++) {
		const struct entry *entry = &first[line.nr];

		if (key_number(layout, entry, "cacheline") != line.address)
			break;
		add_access(&line, entry, key_number(layout, entry, "source"));
	}
	return line;
}

static bool is_store(const struct layout *layout, const struct entry *entry)
{
	return source_store(key_number(layout, entry, "source"));
}

/* Which accesses of a line: any, or of one kind. */
enum access { ANY, LOADS, STORES };

static bool is_of(enum access access, const struct layout *layout, const struct entry *entry)
{
	return access == ANY || (access == STORES) == is_store(layout, entry);
}

static int by_number(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return (x > y) - (x < y);
}

/* The number of different values that a key has among the accesses of a line, which may be thousands. */
static int different(const struct layout *layout, const struct line *line, enum access access,
		     const char *key)
{
	__u64 *values = xcalloc(line->nr + 1, sizeof(*values));
	size_t nr = 0;
	int count = 0;

	for (size_t i = 0; i < line->nr; i++)
		if (is_of(access, layout, &line->entries[i]))
			values[nr++] = key_number(layout, &line->entries[i], key);
	qsort(values, nr, sizeof(*values), by_number);
	for (size_t i = 0; i < nr; i++)
		count += !i || values[i] != values[i - 1];
	free(values);
	return count;
}

/* Whether cores share the line: another core had it when it was loaded, or several threads on several CPUs
 * accessed it and one of them stored. */
static bool is_shared(const struct layout *layout, const struct line *line)
{
	return line->other_core || (line->stores && different(layout, line, ANY, "tid") > 1 &&
				    different(layout, line, ANY, "cpu") > 1);
}

/* The number of offsets in the line that are accessed by more than one thread. */
static int in_common(const struct layout *layout, const struct line *line)
{
	__u64 thread[LINE_BYTES] = {0};
	bool common[LINE_BYTES] = {false};
	int count = 0;

	for (size_t i = 0; i < line->nr; i++) {
		__u64 offset = key_number(layout, &line->entries[i], "offset") % LINE_BYTES;
		__u64 tid = key_number(layout, &line->entries[i], "tid");

		common[offset] = common[offset] || (thread[offset] && thread[offset] != tid);
		thread[offset] = tid;
	}
	for (int i = 0; i < LINE_BYTES; i++)
		count += common[i];
	return count;
}

/* Appends the members of an access: which thread accesses which offset of the line, and by which code. The
 * code has its address, which tells two loads in the same source line apart, and its name. The address is
 * told by its variable. */
static void append_access(struct compact *text, const struct activity *activity, const struct layout *layout,
			  struct entry_columns *columns, const struct entry *entry)
{
	struct codes *codes = reader_codes(activity->reader);
	__u32 code =
		codes_number(codes, CODE_LINE, key_number(layout, entry, "pid"), key_comm(layout, entry->key),
			     key_number(layout, entry, "ip"), entry->values[0]);
	struct datum datum = entry_datum(layout, entry, activity->keys.detail);
	__u32 number;

	append_entry(text, columns, entry);
	compact_add_text(text, is_store(layout, entry) ? ",\"access\":\"store\"" : ",\"access\":\"load\"");
	append_code(text, ",\"code\":", codes_at(codes, code));
	codes_datum(codes, &datum, entry->values[0], false, &number);
	append_datum(text, codes_at(codes, number));
}

static json_t *line_record(const struct activity *activity, const struct sampled *sampled,
			   const struct line *line)
{
	const struct layout *layout = sampled->layout;
	struct entry_columns columns = entry_columns(&activity->session->host, layout, "cacheline");
	json_t *record = json_pack("{s:s}", "type", "shared_line");
	struct rows rows = {0};

	activity_put_event(record, sampled->event);
	activity_put_interval(activity, record);
	json_object_set_new(record, "cacheline", value_hex(line->address));
	json_object_set_new(record, "loads", json_integer(line->loads));
	json_object_set_new(record, "stores", json_integer(line->stores));
	json_object_set_new(record, "modified", json_integer(line->modified));
	json_object_set_new(record, "other_core", json_integer(line->other_core));
	json_object_set_new(record, "period", json_integer(line->period.all));
	json_object_set_new(record, "modified_period", json_integer(line->period.modified));
	json_object_set_new(record, "other_core_period", json_integer(line->period.other_core));
	json_object_set_new(record, "threads", json_integer(different(layout, line, ANY, "tid")));
	json_object_set_new(record, "readers", json_integer(different(layout, line, LOADS, "tid")));
	json_object_set_new(record, "writers", json_integer(different(layout, line, STORES, "tid")));
	json_object_set_new(record, "cpus", json_integer(different(layout, line, ANY, "cpu")));
	json_object_set_new(record, "offsets", json_integer(different(layout, line, ANY, "offset")));
	json_object_set_new(record, "offsets_in_common", json_integer(in_common(layout, line)));
	for (size_t i = 0; i < line->nr; i++) {
		append_access(rows_begin(&rows), activity, layout, &columns, &line->entries[i]);
		rows_end(&rows);
	}
	rows_put(&rows, record, "entries");
	return record;
}

static size_t most_lines(const struct activity *activity)
{
	if (activity->options->top)
		return activity->options->top;
	return session_all_people(activity->session) ? DEFAULT_TABLE_LINES : SIZE_MAX;
}

/* Loads and stores are separate events with the same keys. A line has the entries of all of them. */
static int write_shared_lines(struct activity *activity, const struct sampled *sampled, size_t nr_sampled)
{
	struct entry *entries;
	struct line *lines;
	size_t nr_entries = 0, nr = 0;
	int err = 0;

	for (size_t i = 0; i < nr_sampled; i++)
		nr_entries += sampled[i].reading->nr_entries;
	entries = xcalloc(nr_entries + 1, sizeof(*entries));
	lines = xcalloc(nr_entries + 1, sizeof(*lines));
	nr_entries = 0;
	for (size_t i = 0; i < nr_sampled; i++) {
		const struct reading *reading = sampled[i].reading;

		for (size_t n = 0; n < reading->nr_entries; n++)
			entries[nr_entries++] = reading->entries[n];
	}
	qsort_r(entries, nr_entries, sizeof(*entries), by_line, (void *)sampled->layout);
	for (size_t i = 0; i < nr_entries;) {
		struct line line = line_from(sampled->layout, entries + i, nr_entries - i);

		if (is_shared(sampled->layout, &line))
			lines[nr++] = line;
		i += line.nr;
	}
	qsort(lines, nr, sizeof(*lines), by_sharing);
	for (size_t i = 0; i < nr && i < most_lines(activity) && !err; i++)
		err = activity_write(activity, line_record(activity, sampled, &lines[i]));
	free(lines);
	free(entries);
	return err;
}

/* --- the command ------------------------------------------------------------------------------ */

/* Entries with stacks have no keys of the data. */
static int check_keys_beside_stacks(const struct options *options, struct refusal *refusal)
{
	static const char *const of_data[] = {"variable", "variable_offset", "type"};

	for (size_t i = 0; i < ARRAY_SIZE(of_data); i++) {
		if (!list_has(options->by, of_data[i]))
			continue;
		refuse(refusal, STATUS_USAGE, "option --by '%s' with stacks", of_data[i]);
		because(refusal, "loads are told apart either by their data or by their calls; stacks are "
				 "asked for by "
				 "-g, the key stack, or the format of an output");
		return instead(refusal, "leave out the one or the other");
	}
	return 0;
}

static int choose(struct activity *activity, struct refusal *refusal)
{
	static const struct activity_ops ops = SAMPLING_OPS(plan_mem);
	static const struct sampling loads = {
		.command = "mem",
		.aggregation = "mem",
		.where_fields = WHERE_OF_DATA,
		.default_keys = "source,comm,symbol",
		.annotated_keys = ANNOTATED_KEYS_OF_DATA,
		.stream_keys = "ip,pid,tid,cpu,comm",
		.stream_shows = "addr,latency,period,source",
		.code_keys = data_code_keys,
		.knows_throttling = true,
		.complete = mem_complete,
	};
	static const struct sampling shared = {
		.command = "mem",
		.aggregation = "mem",
		.where_fields = WHERE_OF_DATA,
		.default_keys = SHARED_KEYS,
		.stream_keys = "ip,pid,tid,cpu,comm",
		.stream_shows = "addr,latency,period,source",
		.code_keys = data_code_keys,
		.knows_throttling = true,
		.complete = mem_complete,
		.follow = write_shared_lines,
	};
	static const struct sampling calls = {
		.command = "mem",
		.aggregation = "mem",
		.where_fields = WHERE_OF_DATA,
		.default_keys = "source,comm,stack",
		.stream_keys = "ip,pid,tid,cpu,comm",
		.stream_shows = "addr,latency,period,source",
		.code_keys = stack_code_keys,
		.ahead = "frames",
		.put = sampling_put_stacks,
		.gathering = &gathering_of_stacks,
		.places = true,
		.names = FRAME_DETAIL,
		.knows_throttling = true,
		.complete = mem_complete,
	};
	struct options *options = activity->options;
	const struct mem_options *own = options->own;

	activity->ops = &ops;
	if (call_stacks_choose(activity, refusal))
		return -1;
	if (options->call_graph && check_keys_beside_stacks(options, refusal))
		return -1;
	activity->details = own->shared ? &shared : options->call_graph ? &calls : &loads;
	activity->heavy = true;
	/* --shared is about cache lines anyway, and needs more keys than `cacheline`. */
	if (own->shared && options->by && !strcmp(options->by, "cacheline"))
		options->by = NULL;
	return 0;
}

static const struct activity_type type = {choose, .records = "mem,shared_line,frames,annotation,sample,lost"};

static const struct record_type mem_record = {
	.name = "mem",
	.list = "entries",
	.kept = {"event", "nth", "start_time", "duration_ns", "merged"},
	.code = {"code"},
};
REGISTER_RECORD(mem_record);

static const struct record_type shared_line_record = {
	.name = "shared_line",
	.list = "entries",
	.kept = {"event", "nth", "start_time", "duration_ns", "merged", "cacheline"},
	.code = {"code"},
};
REGISTER_RECORD(shared_line_record);

static const char *const sides[] = {"u", "k", NULL};

static const char *const keys[] = {"variable",	"variable_offset",
				   "comm",	"symbol",
				   "line",	"module",
				   "place",	"ip",
				   "pid",	"tid",
				   "cpu",	"cgroup",
				   "cacheline", "offset",
				   "page",	"phys_page",
				   "node",	"tlb",
				   "lock",	"stack",
				   NULL};

static const struct option_row rows[] = {
	{0, "by", "KEYS", OPTION_TEXT, COMMON(by), .words = keys, .again = AGAIN_JOINS,
	 .help = "keys to aggregate by, besides source, which is always one: any of "
		 "pid,tid,comm,cpu,cgroup,cacheline,offset,page,phys_page,node,tlb,lock,stack, names of the "
		 "code (symbol, line, module, place) and its address, ip; names of the data (variable, "
		 "variable_offset, type) (default comm,symbol)"},
	{0, "annotate", "FUNCTION", OPTION_TEXT, COMMON(annotate), .again = AGAIN_REFUSED,
	 .help = "show the code of FUNCTION: source lines and instructions, each with its samples, their "
		 "latency, and the sources of their data"},
	{0, "shared", NULL, OPTION_FLAG, OWN(struct mem_options, shared),
	 .help = "report cache lines that are shared between cores, and who loads from and stores to which "
		 "offsets; samples stores too where the PMU's driver names an event for them"},
	{0, "stream", NULL, OPTION_FLAG, COMMON(stream),
	 .help = "write each sample as a record as well, in the order of time, with the keys of --by"},
	{0, "loads", NULL, OPTION_FLAG, OWN(struct mem_options, loads),
	 .help = "sample loads, as the PMU's driver names them (the default); with --stores both, by turns "
		 "if they share a counter"},
	{0, "stores", NULL, OPTION_FLAG, OWN(struct mem_options, stores),
	 .help = "sample stores, if the PMU's driver names an event for them (not on Nehalem)"},
	/* guide, Table 17 */
	{0, "ldlat", "CYCLES", OPTION_NUMBER, OWN(struct mem_options, ldlat), .least = 3, .most = 65535,
	 .help = "sample loads that take longer than this many core cycles, at least 3 (default 30)"},
	{0, "side", "u|k", OPTION_WORD, OWN(struct mem_options, side), .words = sides,
	 .help = "only the user's side (u) or the kernel's (k)"},
	{0},
};

static const struct command mem = {
	.name = "mem",
	.arguments = "[OPTIONS] [-- COMMAND …]",
	.help = "samples loads, with where they found their data and how long they took",
	.options = {event_rows, sampling_rows, where_rows, stack_rows, rows, target_rows, interval_rows,
		    top_rows, stream_rows, format_rows, screen_rows, plan_rows, table_rows, host_rows,
		    machine_rows, help_rows},
	.own_size = sizeof(struct mem_options),
	.activity = &type,
};
REGISTER_COMMAND(mem);
