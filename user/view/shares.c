// SPDX-License-Identifier: GPL-2.0-only
#include "view/shares.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alternatives.h"
#include "base/array.h"
#include "base/interned.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/visible.h"
#include "output/activities.h"
#include "output/calls.h"
#include "output/member.h"
#include "output/rows.h"
#include "output/texts.h"
#include "view/tree.h"
#include "view/weights.h"

#define KEYS_MOST	12
#define HEADING_COLUMNS 200 /* of an event's name above its table */

#define LATENCY_POWERS 20 /* powers of two of cycles; the last one has all that are longer */

/* The key of a row: the numbers of its texts. */
struct row_key {
	__u32 texts[KEYS_MOST];
};

struct share_row {
	struct stood_for self[2], total[2]; /* in the first stream and in the second */
	double latency, measured, longest;  /* mem: cycles, and occurrences that they are of */
	double predicted, mispredicted;	    /* branch */
	double *spread; /* mem: occurrences by the power of two of their latency; NULL: none */
	size_t seen;	/* the entry that has added to `total` last */
	size_t file; /* differences: whose code it is, a share_file plus 1; 0: several files', or not known */
	bool unnamed; /* the function has no name, only a place in the file */
};

/* A file with code. Its names can be late: until they are read, records have places instead. What is named in
 * one stream would look new beside another that has its places. */
struct share_file {
	bool named;		     /* some of its functions have names, or are known by their bounds */
	struct stood_for unnamed[2]; /* what is of the others, in the first stream and the second */
	size_t seen;		     /* the entry that has added to `unnamed` last */
};

/* The samples of an event. */
struct share_table {
	const struct measurement *measured;
	char *keys[KEYS_MOST];
	size_t nr_keys;
	struct interned numbers; /* of the rows */
	struct share_row *rows;
	size_t room;
	struct stood_for whole[2], passed[2], rest[2];
	json_int_t rest_entries;
	double expected, throttled;
	bool at_least; /* some of what occurred was not counted */
	double duration_ns[2], enabled, running;
	json_t *lost;	 /* {cause: samples} */
	const char *why; /* why there are no samples, as interned text; NULL: not told */
	bool stacks, latency, predicted, branches, known_keys, by_function, lines;
	struct way_tree ways;
	struct interned modules; /* the number of the path of each file */
	struct share_file *files;
	size_t files_room;
};

struct share_tables {
	struct shares_wanted wanted;
	struct calls calls;
	struct numbered_texts texts;
	json_t *keys;	   /* names of all keys that entries have */
	json_t *functions; /* names of all functions, if one is wanted */
	struct activities activities;
	struct share_table *tables;
	size_t nr, entries;
	int stream;
	char program[2][16]; /* comm of the program that each stream measured */
	bool whole[2];	     /* the stream is of the whole run of a command */
	struct call *stack;  /* of the entry that is being taken in, the outermost first */
	size_t depth, stack_room;
};

struct share_tables *shares_new(const struct shares_wanted *wanted)
{
	struct share_tables *shares = xcalloc(1, sizeof(*shares));

	shares->wanted = *wanted;
	shares->keys = json_object();
	shares->functions = json_object();
	activities_begin(&shares->activities);
	numbered_texts_init(&shares->texts);
	return shares;
}

static void release_table(struct share_table *table)
{
	for (size_t i = 0; i < table->nr_keys; i++)
		free(table->keys[i]);
	way_tree_release(&table->ways);
	json_decref(table->lost);
	for (size_t i = 0; i < table->numbers.nr; i++)
		free(table->rows[i].spread);
	free(table->rows);
	free(table->files);
	interned_release(&table->modules);
	interned_release(&table->numbers);
}

void shares_release(struct share_tables *shares)
{
	for (size_t i = 0; i < shares->nr; i++)
		release_table(&shares->tables[i]);
	free(shares->tables);
	free(shares->stack);
	calls_release(&shares->calls);
	numbered_texts_release(&shares->texts);
	json_decref(shares->keys);
	json_decref(shares->functions);
	activities_release(&shares->activities);
	free(shares);
}

void shares_second(struct share_tables *shares)
{
	shares->stream = 1;
	activities_second(&shares->activities);
	calls_release(&shares->calls); /* frames are numbered anew in each run */
}

size_t shares_tables(const struct share_tables *shares)
{
	return shares->nr;
}

/* --- keys ------------------------------------------------------------------------------------- */

/* perf's names of keys. */
static const struct {
	const char *of_perf, *ours;
} other_names[] = {{"dso", "module"}, {"sym", "symbol"}, {"srcline", "line"}, {"overhead", "share"}};

static const char *our_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(other_names); i++)
		if (!strcmp(name, other_names[i].of_perf))
			return other_names[i].ours;
	return name;
}

static void add_key(struct share_table *table, const char *name, size_t length)
{
	char *key = strndup(name, length);

	had(key);
	for (size_t i = 0; i < table->nr_keys; i++)
		if (!strcmp(table->keys[i], our_name(key))) {
			free(key);
			return;
		}
	if (table->nr_keys < KEYS_MOST)
		table->keys[table->nr_keys++] = xstrdup(our_name(key));
	free(key);
}

static void add_asked_keys(struct share_table *table, const char *by)
{
	const char *word = NULL;
	size_t length = 0;

	while ((word = list_next(by, word, &length)))
		add_key(table, word, length);
}

