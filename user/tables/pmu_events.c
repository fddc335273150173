// SPDX-License-Identifier: GPL-2.0-only
#include "tables/pmu_events.h"

#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/copied.h"
#include "base/guarded.h"
#include "base/json_file.h"
#include "base/memory.h"
#include "base/path.h"

struct pmu_reader {
	const char *path; /* the option's value */
	const char *cpuid;
	struct pmu_events *events;
	struct refusal *refusal;
};

static int refuse_path(const struct pmu_reader *reader, const char *why, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse_path(const struct pmu_reader *reader, const char *why, ...)
{
	char text[400];
	va_list args;

	va_start(args, why);
	vsnprintf(text, sizeof(text), why, args);
	va_end(args);
	refuse(reader->refusal, STATUS_USAGE, "option --pmu-events '%.300s'", reader->path);
	because(reader->refusal, "%s", text);
	return instead(reader->refusal, "name tools/perf/pmu-events of a kernel's source, a checkout of "
					"Intel's perfmon, or a file that perf list -j wrote");
}

/* --- one event -------------------------------------------------------------------------------- */

/* The text of a member, which may be a number; "" if it is missing. */
static const char *text_member(const json_t *entry, const char *member, char *buffer, size_t size)
{
	const json_t *value = json_object_get(entry, member);

	buffer[0] = '\0';
	if (json_is_string(value))
		snprintf(buffer, size, "%s", json_string_value(value));
	else if (json_is_integer(value))
		snprintf(buffer, size, "%lld", (long long)json_integer_value(value));
	return buffer;
}

/* The first number of a list: "0xB7, 0xBB". */
static __u64 first_number(const json_t *entry, const char *member)
{
	char buffer[64];

	return strtoull(text_member(entry, member, buffer, sizeof(buffer)), NULL, 0);
}

/* The terms of events that count the same on every CPU and have no code of their own in Intel's files. The
 * kernel knows them by these codes (jevents.py, real_event()). */
static const char *fixed_terms(const char *name)
{
	static const char *const fixed[][2] = {
		{"inst_retired.any", "event=0xc0"},
		{"inst_retired.any_p", "event=0xc0"},
		{"cpu_clk_unhalted.ref", "event=0x0,umask=0x03"},
		{"cpu_clk_unhalted.thread", "event=0x3c"},
		{"cpu_clk_unhalted.core", "event=0x3c"},
		{"cpu_clk_unhalted.thread_any", "event=0x3c,any=1"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (!strcasecmp(name, fixed[i][0]))
			return fixed[i][1];
	return NULL;
}

/* The term of the PMU for an additional register. NULL: the event needs none; "": there is no term for it. */
static const char *register_term(const json_t *entry)
{
	switch (first_number(entry, "MSRIndex")) {
	case 0:
		return NULL;
	case 0x1a6:
	case 0x1a7:
		return "offcore_rsp";
	case 0x3f6:
		return "ldlat";
	case 0x3f7:
		return "frontend";
	}
	return "";
}

static char *terms_of(const json_t *entry, const char *name)
{
	static const char *const members[][2] = {
		{"UMask", "umask"},	{"CounterMask", "cmask"}, {"Invert", "inv"},
		{"EdgeDetect", "edge"}, {"AnyThread", "any"},
	};
	const char *fixed = fixed_terms(name), *beside = register_term(entry);
	char terms[400], value[128];
	size_t used;

	if (fixed)
		return xstrdup(fixed);
	if (beside && !*beside)
		return NULL;
	used = snprintf(terms, sizeof(terms), "event=0x%llx",
			first_number(entry, "EventCode") | first_number(entry, "ExtSel") << 8);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (first_number(entry, members[i][0]))
			used += snprintf(terms + used, sizeof(terms) - used, ",%s=%.40s", members[i][1],
					 text_member(entry, members[i][0], value, sizeof(value)));
	if (beside)
		snprintf(terms + used, sizeof(terms) - used, ",%s=0x%llx", beside,
			 first_number(entry, "MSRValue"));
	return xstrdup(terms);
}

static void add_event(struct pmu_events *events, const struct pmu_event *event)
{
	events->list = xroom(events->list, events->nr, &events->room, sizeof(*event));
	events->list[events->nr++] = *event;
}

static const char *string_member(const json_t *entry, const char *member)
{
	const char *value = json_string_value(json_object_get(entry, member));

	return value ? value : "";
}

/* Sets `pmu` to the core PMU that a Unit stands for. Returns false if it is not a core PMU. */
static bool is_core(const char *unit, const char **pmu)
{
	static const char *const hybrid[] = {"cpu_core", "cpu_atom"};

	for (size_t i = 0; i < ARRAY_SIZE(hybrid); i++)
		if (!strcmp(unit, hybrid[i])) {
			*pmu = hybrid[i];
			return true;
		}
	return !*unit || !strcmp(unit, "cpu");
}

/* Reads an event written by perf list -j: "Encoding": "cpu/event=0x51,period=0x186a3,umask=0x1/". */
static bool take_encoded(struct pmu_event *event, const char *encoding)
{
	const char *slash = strchr(encoding, '/'), *end = strrchr(encoding, '/');
	char unit[64], *copy, *save = NULL;
	size_t used = 0;

	if (!slash || end == slash || (size_t)(slash - encoding) >= sizeof(unit))
		return false;
	snprintf(unit, sizeof(unit), "%.*s", (int)(slash - encoding), encoding);
	if (!is_core(unit, &event->pmu))
		return false;
	copy = xasprintf("%.*s", (int)(end - slash - 1), slash + 1);
	event->terms = xcalloc(1, strlen(copy) + 1);
	for (char *term = strtok_r(copy, ",", &save); term; term = strtok_r(NULL, ",", &save)) {
		if (!strncmp(term, "period=", 7))
			event->default_period = strtoull(term + 7, NULL, 0);
		else
			used += sprintf(event->terms + used, "%s%s", used ? "," : "", term);
	}
	free(copy);
	return true;
}

/* `pmu` is the PMU of the file's events that do not name one; NULL: the core's. */
static void take_event(struct pmu_events *events, const json_t *entry, const char *pmu)
{
	const char *encoding = string_member(entry, "Encoding");
	struct pmu_event event = {.name = string_member(entry, "EventName"),
				  .description = string_member(entry, "BriefDescription"),
				  .pmu = pmu};

	if (!*event.name)
		return;
	if (*encoding) {
		if (take_encoded(&event, encoding))
			add_event(events, &event);
		return;
	}
	if (!is_core(string_member(entry, "Unit"), &event.pmu))
		return;
	event.default_period = first_number(entry, "SampleAfterValue");
	event.terms = terms_of(entry, event.name);
	if (event.terms)
		add_event(events, &event);
}

/* --- files ------------------------------------------------------------------------------------ */

#define FILE_MOST (64 << 20) /* bytes; perf's largest has 3 MiB */

/* A file has a list of events, either at the top or in "Events". */
static int read_events_of(struct pmu_reader *reader, const char *path, const char *pmu)
{
	const json_t *entries, *entry;
	json_error_t error;
	json_t *document = json_fd_read(copied_open(path, FILE_MOST, COPIED_WAIT_NS), 0, &error);
	size_t i;

	if (!document && errno)
		return refuse_path(reader, "%.300s can't be read: %s", path, guarded_why(errno));
	if (!document)
		return refuse_path(reader, "%.300s, line %d: %.80s", path, error.line, error.text);
	json_array_append_new(reader->events->documents, document);
	entries = json_is_object(document) ? json_object_get(document, "Events") : document;
	if (!json_is_array(entries))
		return 0;
	json_array_foreach(entries, i, entry)
		take_event(reader->events, entry, pmu);
	return 0;
}

static bool is_json(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && !strcmp(dot, ".json");
}

/* Reads all files of a CPU's folder. */
static int read_folder(struct pmu_reader *reader, const char *folder)
{
	char *names = copied_list(folder, COPIED_WAIT_NS);
	int err = 0;

	if (!names)
		return refuse_path(reader, "%.300s can't be read: %s", folder, guarded_why(errno));
	for (const char *name = names; *name && !err; name += strlen(name) + 1) {
		char path[PATH_MAX];

		if (!is_json(name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, name);
		err = read_events_of(reader, path, NULL);
	}
	free(names);
	return err;
}

/* --- mapfile.csv ------------------------------------------------------------------------------ */

#define REPEATS_MOST 3

/* Whether the pattern is simple enough. regcomp(3) doubles its tree for each of several consecutive '+', so a
 * row could use up all memory. No row needs more than "AuthenticAMD-23-[[:xdigit:]]+". */
static bool is_modest(const char *pattern)
{
	size_t repeats = 0;

	for (const char *at = pattern; *at; at++)
		repeats += strchr("*+?", *at) != NULL;
	return repeats <= REPEATS_MOST && !strpbrk(pattern, "{\\");
}

/* Whether a row's pattern matches the machine's CPU. A pattern without a stepping matches every stepping. */
static bool is_cpu(const char *pattern, const char *cpuid)
{
	char anchored[256], plain[64];
	regex_t expression;
	int dashes = 0;
	bool is;

	for (const char *at = pattern; *at; at++)
		dashes += *at == '-';
	snprintf(anchored, sizeof(anchored), "^(%.200s)$", pattern);
	if (!is_modest(pattern) || regcomp(&expression, anchored, REG_EXTENDED | REG_NOSUB))
		return false;
	snprintf(plain, sizeof(plain), "%.*s",
		 (int)(dashes < 3 ? strrchr(cpuid, '-') - cpuid : (long)strlen(cpuid)), cpuid);
	is = !regexec(&expression, plain, 0, NULL, 0);
	regfree(&expression);
	return is;
}

#define COLUMNS 7

/* Splits a line at its commas. */
static void columns_of(char *line, const char *columns[COLUMNS])
{
	for (size_t i = 0; i < COLUMNS; i++) {
		columns[i] = line;
		line += strcspn(line, ",\r\n");
		if (*line)
			*line++ = '\0';
	}
}

/* The columns are Family-model, Version, Filename, EventType and, in perfmon's file, Core Type, Native Model
 * ID, Core Role Name. The kernel's Filename is a folder, perfmon's a file, relative to the root. */
static int read_row(struct pmu_reader *reader, const char *folder, const char *const *columns)
{
	const char *name = columns[2], *type = columns[3], *role = columns[6];
	char path[2 * PATH_MAX];

	if (strcmp(type, "core") && strcmp(type, "hybridcore") && strcmp(type, "fp_arith_inst"))
		return 0;
	snprintf(reader->events->source, sizeof(reader->events->source), "%s, %.60s %.30s",
		 *name == '/' ? "perfmon" : "pmu-events", *name == '/' ? strrchr(name, '/') + 1 : name,
		 columns[1]);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (*name != '/')
		return read_folder(reader, path);
	return read_events_of(reader, path,
			      !strcmp(role, "Core")   ? "cpu_core"
			      : !strcmp(role, "Atom") ? "cpu_atom"
						      : NULL);
}

static int read_mapfile(struct pmu_reader *reader, const char *folder, FILE *file)
{
	const char *columns[COLUMNS];
	char *line = NULL;
	size_t size = 0;
	bool found = false;
	int err = 0;

	while (!err && getline(&line, &size, file) > 0) {
		columns_of(line, columns);
		if (!is_cpu(columns[0], reader->cpuid))
			continue;
		found = true;
		err = read_row(reader, folder, columns);
	}
	free(line);
	if (!err && !found)
		err = refuse_path(reader, "its mapfile.csv has no row for %s, which this CPU is",
				  reader->cpuid);
	return err;
}

static int by_name(const void *a, const void *b)
{
	const struct pmu_event *x = a, *y = b;
	int order = strcasecmp(x->name, y->name);

	return order ? order : strcmp(x->pmu ? x->pmu : "", y->pmu ? y->pmu : "");
}

static int read_path(struct pmu_reader *reader)
{
	static const char *const below[] = {"", "/arch/x86", "/x86"};
	char path[PATH_MAX];
	struct stat facts;

	if (copied_stat(reader->path, &facts, COPIED_WAIT_NS))
		return refuse_path(reader, "it can't be read: %s", guarded_why(errno));
	if (!S_ISDIR(facts.st_mode))
		return read_events_of(reader, reader->path, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
		FILE *file;
		int err, fd;

		snprintf(path, sizeof(path), "%.4000s%s/mapfile.csv", reader->path, below[i]);
		fd = copied_open(path, FILE_MOST, COPIED_WAIT_NS);
		if (fd < 0)
			continue;
		file = had(fdopen(fd, "r"));
		*strrchr(path, '/') = '\0';
		err = read_mapfile(reader, path, file);
		fclose(file);
		return err;
	}
	return read_folder(reader, reader->path);
}

int pmu_events_read(struct pmu_events *events, const char *path, const char *cpuid, struct refusal *refusal)
{
	struct pmu_reader reader = {path, cpuid, events, refusal};

	*events = (struct pmu_events){.documents = json_array()};
	snprintf(events->source, sizeof(events->source), "%.150s", path_last(path));
	if (read_path(&reader))
		return -1;
	if (!events->nr)
		return refuse_path(&reader, "it has no events of the core");
	qsort(events->list, events->nr, sizeof(*events->list), by_name);
	return 0;
}

void pmu_events_release(struct pmu_events *events)
{
	for (size_t i = 0; i < events->nr; i++)
		free(events->list[i].terms);
	free(events->list);
	json_decref(events->documents);
	*events = (struct pmu_events){0};
}

const struct pmu_event *pmu_event_find(const struct pmu_events *events, const char *name, const char *pmu)
{
	size_t first = FIRST_NOT(events->nr, i, strcasecmp(events->list[i].name, name) < 0);

	for (size_t i = first; i < events->nr && !strcasecmp(events->list[i].name, name); i++)
		if (!pmu || !events->list[i].pmu || !strcmp(events->list[i].pmu, pmu))
			return &events->list[i];
	return NULL;
}
