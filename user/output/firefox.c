// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile for the Firefox Profiler, in its processed format: docs-developer/processed-profile-format.md and
 * src/types of firefox-devtools/profiler. The version is one that its changelog describes; the viewer
 * upgrades it. Each thread, or what else the keys tell apart, is a thread there.
 *
 * The kernel sums up equal stacks, so only the interval of their samples is known. A thread's stacks are laid
 * out over the interval one after the other, each as long as what it stands for, and not in the order of
 * time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "output/member.h"
#include "output/profiles.h"
#include "output/remarks.h"

#define PROCESSED_VERSION 48
#define GECKO_VERSION	  29 /* the format of Firefox itself that this version was made from */
#define LIBRARY_TYPE	  1  /* of a resource */

enum { CATEGORY_OTHER, CATEGORY_USER, CATEGORY_KERNEL };

/* A thread that is being made: its tables as objects of columns. */
struct fox_thread {
	json_t *name, *pid, *tid;
	json_t *strings, *known; /* {kind and key: index}, of strings, stacks, frames and resources */
	json_t *stacks, *frames, *functions, *resources, *samples;
	double weight; /* sum of the samples */
};

struct fox_document {
	const struct calls *calls;
	const json_t *entry; /* that is being added */
	struct fox_thread *threads;
	size_t nr;
	struct fox_thread *thread; /* of the entry; NULL: its owner was not told yet */
	json_t *stack;		   /* of the entry, so far; NULL: it is empty */
	json_t *libs, *known_libs;
	double duration_ms;
};

/* --- tables ----------------------------------------------------------------------------------- */

/* Appends a value to a column, and consumes it. */
static void fox_add(json_t *table, const char *column, json_t *value)
{
	json_t *list = json_object_get(table, column);

	if (!list) {
		list = json_array();
		json_object_set_new(table, column, list);
	}
	json_array_append_new(list, value);
}

static size_t fox_length(const json_t *table)
{
	json_t *column;
	const char *name;

	json_object_foreach((json_t *)table, name, column)
		return json_array_size(column);
	return 0;
}

/* The index of a key in a table: that of its row, or, if it is new, of the row that has to be added. */
static json_t *fox_index(json_t *known, const char *kind, const char *key, size_t next, bool *added)
{
	json_t *name = json_sprintf("%s\n%s", kind, key);
	json_t *index = json_object_get(known, json_string_value(name));

	*added = !index;
	if (!index) {
		index = json_integer(next);
		json_object_set_new(known, json_string_value(name), index);
	}
	json_decref(name);
	return json_incref(index);
}

static json_t *fox_string(struct fox_thread *thread, const char *text)
{
	bool added;
	json_t *index = fox_index(thread->known, "string", text, json_array_size(thread->strings), &added);

	if (added)
		json_array_append_new(thread->strings, json_string(text));
	return index;
}

static const char *fox_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static json_t *fox_lib(struct fox_document *document, const json_t *frame)
{
	const char *path = string(frame, "module"), *base = fox_base(path), *id = string(frame, "build_id");
	bool added;
	json_t *index = fox_index(document->known_libs, "lib", path, json_array_size(document->libs), &added);

	if (added)
		json_array_append_new(document->libs,
				      json_pack("{ss ss ss ss ss ss so}", "arch", "", "name", base, "path",
						path, "debugName", base, "debugPath", path, "breakpadId", "",
						"codeId", *id ? json_string(id) : json_null()));
	return index;
}

/* The file of a function's code; -1: it is not known. */
static json_t *fox_resource(struct fox_document *document, struct fox_thread *thread, const struct call *call)
{
	const char *module = call ? string(call->frame, "module") : "";
	json_t *table = thread->resources, *index;
	bool added;

	if (!*module)
		return json_integer(-1);
	index = fox_index(thread->known, "resource", module, fox_length(table), &added);
	if (!added)
		return index;
	fox_add(table, "lib", fox_lib(document, call->frame));
	fox_add(table, "name", fox_string(thread, fox_base(module)));
	fox_add(table, "host", json_null());
	fox_add(table, "type", json_integer(LIBRARY_TYPE));
	return index;
}

