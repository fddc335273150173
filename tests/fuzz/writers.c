// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the writers of records as metrics: OpenMetrics, Prometheus' older format, OTLP. The
 * records have the forms that nhmtap makes; their texts, such as names of processes, functions and
 * cgroups, come from the input. Each line of the input is a record: the first byte is its type, and
 * its texts follow, separated by tabs. "." ends a page, and "h" advances the clock by an hour,
 * after which series are forgotten. No crash, no leak; each line of a page follows the grammar, and
 * OTLP is JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <unistd.h>
#include <jansson.h>

#include "output/output.h"
#include "output/text.h"
#include "record/record.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { OPENMETRICS, PROMETHEUS, OTLP, FORMATS };
static const char *const names[FORMATS] = {"openmetrics", "prometheus", "otlp"};
static const struct format *formats[FORMATS];
static int written; /* the streams are written to it one after another */
static time_t later_s;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int err = __real_clock_gettime(clock, now);

	now->tv_sec += later_s;
	return err;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct refusal refusal = {0};

	for (size_t i = 0; i < FORMATS; i++)
		formats[i] = format_find(names[i], NULL, &refusal);
	written = memfd_create("written", MFD_CLOEXEC);
	return 0;
}

/* --- records ---------------------------------------------------------------------------------- */

#define TEXTS	  4
#define TEXT_MOST 512

/* The texts of a line; missing ones are "". */
struct words {
	char copy[4096];
	const char *list[TEXTS];
};

static void read_words(struct words *words, const char *from, size_t size)
{
	char *rest = words->copy;

	if (size > sizeof(words->copy) - 1)
		size = sizeof(words->copy) - 1;
	memcpy(words->copy, from, size);
	words->copy[size] = '\0';
	for (size_t i = 0; i < TEXTS; i++) {
		char *text = rest ? strsep(&rest, "\t") : NULL;

		words->list[i] = text ? text : "";
	}
}

static json_t *text(const struct words *words, size_t i)
{
	return value_text(words->list[i], TEXT_MOST);
}

/* The numbers are up to 63 bits wide. */
static json_int_t number(const struct words *words, size_t i)
{
	__u64 sum = 0;

	for (const char *at = words->list[i]; *at; at++)
		sum = sum * 257 + (unsigned char)*at;
	return sum >> 1;
}

/* Metrics have names that the schema of the tables allows. */
static json_t *name(const struct words *words, size_t i)
{
	char text[32] = "m";

	for (size_t at = 1; at < sizeof(text) - 1 && words->list[i][at - 1]; at++)
		text[at] = 'a' + (unsigned char)words->list[i][at - 1] % 26;
	return json_string(text);
}

static json_t *count_of(const struct words *words)
{
	return json_pack("{s:s, s:o, s:o, s:s, s:I, s:I, s:I, s:I}", "type", "count", "event", text(words, 0),
			 "cgroup", text(words, 1), "status", "counted", "value", number(words, 2), "scaled",
			 number(words, 2), "enabled_ns", number(words, 3), "running_ns", number(words, 2));
}

static json_t *metric_of(const struct words *words)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:f}", "type", "metric", "metric", name(words, 0), "unit",
			 text(words, 1), "description", text(words, 2), "value", number(words, 3) / 7.0);
}

static json_t *profile_of(const struct words *words)
{
	return json_pack("{s:s, s:o, s:s, s:i, s:[{s:o, s:o, s:o, s:I, s:I}], s:{s:I, s:{s:I}}}", "type",
			 "profile", "event", text(words, 0), "start_time", "2026-01-31T23:59:59.000000000Z",
			 "duration_ns", 1000, "entries", "comm", text(words, 1), "symbol", text(words, 2),
			 "cgroup", text(words, 3), "samples", number(words, 2), "value", number(words, 3),
			 "samples", "aggregated", number(words, 2), "lost", "table_full", number(words, 3));
}

/* A function with another one inlined in it, and a frame without a symbol. */
static json_t *frames_of(const struct words *words)
{
	return json_pack("{s:s, s:[{s:o, s:o, s:[{s:o}]}, {s:o, s:s}]}", "type", "frames", "frames", "symbol",
			 text(words, 0), "module", text(words, 1), "inlined", "symbol", text(words, 2),
			 "module", text(words, 3), "offset", "0x10");
}

static json_t *stacks_of(const struct words *words)
{
	return json_pack("{s:s, s:o, s:s, s:[{s:[i, I], s:I}, {s:{s:o, s:o}, s:I}]}", "type", "profile",
			 "event", text(words, 0), "start_time", "2026-01-31T23:59:59.000000000Z", "entries",
			 "stack", 0, number(words, 1), "samples", number(words, 2), "code", "module",
			 text(words, 1), "symbol", text(words, 3), "samples", number(words, 2));
}

static json_t *offcore_of(const struct words *words)
{
	return json_pack("{s:s, s:o, s:[{s:o, s:o, s:I}]}", "type", "offcore", "cgroup", text(words, 0),
			 "cells", "request", text(words, 1), "response", text(words, 2), "value",
			 number(words, 3));
}

