// SPDX-License-Identifier: GPL-2.0-only
/* For people: one block a record, columns aligned, digits grouped. */
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "output/output.h"

/* --- text ------------------------------------------------------------------------------------------ */

struct text {
	char *bytes;
	size_t used, room;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	va_list args;
	size_t length;

	va_start(args, format);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (text->used + length + 1 > text->room) {
		text->room = 2 * (text->used + length + 1);
		text->bytes = realloc(text->bytes, text->room);
	}
	va_start(args, format);
	vsnprintf(text->bytes + text->used, length + 1, format, args);
	va_end(args);
	text->used += length;
}

/* The last column needs no filling. */
static void end_row(struct text *text)
{
	while (text->used && text->bytes[text->used - 1] == ' ')
		text->used--;
	add(text, "\n");
}

/* 1234567 → "1,234,567", in every locale. */
static const char *grouped(json_int_t number, char *buffer, size_t size)
{
	char digits[32];
	size_t length = snprintf(digits, sizeof(digits), "%lld", (long long)number), used = 0;

	for (size_t i = 0; i < length && used + 2 < size; i++) {
		if (i && (length - i) % 3 == 0 && digits[i - 1] != '-')
			buffer[used++] = ',';
		buffer[used++] = digits[i];
	}
	buffer[used] = '\0';
	return buffer;
}

static json_int_t integer(const json_t *record, const char *name)
{
	return json_integer_value(json_object_get(record, name));
}

static const char *string(const json_t *record, const char *name)
{
	const char *value = json_string_value(json_object_get(record, name));

	return value ? value : "";
}

/* "2026-01-31T23:59:59.123456789Z" → "23:59:59.123", in front of every line of an interval. */
static void add_time(struct text *text, const struct stream *stream, const json_t *record)
{
	if (stream->intervals)
		add(text, "%.12s  ", string(record, "time") + 11);
}

static double share(json_int_t part, json_int_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

/* --- counts --------------------------------------------------------------------------------------------- */

static void count_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *status = string(record, "status");
	const char *unit = string(record, "unit");
	json_t *in_unit = json_object_get(record, "value_in_unit");
	char number[40] = "not counted";

	add_time(text, stream, record);
	if (in_unit)
		snprintf(number, sizeof(number), "%.3f", json_real_value(in_unit));
	else if (strcmp(status, "not_counted"))
		grouped(integer(record, "scaled"), number, sizeof(number));
	add(text, "%24s %-6s %s", number, unit, string(record, "event"));
	if (!strcmp(status, "multiplexed"))
		add(text, "  (ran %.1f%% of the time)",
		    share(integer(record, "running_ns"), integer(record, "enabled_ns")));
	add(text, "\n");
}

static void summary_table(struct text *text, const struct stream *stream, const json_t *record)
{
	double mean = json_number_value(json_object_get(record, "mean"));
	double stddev = json_number_value(json_object_get(record, "stddev"));
	char number[40] = "not counted";

	if (integer(record, "counted"))
		grouped((json_int_t)(mean + 0.5), number, sizeof(number));
	add(text, "%24s %-6s %s  (mean of %lld", number, string(record, "unit"),
	    string(record, "event"), (long long)integer(record, "counted"));
	if (json_object_get(record, "stddev"))
		add(text, ", standard deviation %.2f%%", mean ? 100 * stddev / mean : 0);
	add(text, ")\n");
}

/* --- profiles ------------------------------------------------------------------------------------------- */

/* A key's value as a cell. Control characters must not reach the terminal. */
static void cell(const json_t *value, char *buffer, size_t size)
{
	if (json_is_string(value))
		snprintf(buffer, size, "%s", json_string_value(value));
	else
		snprintf(buffer, size, "%lld", (long long)json_integer_value(value));
	for (char *at = buffer; *at; at++)
		if (iscntrl((unsigned char)*at))
			*at = '?';
}

static bool is_key(const char *name)
{
	return strcmp(name, "samples") && strcmp(name, "period");
}

static int column_width(const json_t *entries, const char *name)
{
	size_t width = strlen(name), i;
	char text[256];
	json_t *entry;

	json_array_foreach(entries, i, entry) {
		cell(json_object_get(entry, name), text, sizeof(text));
		if (strlen(text) > width)
			width = strlen(text);
	}
	return width;
}

static void entry_rows(struct text *text, const json_t *entries, json_int_t total)
{
	const json_t *first = json_array_get(entries, 0);
	char number[40], content[256];
	const char *name;
	json_t *value, *entry;
	size_t i;

	add(text, "%12s %7s", "samples", "share");
	json_object_foreach((json_t *)first, name, value)
		if (is_key(name))
			add(text, "  %-*s", column_width(entries, name), name);
	end_row(text);
	json_array_foreach(entries, i, entry) {
		json_int_t samples = integer(entry, "samples");

		add(text, "%12s %6.1f%%", grouped(samples, number, sizeof(number)),
		    share(samples, total));
		json_object_foreach(entry, name, value) {
			if (!is_key(name))
				continue;
			cell(value, content, sizeof(content));
			add(text, "  %-*s", column_width(entries, name), content);
		}
		end_row(text);
	}
}