static json_t *fox_function(struct fox_document *document, struct fox_thread *thread, const struct step *step)
{
	const struct call *call = step->call;
	const char *module = call ? string(call->frame, "module") : "";
	json_t *key = json_sprintf("%s\n%s", step->name, module), *table = thread->functions, *index;
	bool added;

	index = fox_index(thread->known, "function", json_string_value(key), fox_length(table), &added);
	json_decref(key);
	if (!added)
		return index;
	fox_add(table, "name", fox_string(thread, step->name));
	fox_add(table, "isJS", json_false());
	fox_add(table, "relevantForJS", json_false());
	fox_add(table, "resource", fox_resource(document, thread, call));
	fox_add(table, "fileName", call && call->file ? fox_string(thread, call->file) : json_null());
	fox_add(table, "lineNumber", json_null());
	fox_add(table, "columnNumber", json_null());
	return index;
}

static int fox_category(const struct step *step)
{
	if (!step->call)
		return CATEGORY_OTHER;
	return calls_of_kernel(step->call->frame) ? CATEGORY_KERNEL : CATEGORY_USER;
}

/* A frame is a line of a function. */
static json_t *fox_frame(struct fox_document *document, struct fox_thread *thread, const struct step *step)
{
	static const char *const unknown[] = {"nativeSymbol", "innerWindowID", "implementation", "column"};
	json_t *function = fox_function(document, thread, step), *table = thread->frames, *key, *index;
	json_int_t line = step->call ? step->call->line : 0;
	bool added;

	key = json_sprintf("%lld %lld", (long long)json_integer_value(function), (long long)line);
	index = fox_index(thread->known, "frame", json_string_value(key), fox_length(table), &added);
	json_decref(key);
	if (added) {
		fox_add(table, "func", json_incref(function));
		fox_add(table, "address", json_integer(-1));
		fox_add(table, "inlineDepth", json_integer(0));
		fox_add(table, "category", json_integer(fox_category(step)));
		fox_add(table, "subcategory", json_integer(0));
		fox_add(table, "line", line ? json_integer(line) : json_null());
		for (size_t i = 0; i < 4; i++)
			fox_add(table, unknown[i], json_null());
	}
	json_decref(function);
	return index;
}

static void fox_push(struct fox_document *document, const struct step *step)
{
	struct fox_thread *thread = document->thread;
	json_t *frame = fox_frame(document, thread, step), *table = thread->stacks, *key, *index;
	bool added;

	key = json_sprintf("%lld %lld", document->stack ? (long long)json_integer_value(document->stack) : -1,
			   (long long)json_integer_value(frame));
	index = fox_index(thread->known, "stack", json_string_value(key), fox_length(table), &added);
	json_decref(key);
	if (added) {
		fox_add(table, "frame", json_incref(frame));
		fox_add(table, "prefix", document->stack ? json_incref(document->stack) : json_null());
		fox_add(table, "category", json_integer(fox_category(step)));
		fox_add(table, "subcategory", json_integer(0));
	}
	json_decref(frame);
	json_decref(document->stack);
	document->stack = index;
}

/* --- threads ---------------------------------------------------------------------------------- */

static struct fox_thread *fox_thread_of(struct fox_document *document, const char *name)
{
	json_int_t pid = integer(document->entry, "pid"), tid = integer(document->entry, "tid");
	struct fox_thread *thread;

	for (size_t i = 0; i < document->nr; i++)
		if (!strcmp(json_string_value(document->threads[i].name), name))
			return &document->threads[i];
	document->threads = xrealloc(document->threads, (document->nr + 1) * sizeof(*thread));
	thread = &document->threads[document->nr++];
	*thread = (struct fox_thread){
		.name = json_string(name),
		.pid = json_sprintf("%lld", (long long)(pid ? pid : (json_int_t)document->nr)),
		.tid = json_integer(tid	  ? tid
				    : pid ? pid
					  : (json_int_t)document->nr),
		.strings = json_array(),
		.known = json_object(),
		.stacks = json_object(),
		.frames = json_object(),
		.functions = json_object(),
		.resources = json_object(),
		.samples = json_object(),
	};
	return thread;
}

