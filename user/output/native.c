// SPDX-License-Identifier: GPL-2.0-only
#include "output/native.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/same.h"
#include "output/varint.h"

/* The name of each type, and the bytes of its values; 0: a length before each. */
static const struct {
	const char *name;
	size_t size;
} types[] = {
	[NATIVE_STRING] = {"String", 0}, [NATIVE_UINT64] = {"UInt64", 8},   [NATIVE_UINT32] = {"UInt32", 4},
	[NATIVE_UINT8] = {"UInt8", 1},	 [NATIVE_FLOAT64] = {"Float64", 8},
};

void native_release(struct native_block *block)
{
	for (size_t i = 0; i < block->nr; i++) {
		free(block->list[i].name);
		free(block->list[i].bytes.text);
		free(block->list[i].usual.text);
	}
	free(block->list);
	*block = (struct native_block){0};
}

size_t native_add_column(struct native_block *block, const char *name, size_t length, enum native_type type)
{
	block->list = xroom(block->list, block->nr, &block->room, sizeof(*block->list));
	block->list[block->nr] = (struct native_column){.name = xasprintf("%.*s", (int)length, name),
							.name_length = length,
							.type = type,
							.size = types[type].size};
	return block->nr++;
}

int native_find(const struct native_block *block, const char *name, size_t length)
{
	for (size_t i = 0; i < block->nr; i++)
		if (block->list[i].name_length == length && !memcmp(block->list[i].name, name, length))
			return i;
	return -1;
}

/* --- values ----------------------------------------------------------------------------------- */

/* The bytes of the values that the column has not yet, up to this row. */
static size_t bytes_missing(const struct native_column *column, size_t rows)
{
	return (rows - column->rows) * (column->usual.used ?: column->size ?: 1);
}

static void repeat(char *to, const struct compact *text, size_t bytes)
{
	size_t done = text->used;

	memcpy(to, text->text, done);
	for (size_t piece; done < bytes; done += piece) {
		piece = done < bytes - done ? done : bytes - done;
		memcpy(to + done, to, piece);
	}
}

/* There is room for a whole word at the last one. */
static void repeat_number(char *to, const struct native_column *column, size_t bytes)
{
	for (const char *end = to + bytes; to < end; to += column->size)
		memcpy(to, &column->usual_bits, sizeof(column->usual_bits));
}

/* Appends usual values up to this row. A zero is the length of an empty text, too. */
static void fill_column(struct native_column *column, size_t rows, struct compact *to)
{
	size_t bytes = bytes_missing(column, rows);
	char *at;

	if (!bytes)
		return;
	at = compact_reserve(to, bytes + sizeof(column->usual_bits));
	if (column->usual.used)
		repeat(at, &column->usual, bytes);
	else if (column->usual_bits)
		repeat_number(at, column, bytes);
	else
		memset(at, 0, bytes);
	to->used += bytes;
	column->rows = rows;
}

/* The column, before another value becomes usual. */
static inline struct native_column *with_usual(struct native_block *block, size_t number)
{
	struct native_column *column = &block->list[number];

	if (column->rows < block->rows)
		fill_column(column, block->rows, &column->bytes);
	return column;
}

/* The column, if it has no value in the row yet. */
static inline struct native_column *open_column(struct native_block *block, size_t number)
{
	struct native_column *column = with_usual(block, number);

	if (column->rows > block->rows)
		return NULL;
	column->rows++;
	return column;
}

static void add_varint(struct compact *to, __u64 number)
{
	to->used = varint_put(compact_reserve(to, VARINT_MOST), number) - to->text;
}

static void add_text(struct compact *to, const char *text, size_t length)
{
	add_varint(to, length);
	compact_add(to, text, length);
}

static bool is_usual(const struct native_column *column, const char *text, size_t length)
{
	return length < 128 && column->usual.used == length + 1 &&
	       is_same(column->usual.text + 1, text, length);
}

void native_set_usual(struct native_block *block, size_t number, const char *text, size_t length)
{
	struct native_column *column;

	if (is_usual(&block->list[number], text, length))
		return;
	column = with_usual(block, number);
	column->usual.used = 0;
	add_text(&column->usual, text, length);
}

void native_forget_usual(struct native_block *block, size_t number)
{
	struct native_column *column = with_usual(block, number);

	column->usual.used = column->usual_bits = 0;
}

void native_put_text(struct native_block *block, size_t number, const char *text, size_t length)
{
	struct native_column *column;
	char *begin, *at;

	if (block->keeps) {
		native_set_usual(block, number, text, length);
		return;
	}
	column = open_column(block, number);
	if (!column)
		return;
	begin = compact_reserve(&column->bytes, VARINT_MOST + length);
	at = varint_put(begin, length);
	memcpy(at, text, length);
	column->bytes.used += at - begin + length;
}

static __u64 bits_of(double real)
{
	__u64 bits;

	memcpy(&bits, &real, sizeof(bits));
	return bits;
}

static bool is_real(const struct native_block *block, size_t number)
{
	return block->list[number].type == NATIVE_FLOAT64;
}

static inline void put_bits(struct native_block *block, size_t number, __u64 bits)
{
	struct native_column *column;

	if (block->keeps) {
		if (block->list[number].usual_bits != bits)
			with_usual(block, number)->usual_bits = bits;
		return;
	}
	column = open_column(block, number);
	if (!column)
		return;
	memcpy(compact_reserve(&column->bytes, sizeof(bits)), &bits, sizeof(bits));
	column->bytes.used += column->size;
}

