/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads a stored stream of records line by line, in bounded memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Records have at most RECORD_MAX bytes (output/output.h), but other tools may have made them longer. */
#define STORED_LINE_MAX (1 << 20)

struct stored_lines {
	int fd;
	char *bytes; /* bytes from `begin` to `end` are read but not returned yet */
	size_t begin, end;
	bool in_long; /* the piece returned last was of a longer line, and not its end */
	bool begun, ended;
	unsigned long long read; /* total number of bytes read */
};

/* Whether a line is of white space alone, which is no record and no fault. */
bool stored_line_is_blank(const char *line, size_t size);

/* The file descriptor stays open and the caller's. */
void stored_lines_open(struct stored_lines *lines, int fd);

/*
 * Returns the next line with its newline, which only the last line may lack. A byte order
 * mark at the beginning of the stream is left out. A line longer than
 * STORED_LINE_MAX is returned in pieces, each with *whole false. The bytes are borrowed, and valid until the
 * next call. Returns the number of bytes, 0 at the end of the stream, or -errno of a failed read(2).
 */
ssize_t stored_lines_next(struct stored_lines *lines, const char **line, bool *whole);

/*
 * Whether no complete line is buffered and reading would block, that is, the writer has not written it yet.
 */
bool stored_lines_would_wait(const struct stored_lines *lines);

void stored_lines_close(struct stored_lines *lines);