static void profile_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *samples = json_object_get(record, "samples");
	const json_t *entries = json_object_get(record, "entries");
	const json_t *rest = json_object_get(record, "rest");
	json_int_t total = integer(samples, "aggregated");
	char number[40], others[40];

	add_time(text, stream, record);
	add(text, "%s: %s samples in %.3f s\n", string(record, "event"),
	    grouped(total, number, sizeof(number)), integer(record, "duration_ns") / 1e9);
	if (json_array_size(entries))
		entry_rows(text, entries, total);
	if (rest)
		add(text, "%12s %6.1f%%  in %s more\n",
		    grouped(integer(rest, "samples"), number, sizeof(number)),
		    share(integer(rest, "samples"), total),
		    grouped(integer(rest, "entries"), others, sizeof(others)));
	add(text, "\n");
}

/* --- doctor ---------------------------------------------------------------------------------------------- */

#define SCREEN      80
#define NAME_WIDTH  21
#define STATE_WIDTH 7


/* Columns that a piece of UTF-8 takes: bytes that continue a character take none. */
static size_t columns(const char *bytes, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++)
		count += ((unsigned char)bytes[i] & 0xc0) != 0x80;
	return count;
}

/* Words from column `from` on, further lines indented to there. The line is left open. */
static void add_words(struct text *text, size_t from, const char *words)
{
	size_t at = from;

	for (const char *word = words; *word; word += strspn(word, " ")) {
		size_t length = strcspn(word, " "), width = columns(word, length);

		if (at > from && at + 1 + width > SCREEN) {
			add(text, "\n%*s", (int)from, "");
			at = from;
		} else if (at > from) {
			add(text, " ");
			at++;
		}
		add(text, "%.*s", (int)length, word);
		at += width;
		word += length;
	}
}

/* "mem       no        why", and below it the next step. */
static void add_finding(struct text *text, const char *name, const char *state, const char *words,
			const char *remedy)
{
	int from = NAME_WIDTH + STATE_WIDTH;

	add(text, "%-*s%-*s", NAME_WIDTH, name, STATE_WIDTH, state);
	add_words(text, from, words);
	end_row(text);
	if (!*remedy)
		return;
	add(text, "%*s→ ", from, "");
	add_words(text, from + 2, remedy);
	end_row(text);
}

static void add_line(struct text *text, const char *name, const char *format, ...)
{
	char words[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	add(text, "%-*s", NAME_WIDTH, name);
	add_words(text, NAME_WIDTH, words);
	end_row(text);
}

static void host_lines(struct text *text, const json_t *host)
{
	const json_t *cpu = json_object_get(host, "cpu");
	const char *events = string(cpu, "events");

	add_line(text, "processor", "%s", string(cpu, "model_name"));
	add_line(text, "", "%s family %lld model %lld stepping %lld%s%s", string(cpu, "vendor"),
		 (long long)integer(cpu, "family"), (long long)integer(cpu, "model"),
		 (long long)integer(cpu, "stepping"), *events ? ", events of " : ", no table of its events",
		 events);
}

/* "lbr_format 3, pebs_trap 1" */
static const char *fields(const json_t *values, char *buffer, size_t size)
{
	const char *name;
	size_t used = 0;
	json_t *value;

	buffer[0] = '\0';
	json_object_foreach((json_t *)values, name, value)
		if (json_is_integer(value) && used < size)
			used += snprintf(buffer + used, size - used, "%s%s %lld", used ? ", " : "", name,
					 (long long)json_integer_value(value));
	return buffer;
}

/* The events of CPUID.0AH:EBX that are missing. */
static const char *missing_events(const json_t *events, char *buffer, size_t size)
{
	const char *name;
	size_t used = 0;
	json_t *there;

	buffer[0] = '\0';
	json_object_foreach((json_t *)events, name, there)
		if (json_is_false(there) && used < size)
			used += snprintf(buffer + used, size - used, "%s%s",
					 used ? ", " : "; without the events ", name);
	return buffer;
}

static void processor_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *signature = json_object_get(record, "signature");
	const json_t *perfmon = json_object_get(record, "perfmon");
	const json_t *msr;
	char words[512];
	size_t i;

	if (signature)
		add_line(text, "CPUID.1", "%s: %s", string(signature, "eax"),
			 fields(signature, words, sizeof(words)));
	if (perfmon && !integer(perfmon, "version"))
		add_line(text, "CPUID.0AH", "no architectural performance monitoring");
	else if (perfmon)
		add_line(text, "CPUID.0AH",
			 "version %lld, %lld general counters of %lld bits, %lld fixed ones of %lld%s",
			 (long long)integer(perfmon, "version"),
			 (long long)integer(perfmon, "general_counters"),
			 (long long)integer(perfmon, "general_width"),
			 (long long)integer(perfmon, "fixed_counters"),
			 (long long)integer(perfmon, "fixed_width"),
			 missing_events(json_object_get(perfmon, "events"), words, sizeof(words)));
	if (*string(record, "hypervisor"))
		add_line(text, "hypervisor", "%s", string(record, "hypervisor"));
	json_array_foreach(json_object_get(record, "registers"), i, msr) {
		const char *remedy = string(msr, "remedy");

		if (json_object_get(msr, "value"))
			add_line(text, string(msr, "name") + strlen("IA32_"), "%s: %s",
				 string(msr, "value"),
				 fields(json_object_get(msr, "fields"), words, sizeof(words)));
		else
			add_line(text, string(msr, "name") + strlen("IA32_"), "%s%s%s",
				 string(msr, "why"), *remedy ? " → " : "", remedy);
	}
}