/* The first step of an entry is its owner. */
static void fox_step(void *of, const struct step *step)
{
	struct fox_document *document = of;

	if (!document->thread)
		document->thread = fox_thread_of(document, step->name);
	else
		fox_push(document, step);
}

/* Ends an entry: its stack has this weight. */
static void fox_sample(struct fox_document *document, double weight, bool real)
{
	struct fox_thread *thread = document->thread;

	if (weight) {
		fox_add(thread->samples, "stack",
			document->stack ? json_incref(document->stack) : json_null());
		fox_add(thread->samples, "weight", real ? json_real(weight) : json_integer(weight));
		thread->weight += weight;
	}
	json_decref(document->stack);
	document->stack = NULL;
	document->thread = NULL;
}

static double fox_weight(const json_t *entry, const char *member, bool clock)
{
	return integer(entry, member) / (clock ? 1e6 : 1);
}

static void fox_entries(struct fox_document *document, const json_t *record, const char *member, bool clock)
{
	const json_t *rest = json_object_get(record, "rest");
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(record, "entries"), i, entry) {
		document->entry = entry;
		calls_walk(document->calls, entry, fox_step, document);
		fox_sample(document, fox_weight(entry, member, clock), clock);
	}
	if (!rest || !integer(rest, member))
		return;
	document->entry = NULL;
	fox_step(document, &(struct step){.name = "[others]"});
	fox_step(document, &(struct step){.name = "[others]"});
	fox_sample(document, fox_weight(rest, member, clock), clock);
}

/* --- the document ----------------------------------------------------------------------------- */

/* A table with its length. Columns that have no rows are there, too. */
static json_t *fox_whole(json_t *table, const char *const *columns)
{
	size_t length = fox_length(table);

	for (; *columns; columns++)
		if (!json_object_get(table, *columns))
			json_object_set_new(table, *columns, json_array());
	json_object_set_new(table, "length", json_integer(length));
	return table;
}

static json_t *fox_samples(struct fox_thread *thread, double duration_ms, bool clock)
{
	static const char *const columns[] = {"stack", "weight", "time", NULL};
	json_t *weights = json_object_get(thread->samples, "weight"), *weight, *samples;
	double before = 0;
	size_t i;

	json_array_foreach(weights, i, weight) {
		fox_add(thread->samples, "time",
			json_real(thread->weight ? duration_ms * before / thread->weight : 0));
		before += json_number_value(weight);
	}
	samples = fox_whole(thread->samples, columns);
	json_object_set_new(samples, "weightType", json_string(clock ? "tracing-ms" : "samples"));
	return samples;
}

static json_t *fox_markers(void)
{
	static const char *const columns[] = {"data",  "name",	   "startTime", "endTime",
					      "phase", "category", NULL};

	return fox_whole(json_object(), columns);
}

static json_t *fox_symbols(void)
{
	static const char *const columns[] = {"libIndex", "address", "name", "functionSize", NULL};

	return fox_whole(json_object(), columns);
}

/* The thread, which is consumed. */
static json_t *fox_thread_value(struct fox_thread *thread, double duration_ms, bool clock)
{
	static const char *const stacks[] = {"frame", "prefix", "category", "subcategory", NULL};
	static const char *const frames[] = {
		"func",		"address",	 "inlineDepth",	   "category", "subcategory", "line",
		"nativeSymbol", "innerWindowID", "implementation", "column",   NULL};
	static const char *const functions[] = {"name",	    "isJS",	  "relevantForJS", "resource",
						"fileName", "lineNumber", "columnNumber",  NULL};
	static const char *const resources[] = {"lib", "name", "host", "type", NULL};
	json_t *samples = fox_samples(thread, duration_ms, clock);

	json_decref(thread->known);
	return json_pack("{ss sf sn sn so so so sb so so so so so so so so so so}", "processType", "default",
			 "processStartupTime", 0.0, "processShutdownTime", "unregisterTime", "registerTime",
			 json_real(0), "pausedRanges", json_array(), "name", thread->name, "isMainThread", 1,
			 "pid", thread->pid, "tid", thread->tid, "samples", samples, "markers", fox_markers(),
			 "stackTable", fox_whole(thread->stacks, stacks), "frameTable",
			 fox_whole(thread->frames, frames), "stringArray", thread->strings, "funcTable",
			 fox_whole(thread->functions, functions), "resourceTable",
			 fox_whole(thread->resources, resources), "nativeSymbols", fox_symbols());
}

