// SPDX-License-Identifier: GPL-2.0-only
#include "record/stored_lines.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

void stored_lines_open(struct stored_lines *lines, int fd)
{
	*lines = (struct stored_lines){.fd = fd, .bytes = xmalloc(STORED_LINE_MAX)};
}

bool stored_line_is_blank(const char *line, size_t size)
{
	while (size && strchr(" \t\r\n", line[size - 1]) && line[size - 1])
		size--;
	return !size;
}

static const char *line_end(const struct stored_lines *lines)
{
	return memchr(lines->bytes + lines->begin, '\n', lines->end - lines->begin);
}

/* Reads more bytes. Returns as read(2), but -errno on failure. */
static ssize_t read_more(struct stored_lines *lines)
{
	ssize_t got;

	memmove(lines->bytes, lines->bytes + lines->begin, lines->end - lines->begin);
	lines->end -= lines->begin;
	lines->begin = 0;
	do
		got = read(lines->fd, lines->bytes + lines->end, STORED_LINE_MAX - lines->end);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	lines->end += got;
	lines->read += got;
	return got;
}

/* Editors and PowerShell begin a file with a byte order mark. jq takes it, too. */
static void skip_mark(struct stored_lines *lines)
{
	lines->begun = true;
	if (lines->end >= sizeof(BYTE_ORDER_MARK) - 1 &&
	    !memcmp(lines->bytes, BYTE_ORDER_MARK, sizeof(BYTE_ORDER_MARK) - 1))
		lines->begin = sizeof(BYTE_ORDER_MARK) - 1;
}

ssize_t stored_lines_next(struct stored_lines *lines, const char **line, bool *whole)
{
	const char *end = NULL;
	size_t size;

	while (!lines->ended && !(end = line_end(lines)) && lines->end - lines->begin < STORED_LINE_MAX) {
		ssize_t got = read_more(lines);

		if (got < 0)
			return got;
		lines->ended = !got;
	}
	if (!end)
		end = line_end(lines);
	if (!lines->begun)
		skip_mark(lines);
	*line = lines->bytes + lines->begin;
	size = end ? (size_t)(end + 1 - *line) : lines->end - lines->begin;
	lines->begin += size;
	*whole = !lines->in_long && (end || lines->ended);
	lines->in_long = !end && !lines->ended;
	return size;
}

bool stored_lines_would_wait(const struct stored_lines *lines)
{
	struct pollfd more = {.fd = lines->fd, .events = POLLIN};

	/* A signal, such as SIGWINCH, interrupts even a poll that does not wait. */
	return !lines->ended && !line_end(lines) && poll(&more, 1, 0) <= 0;
}

void stored_lines_close(struct stored_lines *lines)
{
	free(lines->bytes);
	lines->bytes = NULL;
}
