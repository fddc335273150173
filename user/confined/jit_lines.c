// SPDX-License-Identifier: GPL-2.0-only
#include "confined/jit_lines.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"
#include "naming/jitdump_format.h"
#include "naming/spans.h"

#define NO_ROW (SPANS_NONE - 1)

struct jit_row {
	size_t file; /* where its path begins in `texts` */
	__u32 line;
};

/* Code that was loaded, and which spans its rows have. */
struct coded {
	__u64 address;
	size_t first, nr;
};

struct jit_lines {
	struct spans spans; /* `what` is an index of `rows` */
	struct jit_row *rows;
	size_t nr, room;
	char *texts;
	size_t used, texts_room;
};

/* What is needed only while the file is read. */
struct jit_reading {
	struct jit_lines *lines;
	int fd;
	size_t most;
	struct span *spans;
	size_t nr, room;
	struct coded *codes;
	size_t nr_codes, codes_room;
	struct map last;	    /* the last of `codes` by its index: its place, and 1 */
	struct jitdump_debug debug; /* the last one */
	char *rows;		    /* its rows, which code is awaited for; NULL: none */
	size_t rows_size;
};

static bool read_at(const struct jit_reading *reading, void *to, size_t size, __u64 at)
{
	return pread(reading->fd, to, size, at) == (ssize_t)size;
}

static size_t taken_bytes(const struct jit_reading *reading)
{
	return reading->room * 2 * sizeof(*reading->spans) + reading->codes_room * sizeof(*reading->codes) +
	       map_bytes(&reading->last) + jit_lines_bytes(reading->lines);
}

static void add_span(struct jit_reading *reading, __u64 low, __u64 high, __u32 order, __u32 what)
{
	reading->spans = xroom(reading->spans, reading->nr, &reading->room, sizeof(*reading->spans));
	reading->spans[reading->nr++] = (struct span){low, high, order, what};
}

static __u32 add_row(struct jit_lines *lines, size_t file, __u32 line)
{
	lines->rows = xroom(lines->rows, lines->nr, &lines->room, sizeof(*lines->rows));
	lines->rows[lines->nr] = (struct jit_row){file, line};
	return lines->nr++;
}

static size_t add_text(struct jit_lines *lines, const char *text)
{
	size_t size = strlen(text) + 1, at = lines->used;

	lines->texts = xfit(lines->texts, lines->used + size, &lines->texts_room, 1);
	memcpy(lines->texts + at, text, size);
	lines->used += size;
	return at;
}

/* Adds the rows of code from `low` up to `high`. A row applies up to the next one. What is not within the
 * code is left out; what the code has no row for has none any more. */
static void add_rows(struct jit_reading *reading, __u64 low, __u64 high, __u32 order)
{
	const char *at = reading->rows, *end = at + reading->rows_size, *file = NULL, *path;
	size_t text = 0, before = reading->nr;

	for (__u64 i = 0; i < reading->debug.nr && (size_t)(end - at) > sizeof(struct jitdump_row); i++) {
		struct jitdump_row row;

		memcpy(&row, at, sizeof(row));
		path = at + sizeof(row);
		at = memchr(path, '\0', end - path);
		if (!at++ || taken_bytes(reading) > reading->most)
			break;
		if (strcmp(path, "\xff") && (!file || strcmp(path, file))) {
			file = path;
			text = add_text(reading->lines, path);
		}
		if (!file || row.address < low || row.address >= high)
			continue;
		if (reading->nr > before)
			reading->spans[reading->nr - 1].high = row.address;
		add_span(reading, row.address, high, order + 1, add_row(reading->lines, text, row.line));
	}
}

static void forget_rows(struct jit_reading *reading)
{
	free(reading->rows);
	reading->rows = NULL;
}

static void take_debug(struct jit_reading *reading, __u64 at, size_t size)
{
	forget_rows(reading);
	if (size < sizeof(reading->debug) || size > reading->most / 4 ||
	    !read_at(reading, &reading->debug, sizeof(reading->debug), at))
		return;
	reading->rows_size = size - sizeof(reading->debug);
	reading->rows = xmalloc(reading->rows_size + 1);
	if (!read_at(reading, reading->rows, reading->rows_size, at + sizeof(reading->debug)))
		forget_rows(reading);
}