void native_put_converted(struct native_block *block, size_t number, __u64 value)
{
	put_bits(block, number, is_real(block, number) ? bits_of(value) : value);
}

void native_put_real(struct native_block *block, size_t number, double value)
{
	put_bits(block, number, is_real(block, number) ? bits_of(value) : (__u64)value);
}

size_t native_bytes(const struct native_block *block)
{
	size_t bytes = 0;

	for (size_t i = 0; i < block->nr; i++) {
		const struct native_column *column = &block->list[i];

		bytes += column->bytes.used;
		if (column->rows < block->rows)
			bytes += bytes_missing(column, block->rows);
	}
	return bytes;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static void add_head(struct compact *to, const struct native_column *column)
{
	add_text(to, column->name, column->name_length);
	add_text(to, types[column->type].name, strlen(types[column->type].name));
}

void native_write(struct native_block *block, struct compact *to)
{
	add_varint(to, block->nr);
	add_varint(to, block->rows);
	for (size_t i = 0; i < block->nr; i++) {
		struct native_column *column = &block->list[i];

		add_head(to, column);
		compact_add(to, column->bytes.text, column->bytes.used);
		fill_column(column, block->rows, to);
		column->bytes.used = column->rows = 0;
	}
	block->rows = 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* What is left of the blocks. They are our own, but what is not a block must not be read beyond its end. */
struct read_bytes {
	const char *at, *end;
};

static bool skip(struct read_bytes *reading, __u64 size)
{
	if (size > (__u64)(reading->end - reading->at))
		return false;
	reading->at += size;
	return true;
}

static bool skip_texts(struct read_bytes *reading, __u64 nr)
{
	__u64 length;

	while (nr--)
		if (!varint_read(&reading->at, reading->end, &length) || !skip(reading, length))
			return false;
	return true;
}

/* Reads a type's name. Returns the bytes of its values, as in `types`, or -1. */
static int read_type(struct read_bytes *reading)
{
	const char *name;
	__u64 length;

	if (!varint_read(&reading->at, reading->end, &length))
		return -1;
	name = reading->at;
	if (!skip(reading, length))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i].name) == length && !memcmp(types[i].name, name, length))
			return types[i].size;
	return -1;
}

/* A column's head, and its values up to and from a row. */
struct read_column {
	struct read_bytes head, before, behind;
};

static bool read_column(struct read_bytes *reading, __u64 rows, __u64 middle, struct read_column *column)
{
	const char *begin = reading->at;
	int size;

	if (!skip_texts(reading, 1) || (size = read_type(reading)) < 0)
		return false;
	column->head = (struct read_bytes){begin, reading->at};
	column->before.at = reading->at;
	if (!(size ? skip(reading, middle * size) : skip_texts(reading, middle)))
		return false;
	column->before.end = column->behind.at = reading->at;
	if (!(size ? skip(reading, (rows - middle) * size) : skip_texts(reading, rows - middle)))
		return false;
	column->behind.end = reading->at;
	return true;
}

static bool read_counts(struct read_bytes *reading, __u64 *columns, __u64 *rows)
{
	/* Each row has a byte at least. */
	return varint_read(&reading->at, reading->end, columns) &&
	       varint_read(&reading->at, reading->end, rows) && *rows <= (__u64)(reading->end - reading->at);
}

/* Skips a block. Returns false if there is none. */
static bool read_block(struct read_bytes *reading, __u64 *rows)
{
	struct read_column column;
	__u64 columns;

	if (!read_counts(reading, &columns, rows))
		return false;
	while (columns--)
		if (!read_column(reading, *rows, 0, &column))
			return false;
	return true;
}

size_t native_rows(const char *bytes, size_t size)
{
	struct read_bytes reading = {bytes, bytes + size};
	__u64 rows, sum = 0;

	while (read_block(&reading, &rows))
		sum += rows;
	return sum;
}

static void add_read(struct compact *to, const struct read_bytes *piece)
{
	compact_add(to, piece->at, piece->end - piece->at);
}

/* Makes two blocks of one. Returns false if it has a single row, or is none. */
static bool halve_block(struct read_bytes reading, struct compact halves[2])
{
	__u64 columns, rows;

	if (!read_counts(&reading, &columns, &rows) || rows < 2)
		return false;
	for (int i = 0; i < 2; i++) {
		add_varint(&halves[i], columns);
		add_varint(&halves[i], i ? rows - rows / 2 : rows / 2);
	}
	while (columns--) {
		struct read_column column;

		if (!read_column(&reading, rows, rows / 2, &column))
			return false;
		add_read(&halves[0], &column.head);
		add_read(&halves[0], &column.before);
		add_read(&halves[1], &column.head);
		add_read(&halves[1], &column.behind);
	}
	return true;
}

bool native_halve(const char *bytes, size_t size, struct half halves[2])
{
	struct read_bytes reading = {bytes, bytes + size};
	struct compact made[2] = {{0}};
	const char *middle = bytes;
	bool done = true;
	__u64 rows;

	while (middle < bytes + size / 2 && read_block(&reading, &rows) && reading.at < reading.end)
		middle = reading.at;
	if (middle > bytes) {
		compact_add(&made[0], bytes, middle - bytes);
		compact_add(&made[1], middle, bytes + size - middle);
	} else {
		done = halve_block((struct read_bytes){bytes, bytes + size}, made);
	}
	for (int i = 0; i < 2; i++) {
		halves[i] = (struct half){made[i].text, made[i].used};
		if (!done)
			free(made[i].text);
	}
	return done;
}