static void kernel_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *pmus = json_object_get(record, "pmus"), *pmu;
	char words[1024] = "";
	size_t used = 0, i;

	add_line(text, "kernel", "%s, %s BTF, PTI %s", string(record, "release"),
		 json_is_true(json_object_get(record, "btf")) ? "with" : "without",
		 json_is_true(json_object_get(record, "page_table_isolation")) ? "on" : "off");
	json_array_foreach(pmus, i, pmu)
		if (used < sizeof(words))
			used += snprintf(words + used, sizeof(words) - used, "%s%s", i ? ", " : "",
					 json_string_value(pmu));
	add_line(text, "PMUs", "%s", words);
}

static const char *yes_or_no(const json_t *record, const char *name)
{
	return json_is_true(json_object_get(record, name)) ? "yes" : "no";
}

static void permission_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *why = string(record, "why");
	char value[64], words[640];

	cell(json_object_get(record, "value"), value, sizeof(value));
	snprintf(words, sizeof(words), "%s%s%s", value, *why ? ": " : "", why);
	add_finding(text, string(record, "name"), yes_or_no(record, "ok"), words,
		    string(record, "remedy"));
}

static void counters_table(struct text *text, const struct stream *stream, const json_t *record)
{
	char free[24];

	snprintf(free, sizeof(free), "%lld", (long long)integer(record, "general_free"));
	add_finding(text, "general", free, string(record, "why"), string(record, "remedy"));
	snprintf(free, sizeof(free), "%lld", (long long)integer(record, "fixed_free"));
	add_finding(text, "fixed", free,
		    json_is_true(json_object_get(record, "nmi_watchdog"))
			    ? "the NMI watchdog is on and holds a counter (kernel.nmi_watchdog)"
			    : "", "");
}

static void facility_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *why = string(record, "why");

	add_finding(text, string(record, "name"), yes_or_no(record, "works"),
		    *why ? why : string(record, "title"), string(record, "remedy"));
}

/* --- start, error, end ------------------------------------------------------------------------------- */

static void start_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *why = string(record, "default_event_why");

	if (*why)
		add(text, "# %s\n", why);
	if (!strcmp(string(record, "command"), "doctor"))
		host_lines(text, json_object_get(record, "host"));
}

static void end_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *lost = json_object_get(json_object_get(record, "samples"), "lost");
	const char *cause;
	char number[40];
	json_t *count;

	json_object_foreach((json_t *)lost, cause, count)
		if (json_integer_value(count))
			add(text, "# %s samples are not in the tables: %s\n",
			    grouped(json_integer_value(count), number, sizeof(number)), cause);
}

/* --- by type --------------------------------------------------------------------------------------------- */

static const struct {
	const char *type;
	void (*add)(struct text *text, const struct stream *stream, const json_t *record);
	const char *heading; /* above the first record of the type; NULL: none */
} tables[] = {
	{"start", start_table, NULL},
	{"count", count_table, NULL},
	{"summary", summary_table, NULL},
	{"profile", profile_table, NULL},
	{"end", end_table, NULL},
	{"processor", processor_table, NULL},
	{"kernel", kernel_table, NULL},
	{"permission", permission_table, "PERMISSION           OK     VALUE"},
	{"counters", counters_table, "COUNTERS             FREE"},
	{"facility", facility_table, "FACILITY             WORKS"},
	/* An error is told in words, on stderr. */
};

int output_table(struct stream *stream, const json_t *record)
{
	struct text text = {0};
	int err = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (strcmp(tables[i].type, string(record, "type")))
			continue;
		if (tables[i].heading && tables[i].heading != stream->heading)
			add(&text, "\n%s\n", tables[i].heading);
		stream->heading = tables[i].heading;
		tables[i].add(&text, stream, record);
	}
	if (text.used)
		err = sink_put(&stream->sink, text.bytes, text.used);
	free(text.bytes);
	return err;
}