static json_t *fox_category_value(const char *name, const char *colour)
{
	return json_pack("{ss ss s[s]}", "name", name, "color", colour, "subcategories", "Other");
}

static void fox_remark(void *to, const struct remark *remark)
{
	json_array_append_new(to, json_pack("{ss ss ss}", "label", remark->title, "format", "string", "value",
					    remark->text));
}

/* Sections of the panel about the profile. */
static json_t *fox_sections(const json_t *record)
{
	json_t *remarks = json_array();

	remarks_of(record, fox_remark, remarks);
	if (json_array_size(remarks))
		return json_pack("[{ss so}]", "label", "How far to trust it", "entries", remarks);
	json_decref(remarks);
	return json_array();
}

static json_t *fox_meta(const struct stream *stream, const json_t *record, const json_t *event,
			double interval_ms)
{
	char *title = profile_title(stream);
	json_t *meta = json_pack("{sf sf si s[ooo] ss ss* ss si si si sb sb so so}", "interval", interval_ms,
				 "startTime", moment(record, "start_time") / 1e6, "processType", 0,
				 "categories", fox_category_value("Other", "grey"),
				 fox_category_value("User", "yellow"), fox_category_value("Kernel", "orange"),
				 "product", title, "importedFrom", "nhmtap", "platform", "Linux", "stackwalk",
				 1, "version", GECKO_VERSION, "preprocessedProfileVersion", PROCESSED_VERSION,
				 "symbolicated", 1, "usesOnlyOneStackType", 1, "markerSchema", json_array(),
				 "extra", fox_sections(record));

	json_object_set_new(meta, "arguments", json_string(string(event, "name")));
	json_object_set_new(meta, "doesNotUseFrameImplementation", json_true());
	free(title);
	return meta;
}

static int write_firefox(struct stream *stream, const json_t *record)
{
	const struct measure *measures = measures_of(record);
	const json_t *event = profile_event(stream, record);
	struct fox_document document = {.calls = &stream->calls,
					.libs = json_array(),
					.known_libs = json_object(),
					.duration_ms = integer(record, "duration_ns") / 1e6};
	json_t *threads = json_array();
	struct measure measure;
	bool clock;

	if (!measures) {
		json_decref(document.libs);
		json_decref(document.known_libs);
		json_decref(threads);
		return 0;
	}
	measure = measures[measure_main(measures)];
	clock = !measure.type && recorded_clock(event);
	fox_entries(&document, record, measure.member, clock);
	for (size_t i = 0; i < document.nr; i++)
		json_array_append_new(threads,
				      fox_thread_value(&document.threads[i], document.duration_ms, clock));
	free(document.threads);
	json_decref(document.known_libs);
	return profile_put_json(stream, json_pack("{so so so so so}", "meta",
						  fox_meta(stream, record, event,
							   clock ? profile_period(event, NULL) / 1e6 : 1.0),
						  "libs", document.libs, "pages", json_array(), "counters",
						  json_array(), "threads", threads));
}

static int check_firefox(const struct stream *stream, const struct options *options, size_t nr_events,
			 struct refusal *refusal)
{
	return profile_check(stream, options, "firefox", ".json", nr_events, refusal);
}

static const struct format firefox = {
	.name = "firefox",
	.help = "a profile for the Firefox Profiler (profiler.firefox.com); implies -g",
	.commands = COMMANDS_OF_STACKS,
	.keys = "stack",
	.whole = true,
	.media = "application/json",
	.check = check_firefox,
	.write = write_firefox,
};
REGISTER_FORMAT(firefox);