/* What is loaded at an address takes the place of what was there. */
static void take_load(struct jit_reading *reading, __u64 at, __u32 order)
{
	struct jitdump_load load;
	struct coded code;
	void *before;

	if (!read_at(reading, &load, sizeof(load), at) || load.address + load.size < load.address)
		return;
	add_span(reading, load.address, load.address + load.size, order, NO_ROW);
	code = (struct coded){load.address, reading->nr, 0};
	if (reading->rows && reading->debug.address == load.address)
		add_rows(reading, load.address, load.address + load.size, order);
	forget_rows(reading);
	code.nr = reading->nr - code.first;
	reading->codes =
		xroom(reading->codes, reading->nr_codes, &reading->codes_room, sizeof(*reading->codes));
	reading->codes[reading->nr_codes++] = code;
	before = map_find(&reading->last, load.index);
	if (before)
		map_remove(&reading->last, load.index, before);
	map_put(&reading->last, load.index, (void *)(uintptr_t)reading->nr_codes);
}

/* Code that is moved keeps its lines. */
static void take_move(struct jit_reading *reading, __u64 at, __u32 order)
{
	struct jitdump_move move;
	size_t i;

	if (!read_at(reading, &move, sizeof(move), at) || move.to + move.size < move.to)
		return;
	add_span(reading, move.to, move.to + move.size, order, NO_ROW);
	i = (uintptr_t)map_find(&reading->last, move.index);
	if (!i)
		return;
	for (size_t s = 0; s < reading->codes[i - 1].nr && taken_bytes(reading) <= reading->most; s++) {
		struct span span = reading->spans[reading->codes[i - 1].first + s];
		__u64 by = move.to - reading->codes[i - 1].address;

		add_span(reading, span.low + by, span.high + by, order + 1, span.what);
	}
}

static void take_records(struct jit_reading *reading, __u64 at)
{
	struct jitdump_prefix prefix;

	/* The rows of code, which are in front of it, have the next order. */
	for (__u32 order = 1;
	     read_at(reading, &prefix, sizeof(prefix), at) && taken_bytes(reading) <= reading->most;
	     order += 2, at += prefix.total_size) {
		if (prefix.total_size < sizeof(prefix))
			break;
		if (prefix.id == JIT_CODE_DEBUG_INFO)
			take_debug(reading, at + sizeof(prefix), prefix.total_size - sizeof(prefix));
		else if (prefix.id == JIT_CODE_LOAD)
			take_load(reading, at + sizeof(prefix), order);
		else if (prefix.id == JIT_CODE_MOVE)
			take_move(reading, at + sizeof(prefix), order);
	}
}

struct jit_lines *jit_lines_open(int fd, size_t most)
{
	struct jit_lines *lines = xcalloc(1, sizeof(*lines));
	struct jit_reading reading = {.lines = lines, .fd = fd, .most = most};
	struct jitdump_header header;

	if (read_at(&reading, &header, sizeof(header), 0) && header.magic == JITDUMP_MAGIC)
		take_records(&reading, header.total_size);
	spans_make(&lines->spans, reading.spans, reading.nr);
	free(reading.spans);
	free(reading.codes);
	map_release(&reading.last);
	forget_rows(&reading);
	if (lines->nr)
		return lines;
	jit_lines_close(lines);
	return NULL;
}

void jit_lines_close(struct jit_lines *lines)
{
	if (!lines)
		return;
	spans_release(&lines->spans);
	free(lines->rows);
	free(lines->texts);
	free(lines);
}

size_t jit_lines_find(const struct jit_lines *lines, __u64 address, struct source_place *place)
{
	__u32 what = spans_find(&lines->spans, address);

	if (what >= lines->nr)
		return 0;
	*place = (struct source_place){.file = lines->texts + lines->rows[what].file,
				       .line = lines->rows[what].line};
	return 1;
}

size_t jit_lines_bytes(const struct jit_lines *lines)
{
	return sizeof(*lines) + spans_bytes(&lines->spans) + lines->room * sizeof(*lines->rows) +
	       lines->texts_room;
}