/* Members of an entry that are no keys of rows. */
static bool is_no_column(const char *name)
{
	static const char *const names[] = {"stack", "stack_lost", "truncated",	   "incomplete",
					    "count", "kind",	   "mispredicted", "mispredicted_period"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !row_is_key(name);
}

/* The keys that entries have, unless others were asked for. A difference has the function without its module,
 * since another build of the program may have another name. */
static void add_own_keys(const struct share_tables *shares, struct share_table *table, const json_t *entries)
{
	const char *name, *function = shares->wanted.diff ? "symbol" : "code";
	json_t *entry, *value;
	size_t i;

	json_array_foreach(entries, i, entry)
		json_object_foreach(entry, name, value)
			if (!is_no_column(name) && !json_is_object(value))
				add_key(table, name, strlen(name));
	json_array_foreach(entries, i, entry)
		json_object_foreach(entry, name, value)
			if (json_is_object(value) && !is_no_column(name))
				add_key(table, strcmp(name, "code") ? name : function,
					strlen(strcmp(name, "code") ? name : function));
	json_array_foreach(entries, i, entry)
		table->lines |= cell_has_line(json_object_get(entry, "code"));
	if (table->lines && !shares->wanted.diff)
		add_key(table, "line", strlen("line"));
	if (table->stacks && (!table->branches || shares->wanted.children)) /* a branch's is in `from` */
		add_key(table, function, strlen(function));
}

/* The same of a single sample, of which each has an address, a CPU and more that would make it a row. */
static void add_keys_of_single(const struct share_tables *shares, struct share_table *table,
			       const json_t *entry)
{
	static const char *const names[] = {"source", "comm"};
	const char *code = shares->wanted.diff ? "symbol" : "code";

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (json_object_get(entry, names[i]))
			add_key(table, names[i], strlen(names[i]));
	if (table->stacks || json_object_get(entry, "code") || !table->nr_keys)
		add_key(table, code, strlen(code));
}

/* What the samples of a record are of: without entries, which someone may have left out to have less, the
 * sources of all loads. */
static const json_t *entries_of(const json_t *record)
{
	const json_t *entries = json_object_get(record, "entries");
	bool other = json_array_size(entries) || json_object_get(record, "rest") ||
		     json_object_get(record, "parts");

	return other ? entries : json_object_get(record, "sources") ?: entries;
}

static void choose_keys(const struct share_tables *shares, struct share_table *table, const json_t *record)
{
	const json_t *entries = entries_of(record);

	if (table->known_keys || !json_array_size(entries))
		return;
	table->known_keys = true;
	if (shares->wanted.by)
		add_asked_keys(table, shares->wanted.by);
	else if (json_object_get(record, "sample_time"))
		add_keys_of_single(shares, table, json_array_get(entries, 0));
	else if (entries != json_object_get(record, "entries"))
		add_key(table, "source", strlen("source"));
	else
		add_own_keys(shares, table, entries);
	for (size_t i = 0; i < table->nr_keys; i++)
		table->by_function |= !strcmp(table->keys[i], "symbol") || !strcmp(table->keys[i], "code");
}

/* --- taking in -------------------------------------------------------------------------------- */

/* The name of the table for an entry of a record. Edges and ranges are different things, and can't be shares
 * of one whole. */
static char *name_of_table(const json_t *record, const char *kind)
{
	const char *type = string(record, "type");
	json_int_t nth = integer(record, "nth");
	struct text name = {0};

	text_add(&name, "%s", string(record, "event"));
	if (nth)
		text_add(&name, " %lld", (long long)nth);
	if (strcmp(type, "profile"))
		text_add(&name, " (%s)", type);
	if (*kind)
		text_add(&name, ", kind %s", kind);
	return name.bytes;
}

static struct share_table *table_of(struct share_tables *shares, const json_t *record, const char *kind)
{
	struct share_table *table;
	char *name = name_of_table(record, kind);
	const struct measurement *measured = measurement_in(&shares->activities, name, record);

	free(name);
	for (size_t i = 0; i < shares->nr; i++)
		if (shares->tables[i].measured == measured)
			return &shares->tables[i];
	table = xappend(shares->tables, shares->nr);
	*table = (struct share_table){.measured = measured,
				      .lost = json_object(),
				      .branches = !strcmp(string(record, "type"), "branch")};
	interned_init(&table->numbers, sizeof(struct row_key));
	interned_init(&table->modules, sizeof(__u64));
	way_tree_init(&table->ways);
	return table;
}

/* What the cells of an entry are made of. */
static struct cell_source cells_of(const struct share_tables *shares, const json_t *record,
				   const json_t *entry, const struct call *call)
{
	bool renames = shares->stream && *shares->program[0] && *shares->program[1];

	return (struct cell_source){record, entry, call, renames ? shares->program[1] : NULL,
				    renames ? shares->program[0] : NULL};
}

static size_t file_of(struct share_tables *shares, struct share_table *table, const char *module)
{
	__u64 text = text_number(&shares->texts, module); /* interned items are multiples of 8 bytes */
	size_t seen = table->modules.nr;
	__u32 number = interned_number(&table->modules, &text);

	if (number == seen) {
		table->files = xroom(table->files, seen, &table->files_room, sizeof(*table->files));
		table->files[number] = (struct share_file){0};
	}
	return number;
}

/* Whose code it is. */
struct share_code {
	size_t file; /* a share_file plus 1; 0: not known, or not needed */
	bool unnamed;
};

/* Notes what a function tells of its file, also if a filter leaves the function out: samples without a name
 * may be of one that it takes. */
static struct share_code take_code(struct share_tables *shares, struct share_table *table,
				   const struct cell_source *cells, const struct stood_for *weight)
{
	struct call call = cells->call ? *cells->call : cell_function(cells->entry);
	const char *module = string(call.frame, "module");
	struct share_code code = {0};
	struct share_file *file;

	if (!shares->wanted.diff || !table->by_function || !*module)
		return code;
	code.file = file_of(shares, table, module) + 1;
	code.unnamed = calls_is_place(&call);
	file = &table->files[code.file - 1];
	file->named |= !code.unnamed;
	if (code.unnamed && file->seen != shares->entries) {
		file->seen = shares->entries;
		stood_for_add(&file->unnamed[shares->stream], weight);
	}
	return code;
}

static struct share_row *row_of(struct share_tables *shares, struct share_table *table,
				const struct cell_source *cells, const struct share_code *code)
{
	struct row_key key = {0};
	size_t seen = table->numbers.nr;
	char buffer[CELL_TEXT_MAX];
	struct share_row *row;
	__u32 number;

	for (size_t i = 0; i < table->nr_keys; i++) {
		const char *text = cell_text(cells, table->keys[i], buffer, sizeof(buffer));

		if (!text)
			text = *string(cells->entry, "stack_lost") ? "[stack lost]" : "-";
		key.texts[i] = text_number(&shares->texts, text);
	}
	number = interned_number(&table->numbers, &key);
	if (number == seen) {
		table->rows = xroom(table->rows, seen, &table->room, sizeof(*table->rows));
		table->rows[number] = (struct share_row){0};
	}
	row = &table->rows[number];
	row->file = number == seen || row->file == code->file ? code->file : 0;
	row->unnamed = code->unnamed;
	return row;
}

static void add_latency(struct share_table *table, struct share_row *row, const json_t *entry, bool spread)
{
	const char *bound;
	json_t *count;

	json_object_foreach(json_object_get(entry, "latency_histogram_period"), bound, count) {
		double least = strtod(bound, NULL);
		int power = least >= 1 && least < 1e15 ? ilogb(least) : 0;

		row->measured += json_integer_value(count);
		if (!spread)
			continue;
		if (!row->spread)
			row->spread = xcalloc(LATENCY_POWERS, sizeof(*row->spread));
		row->spread[power < LATENCY_POWERS ? power : LATENCY_POWERS - 1] += json_integer_value(count);
	}
	row->latency += integer(entry, "latency_sum_period");
	row->longest = fmax(row->longest, integer(entry, "latency_max"));
	table->latency |= row->measured > 0;
}

static void add_prediction(struct share_table *table, struct share_row *row, const json_t *entry)
{
	bool weighed = json_object_get(entry, "mispredicted_period");

	if (!json_object_get(entry, "mispredicted"))
		return;
	row->predicted += calls_weight(entry);
	row->mispredicted += integer(entry, weighed ? "mispredicted_period" : "mispredicted");
	table->predicted = true;
}

static void take_self(struct share_tables *shares, struct share_table *table, const struct cell_source *cells,
		      const struct stood_for *weight)
{
	struct share_code code = take_code(shares, table, cells, weight);
	struct share_row *row;

	if (!row_filter_takes(shares->wanted.filter, cells))
		return;
	row = row_of(shares, table, cells, &code);
	stood_for_add(&table->passed[shares->stream], weight);
	stood_for_add(&row->self[shares->stream], weight);
	if (shares->stream)
		return;
	add_latency(table, row, cells->entry, shares->wanted.spread);
	add_prediction(table, row, cells->entry);
}

/* Each function of the stack gets the weight once, however often it is in there; without a stack, the one
 * that the samples are in does. */
static void take_totals(struct share_tables *shares, struct share_table *table,
			const struct cell_source *innermost, const struct stood_for *weight)
{
	struct share_code code = take_code(shares, table, innermost, weight);

	if (!shares->depth && row_filter_takes(shares->wanted.filter, innermost))
		stood_for_add(&row_of(shares, table, innermost, &code)->total[shares->stream], weight);
	for (size_t i = 0; i < shares->depth; i++) {
		struct cell_source cells = *innermost;
		struct share_row *row;

		cells.call = &shares->stack[i];
		code = take_code(shares, table, &cells, weight);
		if (!row_filter_takes(shares->wanted.filter, &cells))
			continue;
		row = row_of(shares, table, &cells, &code);
		if (row->seen == shares->entries)
			continue;
		row->seen = shares->entries;
		stood_for_add(&row->total[shares->stream], weight);
	}
}

static void take_entry_of(struct share_tables *shares, struct share_table *table, const json_t *record,
			  const json_t *entry, const struct stood_for *weight)
{
	struct cell_source cells = cells_of(shares, record, entry, NULL);

	if (table->stacks && shares->depth)
		cells.call = &shares->stack[shares->depth - 1];
	cell_keys(&cells, shares->keys);
	take_self(shares, table, &cells, weight);
	if (shares->wanted.children)
		take_totals(shares, table, &cells, weight);
}

/* --- callers and callees ---------------------------------------------------------------------- */

/* Whether a function is the wanted one: by its name, with or without parameters. */
static bool is_wanted(const char *name, const char *wanted)
{
	size_t length = strlen(wanted);

	return !strncmp(name, wanted, length) && (!name[length] || name[length] == '(');
}

/* Adds the ways of an entry that lead to the wanted function, or from it. The outermost place of the function
 * in the stack counts, so that a sample counts once. */
static void take_ways(struct share_tables *shares, struct share_table *table, const struct stood_for *weight)
{
	const char *wanted = shares->wanted.callers ?: shares->wanted.callees;
	__u32 *names = xmalloc((shares->depth + 1) * sizeof(*names));
	size_t at = shares->depth, nr = 0;
	char name[CALLS_NAME_MAX];

	for (size_t i = 0; i < shares->depth; i++) {
		calls_name(&shares->stack[i], name, sizeof(name));
		names[i] = text_number(&shares->texts, name);
		json_object_set_new(shares->functions, text_of_number(&shares->texts, names[i]), json_true());
		if (at == shares->depth && is_wanted(name, wanted))
			at = i;
	}
	if (at < shares->depth && shares->wanted.callees) {
		way_tree_add(&table->ways, names + at, shares->depth - at, weight);
	} else if (at < shares->depth) {
		for (nr = 0; nr < (at + 1) / 2; nr++) {
			__u32 other = names[nr];

			names[nr] = names[at - nr];
			names[at - nr] = other;
		}
		way_tree_add(&table->ways, names, at + 1, weight);
	}
	free(names);
}

static void take_entry_of_record(struct share_tables *shares, const json_t *record, const json_t *entry)
{
	struct share_table *table = table_of(shares, record, string(entry, "kind"));
	bool ways = shares->wanted.callers || shares->wanted.callees;
	struct stood_for weight = stood_for_by(entry);
	struct cell_source cells = cells_of(shares, record, entry, NULL);

	shares->entries++;
	table->stacks |= !!json_object_get(entry, "stack");
	stood_for_add(&table->whole[shares->stream], &weight);
	choose_keys(shares, table, record);
	shares->depth = calls_path(&shares->calls, entry, &shares->stack, &shares->stack_room);
	if (!ways) {
		take_entry_of(shares, table, record, entry, &weight);
		return;
	}
	if (shares->depth)
		cells.call = &shares->stack[shares->depth - 1];
	cell_keys(&cells, shares->keys);
	if (row_filter_takes(shares->wanted.filter, &cells))
		take_ways(shares, table, &weight);
}

/* Takes in the account of an interval: how many samples there should be, and where the others are. */
static void take_account(struct share_tables *shares, struct share_table *table, const json_t *record)
{
	const json_t *samples = json_object_get(record, "samples"), *rest = json_object_get(record, "rest");
	struct stood_for others = stood_for_by(rest);
	const char *cause;
	json_t *count;

	json_object_foreach(json_object_get(samples, "lost"), cause, count)
		json_object_set_new(
			table->lost, cause,
			json_integer(count_sum(integer(table->lost, cause), json_integer_value(count))));
	table->expected += integer(samples, "expected");
	table->duration_ns[shares->stream] += integer(record, "duration_ns");
	table->enabled += integer(record, "enabled_ns");
	table->running += integer(record, "running_ns");
	table->throttled += integer(samples, "throttled");
	table->at_least |= json_is_true(json_object_get(samples, "at_least"));
	if (*string(record, "no_samples"))
		table->why = text_of_number(&shares->texts,
					    text_number(&shares->texts, string(record, "no_samples")));
	stood_for_add(&table->rest[shares->stream], &others);
	stood_for_add(&table->whole[shares->stream], &others);
	table->rest_entries = count_sum(table->rest_entries, integer(rest, "entries"));
}

static void take_samples(void *context, const json_t *record)
{
	struct share_tables *shares = context;
	json_t *entry;
	size_t i;

	if (integer(record, "part") <= 1)
		take_account(shares, table_of(shares, record, calls_kind(record)), record);
	json_array_foreach(entries_of(record), i, entry)
		take_entry_of_record(shares, record, entry);
}

static void take_start(struct share_tables *shares, const json_t *record)
{
	const char *program = measured_program(record), *slash = program ? strrchr(program, '/') : NULL;

	activities_start(&shares->activities, record);
	shares->whole[shares->stream] = false;
	snprintf(shares->program[shares->stream], sizeof(shares->program[0]), "%.15s",
		 slash	   ? slash + 1
		 : program ? program
			   : "");
}

void shares_take(struct share_tables *shares, const json_t *record)
{
	const char *type = string(record, "type");

	if (!strcmp(type, "start"))
		take_start(shares, record);
	else if (!strcmp(type, "end"))
		shares->whole[shares->stream] =
			json_object_get(record, "command") && !strcmp(string(record, "reason"), "exited");
	else if (!strcmp(type, "frames"))
		calls_define(&shares->calls, record);
	else if (list_has(COMMANDS_OF_STACKS, type))
		calls_each_part(record, take_samples, shares);
}

/* --- refusals --------------------------------------------------------------------------------- */

static int refuse_key(const struct share_tables *shares, const char *option, const char *key,
		      struct refusal *refusal)
{
	struct alternatives alternatives;
	const char *name;
	json_t *value;

	alternatives_begin(&alternatives, key, strlen(key));
	json_object_foreach(shares->keys, name, value)
		if (strcmp(name, "samples") && strcmp(name, "count") && strcmp(name, "period"))
			alternatives_offer(&alternatives, name);
	refuse(refusal, STATUS_USAGE, "option --%s %.100s", option, key);
	because(refusal, "the records have no such key; they have %s", alternatives.all);
	return alternatives_end(&alternatives, refusal, "nhmtap profile --by KEYS records others");
}

static int check_keys(const struct share_tables *shares, struct refusal *refusal)
{
	const struct row_filter *filter = shares->wanted.filter;
	const char *word = NULL;
	size_t length = 0;

	while ((word = list_next(shares->wanted.by, word, &length))) {
		char key[100];

		snprintf(key, sizeof(key), "%.*s", (int)length, word);
		if (!json_object_get(shares->keys, our_name(key)))
			return refuse_key(shares, "by", key, refusal);
	}
	for (size_t i = 0; i < filter->nr; i++)
		if (!json_object_get(shares->keys, filter->conditions[i].key))
			return refuse_key(shares, "filter", filter->conditions[i].key, refusal);
	return 0;
}

static bool have_stacks(const struct share_tables *shares)
{
	for (size_t i = 0; i < shares->nr; i++)
		if (shares->tables[i].stacks)
			return true;
	return false;
}

static int check_function(const struct share_tables *shares, struct refusal *refusal)
{
	const char *wanted = shares->wanted.callers ?: shares->wanted.callees;
	struct nearest nearest;
	char names[300];
	const char *name;
	json_t *value;

	for (size_t i = 0; i < shares->nr; i++)
		if (shares->tables[i].ways.keys.nr)
			return 0;
	refuse(refusal, STATUS_USAGE, "option --%s %.200s", shares->wanted.callers ? "callers" : "callees",
	       wanted);
	nearest_begin(&nearest, wanted, 3);
	json_object_foreach(shares->functions, name, value)
		nearest_offer(&nearest, name);
	because(refusal, "no stack %shas a function of this name",
		shares->wanted.filter->nr ? "that passes the filter " : "");
	if (nearest_print(&nearest, names, sizeof(names)))
		return instead(refusal, "similar ones: %s", names);
	return instead(refusal, "nhmtap show --by symbol --children lists them");
}

/* Names that rows can be sorted by, besides their keys. */
static const char *const orders[] = {"share", "samples", "self",	 "total", "mean",
				     "max",   "change",	 "mispredicted", NULL};

static int check_order(const struct share_tables *shares, struct refusal *refusal)
{
	const char *sort = shares->wanted.sort, *name;
	struct alternatives alternatives;
	json_t *value;

	if (!sort || json_object_get(shares->keys, our_name(sort)))
		return 0;
	for (size_t i = 0; orders[i]; i++)
		if (!strcmp(orders[i], our_name(sort)))
			return 0;
	alternatives_begin(&alternatives, sort, strlen(sort));
	alternatives_offer_all(&alternatives, orders);
	json_object_foreach(shares->keys, name, value)
		alternatives_offer(&alternatives, name);
	refuse(refusal, STATUS_USAGE, "option --sort %.100s", sort);
	because(refusal, "rows are sorted by share, samples, total, mean, max, mispredicted, change, or by "
			 "one of their keys");
	return alternatives_end(&alternatives, refusal,
				"--by groups rows by keys, as perf report's --sort does: --by "
				"comm,module,symbol");
}

int shares_check(const struct share_tables *shares, struct refusal *refusal)
{
	const struct shares_wanted *wanted = &shares->wanted;
	bool ways = wanted->callers || wanted->callees;

	if ((ways || wanted->children) && !have_stacks(shares)) {
		refuse(refusal, STATUS_USAGE, "option --%s",
		       wanted->children	 ? "children"
		       : wanted->callers ? "callers"
					 : "callees");
		because(refusal, "there are no stacks in these records");
		return instead(refusal, "record them with nhmtap profile -g");
	}
	if (wanted->by && !shares->nr) {
		refuse(refusal, STATUS_USAGE, "option --by %.100s", wanted->by);
		because(refusal, "there are no samples in these records, which it groups");
		return instead(refusal, "leave it out: --filter chooses counts by their events");
	}
	if (json_object_size(shares->keys) && check_keys(shares, refusal))
		return -1;
	if (check_order(shares, refusal))
		return -1;
	return ways ? check_function(shares, refusal) : 0;
}

/* --- printing --------------------------------------------------------------------------------- */

/* The table that is printed. */
struct printed_table {
	const struct share_tables *shares;
	const struct share_table *table;
	__u32 *order;
	size_t nr;
	bool amounts;		  /* a difference is of whole runs */
	bool marked;		  /* a row was marked as within its error */
	struct stood_for late[2]; /* of all files */
};

static const struct stood_for *weight_of_row(const struct printed_table *printed, size_t row, int stream)
{
	const struct share_row *of = &printed->table->rows[row];

	return printed->shares->wanted.children ? &of->total[stream] : &of->self[stream];
}

/* How a row has changed: in the units of weights if whole runs are compared, else in percentage points. */
static double change_of(const struct printed_table *printed, size_t row)
{
	const struct stood_for *before = weight_of_row(printed, row, 0),
			       *now = weight_of_row(printed, row, 1);
	const struct share_table *table = printed->table;

	if (printed->amounts)
		return now->sum - before->sum;
	return weight_share(now, &table->whole[1]) - weight_share(before, &table->whole[0]);
}

static bool is_late(const struct printed_table *printed, size_t row)
{
	const struct share_row *of = &printed->table->rows[row];

	return of->unnamed && of->file && printed->table->files[of->file - 1].named;
}

/* A stack that leads through several files is in the sum of each, but not beyond the whole. */
static void sum_late(struct printed_table *printed)
{
	const struct share_table *table = printed->table;

	for (int stream = 0; stream < 2; stream++) {
		struct stood_for *late = &printed->late[stream];

		for (size_t file = 0; file < table->modules.nr; file++)
			if (table->files[file].named)
				stood_for_add(late, &table->files[file].unnamed[stream]);
		if (late->sum > table->whole[stream].sum)
			*late = table->whole[stream];
	}
}

/* By how much a change may be too large: all that has no name in the file may be of this row. */
static double late_error(const struct printed_table *printed, size_t row)
{
	int stream = change_of(printed, row) < 0;
	size_t number = printed->table->rows[row].file;
	const struct share_file *file = number ? &printed->table->files[number - 1] : NULL;
	const struct stood_for *late = file ? &file->unnamed[stream] : &printed->late[stream];

	if (file && !file->named)
		return 0;
	return printed->amounts ? late->sum : weight_share(late, &printed->table->whole[stream]);
}

static double sampling_error(const struct printed_table *printed, size_t row)
{
	const struct stood_for *before = weight_of_row(printed, row, 0),
			       *now = weight_of_row(printed, row, 1);
	const struct share_table *table = printed->table;

	if (printed->amounts)
		return difference_error(before, now);
	return hypot(weight_share_error(before, &table->whole[0]), weight_share_error(now, &table->whole[1]));
}

static double change_error(const struct printed_table *printed, size_t row)
{
	return sampling_error(printed, row) + late_error(printed, row);
}

static double mean_of(const struct share_row *row)
{
	return row->measured ? row->latency / row->measured : 0;
}

static const char *key_text(const struct printed_table *printed, size_t row, size_t key)
{
	const struct row_key *of = interned_at(&printed->table->numbers, row);

	return text_of_number(&printed->shares->texts, of->texts[key]);
}

/* The key that rows are sorted by; nr_keys if it is none. */
static size_t sorted_key(const struct printed_table *printed)
{
	const char *sort = printed->shares->wanted.sort;
	size_t i = 0;

	while (i < printed->table->nr_keys && (!sort || strcmp(our_name(sort), printed->table->keys[i])))
		i++;
	/* A cell of code begins with the symbol. */
	if (i == printed->table->nr_keys && sort && !strcmp(our_name(sort), "symbol"))
		for (i = 0; i < printed->table->nr_keys && strcmp(printed->table->keys[i], "code");)
			i++;
	return i;
}

/* The number that rows are sorted by, the largest first. */
static double rank_of_row(const struct printed_table *printed, size_t row)
{
	const char *sort = printed->shares->wanted.sort ?: printed->shares->wanted.diff ? "change" : "share";
	const struct share_row *of = &printed->table->rows[row];

	if (!strcmp(sort, "change"))
		return fabs(change_of(printed, row));
	if (!strcmp(sort, "samples"))
		return weight_of_row(printed, row, 0)->samples;
	if (!strcmp(sort, "self"))
		return of->self[0].sum;
	if (!strcmp(sort, "mean"))
		return mean_of(of);
	if (!strcmp(sort, "max"))
		return of->longest;
	if (!strcmp(sort, "mispredicted"))
		return of->mispredicted;
	return weight_of_row(printed, row, 0)->sum;
}

/* Texts that are numbers are in the order of numbers. */
static int by_text(const char *a, const char *b)
{
	char *end, *other;
	double x = strtod(a, &end), y = strtod(b, &other);

	if (end > a && other > b && !*end && !*other && x != y)
		return x < y ? -1 : 1;
	return strcmp(a, b);
}

static int by_rank(const void *a, const void *b, void *of)
{
	const struct printed_table *printed = of;
	__u32 x = *(const __u32 *)a, y = *(const __u32 *)b;
	size_t key = sorted_key(printed);
	double one = rank_of_row(printed, x), other = rank_of_row(printed, y);
	int names = key < printed->table->nr_keys
			    ? by_text(key_text(printed, x, key), key_text(printed, y, key))
			    : 0;

	if (names)
		return names;
	if (one == other) {
		one = weight_of_row(printed, x, 0)->sum;
		other = weight_of_row(printed, y, 0)->sum;
	}
	if (one != other)
		return one > other ? -1 : 1;
	for (size_t i = 0; i < printed->table->nr_keys && !names; i++)
		names = strcmp(key_text(printed, x, i), key_text(printed, y, i));
	return names;
}

static double largest_share(const struct printed_table *printed, size_t row)
{
	const struct share_table *table = printed->table;

	return fmax(weight_share(weight_of_row(printed, row, 0), &table->whole[0]),
		    weight_share(weight_of_row(printed, row, 1), &table->whole[1]));
}

static void grouped_cell(struct sheet *sheet, double number)
{
	char text[40];

	sheet_add(sheet, "%s",
		  row_grouped(number < 0x1p63 ? (json_int_t)number : LLONG_MAX, text, sizeof(text)));
}

static void share_cells(struct sheet *sheet, const struct stood_for *part, const struct stood_for *whole)
{
	sheet_add(sheet, "%.1f%%", weight_share(part, whole));
	sheet_add(sheet, "%.1f", weight_share_error(part, whole));
}

/* The bars from 1 cycle to the longest latencies that a table has. */
static void spread_cell(const struct printed_table *printed, struct sheet *sheet, const struct share_row *of)
{
	double shown[LATENCY_POWERS] = {0};
	int powers = 1;

	for (size_t row = 0; row < printed->table->numbers.nr; row++)
		for (int i = powers; printed->table->rows[row].spread && i < LATENCY_POWERS; i++)
			powers = printed->table->rows[row].spread[i] ? i + 1 : powers;
	if (of->spread)
		memcpy(shown, of->spread, sizeof(shown));
	sheet_bars(sheet, shown, powers);
}

static void weight_cells(const struct printed_table *printed, struct sheet *sheet, size_t row)
{
	const struct share_table *table = printed->table;
	const struct share_row *of = &table->rows[row];

	grouped_cell(sheet, weight_of_row(printed, row, 0)->samples);
	if (printed->shares->wanted.children)
		share_cells(sheet, &of->total[0], &table->whole[0]);
	share_cells(sheet, &of->self[0], &table->whole[0]);
	if (table->latency) {
		sheet_add(sheet, of->measured ? "%.0f" : "", mean_of(of));
		grouped_cell(sheet, of->longest);
		if (printed->shares->wanted.spread)
			spread_cell(printed, sheet, of);
	}
	if (table->predicted)
		sheet_add(sheet, of->predicted ? "%.1f%%" : "",
			  100 * of->mispredicted / fmax(of->predicted, 1));
}

/* "+5.3%" of what it was, or "+5.3" points. */
static void change_cells(struct printed_table *printed, struct sheet *sheet, size_t row)
{
	double before = weight_of_row(printed, row, 0)->sum, change = change_of(printed, row);
	double error = change_error(printed, row), unit = printed->amounts ? before / 100 : 1;
	bool within = fabs(change) <= error;

	for (int stream = 0; stream < 2; stream++)
		sheet_add(sheet, "%.1f%%",
			  weight_share(weight_of_row(printed, row, stream), &printed->table->whole[stream]));
	if (unit) {
		sheet_add(sheet, printed->amounts ? "%+.1f%%" : "%+.1f", change / unit);
		sheet_add(sheet, "%.1f", error / unit);
	} else {
		sheet_add(sheet, "new");
		sheet_add(sheet, "%s", "");
	}
	sheet_add(sheet, "%s", within ? "~" : "");
	printed->marked |= within;
}

static void add_columns(const struct printed_table *printed, struct sheet *sheet)
{
	static const char *const of_diff[] = {"first", "second", NULL, "±", ""};
	bool children = printed->shares->wanted.children;

	if (printed->shares->wanted.diff) {
		for (size_t i = 0; i < ARRAY_SIZE(of_diff); i++)
			sheet_column(sheet, of_diff[i] ?: printed->amounts ? "change" : "points", true);
	} else {
		sheet_column(sheet, printed->table->branches ? "branches" : "samples", true);
		if (children) {
			sheet_column(sheet, "total", true);
			sheet_column(sheet, "±", true);
		}
		sheet_column(sheet, children ? "self" : "share", true);
		sheet_column(sheet, "±", true);
		if (printed->table->latency) {
			sheet_column(sheet, "mean", true);
			sheet_column(sheet, "max", true);
			if (printed->shares->wanted.spread)
				sheet_column(sheet, "2^n cycles", false);
		}
		if (printed->table->predicted)
			sheet_column(sheet, "mispredicted", true);
	}
	for (size_t i = 0; i < printed->table->nr_keys; i++)
		sheet_column(sheet, printed->table->keys[i], false);
}

/* The name of the function that a row is of; "" if there is none. */
static void tag_row(const struct printed_table *printed, struct sheet *sheet, size_t row)
{
	static const char *const keys[] = {"symbol", "code", "from"};
	char name[CELL_TEXT_MAX] = "";

	for (size_t i = 0; i < ARRAY_SIZE(keys) && !*name; i++)
		for (size_t key = 0; key < printed->table->nr_keys && !*name; key++)
			if (!strcmp(printed->table->keys[key], keys[i]))
				cell_symbol(name, sizeof(name), keys[i], key_text(printed, row, key));
	sheet_tag(sheet, name);
}

static void add_rows(struct printed_table *printed, struct sheet *sheet)
{
	char shown[CELL_TEXT_MAX];

	for (size_t i = 0; i < printed->nr; i++) {
		size_t row = printed->order[i];

		if (printed->shares->wanted.diff)
			change_cells(printed, sheet, row);
		else
			weight_cells(printed, sheet, row);
		for (size_t key = 0; key < printed->table->nr_keys; key++) {
			visible(shown, sizeof(shown), key_text(printed, row, key));
			sheet_add(sheet, "%s", shown);
		}
		tag_row(printed, sheet, row);
	}
}

/* Sorts the rows, and keeps those that are to be shown. Returns the sum of the others. */
static struct stood_for choose_rows(struct printed_table *printed, size_t *left_out)
{
	const struct shares_wanted *wanted = &printed->shares->wanted;
	size_t nr = printed->table->numbers.nr, kept = 0;
	struct stood_for others = {0};

	printed->order = xmalloc((nr + 1) * sizeof(*printed->order));
	for (size_t i = 0; i < nr; i++)
		if (!is_late(printed, i))
			printed->order[kept++] = i;
	nr = kept;
	kept = 0;
	qsort_r(printed->order, nr, sizeof(*printed->order), by_rank, printed);
	for (size_t i = 0; i < nr; i++) {
		__u32 row = printed->order[i];

		if ((!wanted->top || kept < wanted->top) && largest_share(printed, row) >= wanted->least)
			printed->order[kept++] = row;
		else
			stood_for_add(&others, &printed->table->rows[row].self[0]);
	}
	printed->nr = kept;
	*left_out = nr - kept;
	return others;
}

static void add_rest(const struct printed_table *printed, struct text *text, const struct stood_for *others,
		     size_t left_out)
{
	const struct share_table *table = printed->table;
	char number[40], rows[40];

	if (left_out && printed->shares->wanted.diff)
		text_add(text, "# %s more\n", row_counted(left_out, "row", rows, sizeof(rows)));
	else if (left_out)
		text_add(text, "# %s (%.1f%%%s) in %s more\n",
			 row_counted(others->samples, "sample", number, sizeof(number)),
			 weight_share(others, &table->whole[0]),
			 printed->shares->wanted.children ? " by themselves" : "",
			 row_counted(left_out, "row", rows, sizeof(rows)));
	if (table->rest[0].samples)
		text_add(text,
			 "# %s samples (%.1f%%) were summed up when they were recorded (--top, --memory)\n",
			 row_grouped(table->rest[0].samples, number, sizeof(number)),
			 weight_share(&table->rest[0], &table->whole[0]));
}

/* Says how much is not compared. */
static void add_late(const struct printed_table *printed, struct text *text)
{
	char number[40], second[40];

	if (!printed->late[0].samples && !printed->late[1].samples)
		return;
	text_add(text,
		 "# %s samples (%.1f%%) of the first and %s (%.1f%%) of the second are of functions whose "
		 "names were not read yet: they are not compared, and ± covers how much smaller a change may "
		 "be for them, not how much larger; nhmtap symbolize adds names that can still be read\n",
		 row_grouped(printed->late[0].samples, number, sizeof(number)),
		 weight_share(&printed->late[0], &printed->table->whole[0]),
		 row_grouped(printed->late[1].samples, second, sizeof(second)),
		 weight_share(&printed->late[1], &printed->table->whole[1]));
}

static void add_heading(const struct printed_table *printed, struct text *text)
{
	const struct share_table *table = printed->table;
	char *title = measurement_title(&printed->shares->activities, table->measured);
	char number[40], second[40];

	text_add_shortened(text, title, HEADING_COLUMNS);
	text_add(text, ": %s",
		 row_counted(table->whole[0].samples, table->branches ? "branch" : "sample", number,
			     sizeof(number)));
	if (table->duration_ns[0])
		text_add(text, " in %.3f s", table->duration_ns[0] / 1e9);
	if (printed->shares->wanted.diff)
		text_add(text, "; second: %s", row_grouped(table->whole[1].samples, second, sizeof(second)));
	if (table->duration_ns[1])
		text_add(text, " in %.3f s", table->duration_ns[1] / 1e9);
	text_add(text, "\n");
	free(title);
}

/* Where a function may be that is in no row. */
static const char *beyond_rows(const struct share_tables *shares, const struct share_table *table)
{
	if (strcmp(shares->wanted.filter->conditions[0].key, "symbol") || !table->by_function)
		return "";
	if (table->stacks)
		return shares->wanted.children ? "" : ", with --children also what only calls others";
	return table->lines ? "" : "; inlined functions have names in what profile -g or --by line records";
}

/* Says what can't be trusted, or is not all. */
static void add_remarks(const struct printed_table *printed, struct text *text)
{
	const struct row_filter *filter = printed->shares->wanted.filter;
	const struct share_table *table = printed->table;
	char number[40], expected[40];
	const char *cause;
	json_t *count;

	if (table->why && !table->whole[0].samples)
		text_add(text, "# no samples: %s\n", table->why);
	if (table->throttled)
		text_add(text, "# the kernel paused the event %s time%s, because it sampled too often\n",
			 row_grouped(fmin(table->throttled, 9e18), number, sizeof(number)),
			 table->throttled == 1 ? "" : "s");
	if (table->at_least)
		text_add(text, "# there was at least so much: some of it was not counted\n");
	if (table->running < table->enabled)
		text_add(text, "# counted %.1f%% of the time, which these samples are of\n",
			 100 * table->running / table->enabled);
	json_object_foreach(table->lost, cause, count)
		if (json_integer_value(count))
			text_add(text, "# %s of %s expected samples are missing: %s\n",
				 row_grouped(json_integer_value(count), number, sizeof(number)),
				 row_grouped(fmin(table->expected, 9e18), expected, sizeof(expected)), cause);
	if (filter->nr && table->passed[0].samples)
		text_add(text, "# %.1f%% pass the filter; shares are of all samples\n",
			 weight_share(&table->passed[0], &table->whole[0]));
	else if (filter->nr && table->whole[0].samples && !table->numbers.nr)
		text_add(text, "# no row passes the filter; nhmtap show --by %s lists what there is%s\n",
			 filter->conditions[0].key, beyond_rows(printed->shares, table));
}

static void add_ways(const struct printed_table *printed, struct sheet *sheet)
{
	const struct shares_wanted *wanted = &printed->shares->wanted;

	sheet_column(sheet, "samples", true);
	sheet_column(sheet, "share", true);
	sheet_column(sheet, "±", true);
	sheet_column(sheet,
		     wanted->callers ? "function, and below it its callers"
				     : "function, and below it its callees",
		     false);
	way_tree_rows(&printed->table->ways, &printed->shares->texts, &printed->table->whole[0],
		      wanted->least < 0 ? 0.5 : wanted->least, sheet);
}

static void add_table(struct printed_table *printed, struct sheet *sheet, struct text *after)
{
	struct stood_for others;
	size_t left_out;

	sum_late(printed);
	others = choose_rows(printed, &left_out);
	add_columns(printed, sheet);
	add_rows(printed, sheet);
	add_rest(printed, after, &others, left_out);
	add_late(printed, after);
	if (printed->marked)
		text_add(after, "# ~: within what %s of two equal runs, in 19 of 20 cases\n",
			 printed->late[0].samples || printed->late[1].samples
				 ? "sampling and missing names make"
				 : "sampling alone makes");
	free(printed->order);
}

void shares_table(const struct share_tables *shares, size_t i, struct text *before, struct sheet *sheet,
		  struct text *after)
{
	struct printed_table printed = {.shares = shares,
					.table = &shares->tables[i],
					.amounts = shares->whole[0] && shares->whole[1]};

	add_heading(&printed, before);
	add_remarks(&printed, before);
	if (shares->wanted.callers || shares->wanted.callees)
		add_ways(&printed, sheet);
	else
		add_table(&printed, sheet, after);
}

void shares_print(const struct share_tables *shares, struct text *text, int width)
{
	bool ways = shares->wanted.callers || shares->wanted.callees;

	for (size_t i = 0; i < shares->nr; i++) {
		struct sheet sheet = {0};
		struct text after = {0};

		text_add(text, i ? "\n" : "");
		shares_table(shares, i, text, &sheet, &after);
		if (sheet.nr || ways)
			sheet_print(&sheet, text, width);
		if (after.used)
			text_add(text, "%s", after.bytes);
		free(after.bytes);
		sheet_release(&sheet);
	}
}