static json_t *mem_of(const struct words *words)
{
	char from[24];

	snprintf(from, sizeof(from), "%lld", (long long)number(words, 2) & 0xffff);
	return json_pack("{s:s, s:o, s:[], s:[{s:o, s:I, s:{s:I}}]}", "type", "mem", "event", text(words, 0),
			 "entries", "sources", "source", text(words, 1), "latency_sum_period",
			 number(words, 3), "latency_histogram_period", from, number(words, 2));
}

static json_t *gap_of(const struct words *words)
{
	return json_pack("{s:s, s:o, s:I}", "type", "gap", "cause", text(words, 0), "records",
			 number(words, 1));
}

static const struct {
	char letter;
	json_t *(*record)(const struct words *words);
} types[] = {{'c', count_of}, {'m', metric_of}, {'p', profile_of}, {'l', mem_of},
	     {'g', gap_of},   {'f', frames_of}, {'s', stacks_of},  {'o', offcore_of}};
#define TYPES (sizeof(types) / sizeof(types[0]))

/* --- the output ------------------------------------------------------------------------------- */

static void expect(bool right)
{
	if (!right)
		abort();
}

static const char *behind_name(const char *at)
{
	const char *end = at + strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:");

	expect(end > at && (*at < '0' || *at > '9'));
	return end;
}

/* Skips {label="value",…}; quotes, backslashes and line ends in a value are escaped. */
static const char *behind_labels(const char *at)
{
	do {
		at = behind_name(at + 1);
		expect(!strncmp(at, "=\"", 2));
		for (at += 2; *at != '"'; at++) {
			expect(*at);
			if (*at == '\\')
				expect(*++at && strchr("\\\"n", *at));
		}
		at++;
	} while (*at == ',');
	expect(*at == '}');
	return at + 1;
}

static void check_line(const char *line)
{
	static const char *const said[] = {"# HELP ", "# TYPE ", "# UNIT "};
	char *end;

	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		if (!strncmp(line, said[i], strlen(said[i]))) {
			expect(*behind_name(line + strlen(said[i])) == ' ');
			return;
		}
	if (!strcmp(line, "# EOF"))
		return;
	line = behind_name(line);
	line = *line == '{' ? behind_labels(line) : line;
	expect(*line == ' ');
	strtod(line + 1, &end);
	expect(end > line + 1 && !*end);
}

static void check_page(char *page, bool ends)
{
	const char *last = "";
	char *line;

	while ((line = strsep(&page, "\n")) && page) {
		check_line(line);
		last = line;
	}
	expect(line && !*line && !strcmp(last, "# EOF") == ends);
}

/* Each document is one line. */
static void check_documents(const char *text)
{
	for (const char *line = text, *next; *line; line = next + 1) {
		json_t *document;

		next = strchr(line, '\n');
		expect(next);
		document = json_loadb(line, next - line, JSON_REJECT_DUPLICATES, NULL);
		expect(json_array_size(json_object_get(document, "resourceMetrics")) == 1);
		json_decref(document);
	}
}

static void finish(struct stream *streams)
{
	static char text[1 << 20];

	for (size_t i = 0; i < FORMATS; i++) {
		ssize_t size;

		expect(!ftruncate(written, 0) && !lseek(written, 0, SEEK_SET));
		expect(!formats[i]->finish(&streams[i]) && !sink_flush(&streams[i].sink));
		size = pread(written, text, sizeof(text), 0);
		expect(size >= 0 && size < (ssize_t)sizeof(text));
		text[size] = '\0';
		expect(strlen(text) == (size_t)size);
		if (i == OTLP)
			check_documents(text);
		else
			check_page(text, i == OPENMETRICS);
	}
}

static void take(struct stream *streams, const char *line, size_t size)
{
	struct words words;
	json_t *record;

	read_words(&words, line + 1, size - 1);
	for (size_t t = 0; t < TYPES; t++) {
		if (types[t].letter != *line)
			continue;
		record = types[t].record(&words);
		expect(record);
		for (size_t i = 0; i < FORMATS; i++) {
			if (types[t].record == frames_of)
				calls_define(&streams[i].calls, record);
			formats[i]->write(&streams[i], record);
		}
		json_decref(record);
	}
}

#define FINISHED_MOST 4 /* pages per input: a page takes longer than the records */

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct stream streams[FORMATS] = {0};
	size_t finished = 0;
	const char *line = (const char *)data, *end = line + size, *next;

	for (size_t i = 0; i < FORMATS; i++)
		streams[i] = (struct stream){
			.format = formats[i], .series = 16, .activity = "fuzz", .sink = {.fd = dup(written)}};
	for (; line < end; line = next + 1) {
		next = memchr(line, '\n', end - line);
		next = next ? next : end;
		if (next > line)
			take(streams, line, next - line);
		if (next > line && *line == '.' && finished++ < FINISHED_MOST)
			finish(streams);
		if (next > line && *line == 'h')
			later_s += 3601;
	}
	finish(streams);
	for (size_t i = 0; i < FORMATS; i++) {
		if (streams[i].own)
			formats[i]->release(&streams[i]);
		free(streams[i].line.text);
		calls_release(&streams[i].calls);
		expect(!sink_close(&streams[i].sink));
	}
	return 0;
}
