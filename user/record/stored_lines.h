/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads a stored stream of records line by line, in bounded memory. */
#ifndef NHMTAP_STORED_LINES_H
#define NHMTAP_STORED_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A record has at most RECORD_MAX bytes (output/output.h); other tools may have made it longer since. */
#define STORED_LINE_MAX (1 << 20)

struct stored_lines {
	int fd;
	char *bytes; /* what was read and not yet given: from begin to end */
	size_t begin, end;
	bool in_long; /* the last piece given was one of a longer line, without its end */
	bool ended;
	unsigned long long read; /* bytes so far */
};

/* The descriptor stays the caller's, and open. */
void stored_lines_open(struct stored_lines *lines, int fd);

/*
 * Gives the next line with its newline, which only the last may lack. A line of more than STORED_LINE_MAX
 * bytes is given in pieces, each with *whole false. The bytes are the reader's, until the next call.
 * Returns the number of bytes, 0 at the end of the stream, -errno of a failed read(2).
 */
ssize_t stored_lines_next(struct stored_lines *lines, const char **line, bool *whole);

/* Returns whether the next line has yet to come from whoever writes the stream. */
bool stored_lines_would_wait(const struct stored_lines *lines);

void stored_lines_close(struct stored_lines *lines);

#endif
