/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Blocks of ClickHouse's format Native, by
 * https://clickhouse.com/docs/reference/interfaces/specs/NativeFormat: the numbers of columns and rows, and
 * then each column with its name, its type and all of its values. Blocks follow one another without anything
 * between them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <linux/types.h>

#include "output/halves.h"
#include "record/compact.h"

enum native_type { NATIVE_STRING, NATIVE_UINT64, NATIVE_UINT32, NATIVE_UINT8, NATIVE_FLOAT64 };

/* The values of a column. Those of the last rows are missing until they are needed: they are the usual. */
struct native_column {
	char *name;
	size_t name_length;
	enum native_type type;
	size_t size; /* bytes of a value; 0: a text, with its length before it */
	size_t rows;
	struct compact bytes;
	struct compact usual; /* of texts, with the length before it; empty: "" */
	__u64 usual_bits;     /* of numbers */
};

/* A block that is being made. Starts as {0}. */
struct native_block {
	struct native_column *list;
	size_t nr, room;
	size_t rows; /* that are complete */
	bool keeps;  /* what is put becomes usual */
};

void native_release(struct native_block *block);

/* Adds a column, with a copy of its name, and returns its number. Rows that are there already have the
 * default value in it. */
size_t native_add_column(struct native_block *block, const char *name, size_t length, enum native_type type);

/* The number of the column of this name, or -1. */
int native_find(const struct native_block *block, const char *name, size_t length);

/* Gives the column its value in the row that is being made. A second one is ignored. A number is put into
 * the column's type, and a text into a column of texts alone. If the block keeps values, it is the usual one:
 * that of this row and all behind, until another is kept. What many rows of a block have costs little more
 * than a copy of its bytes then. */
void native_put_text(struct native_block *block, size_t column, const char *text, size_t length);
void native_put_real(struct native_block *block, size_t column, double number);

/* What native_put_number() does not do itself: the value is kept, others are missing before it, there is no
 * room, or the column has another type. */
void native_put_converted(struct native_block *block, size_t column, __u64 number);

/* The same for a whole number, which mostly goes behind that of the row before as it is. */
static inline void native_put_number(struct native_block *block, size_t number, __u64 value)
{
	struct native_column *column = &block->list[number];
	struct compact *bytes = &column->bytes;

	if (block->keeps || column->rows != block->rows || column->type == NATIVE_FLOAT64 ||
	    bytes->room - bytes->used < sizeof(value)) {
		native_put_converted(block, number, value);
		return;
	}
	memcpy(bytes->text + bytes->used, &value, sizeof(value));
	bytes->used += column->size;
	column->rows++;
}

/* From the row that is being made on, rows without a value have this text, or 0 and "" again. */
void native_set_usual(struct native_block *block, size_t column, const char *text, size_t length);
void native_forget_usual(struct native_block *block, size_t column);

/* The number of bytes of all values so far. */
size_t native_bytes(const struct native_block *block);

/* The row is complete. */
static inline void native_end_row(struct native_block *block)
{
	block->rows++;
}

/* Appends the block, and empties it. The columns stay. */
void native_write(struct native_block *block, struct compact *to);

/* The number of rows in blocks. */
size_t native_rows(const char *bytes, size_t size);

/* See halves.h: between two blocks, or between two rows of the only one. */
halve_t native_halve;
