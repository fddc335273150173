// SPDX-License-Identifier: GPL-2.0-only
#include "output/torn.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

#define SETTLED_US 20000

/* Returns where the whole records or frames end. */
typedef off_t (*whole_fn)(int file, off_t size);

static void remove_torn(int file, whole_fn whole)
{
	struct stat stat;
	char path[40];
	off_t end, size;
	int reading;

	if (fstat(file, &stat) || !S_ISREG(stat.st_mode))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	reading = open(path, O_RDONLY | O_CLOEXEC);
	if (reading < 0)
		return;
	/* Another run may be writing the rest of it just now. */
	do {
		size = stat.st_size;
		end = whole(reading, size);
	} while (end < size && !usleep(SETTLED_US) && !fstat(file, &stat) && stat.st_size != size);
	if (end < size && ftruncate(file, end))
		lseek(file, 0, SEEK_END);
	close(reading);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Returns where the last line begins. */
static off_t last_line(int file, off_t size)
{
	char text[65536];

	while (size) {
		off_t from = size > (off_t)sizeof(text) ? size - (off_t)sizeof(text) : 0;
		ssize_t got = pread(file, text, size - from, from);
		const char *last = got > 0 ? memrchr(text, '\n', got) : NULL;

		if (last)
			return from + (last + 1 - text);
		size = from;
	}
	return 0;
}

static off_t whole_records(int file, off_t size)
{
	static const char *const begins[] = {"{\"type\":", "{\"resourceMetrics\":"};
	off_t end = last_line(file, size);
	char text[32] = "";
	ssize_t got = pread(file, text, sizeof(text), end);

	for (size_t i = 0; got > 0 && i < ARRAY_SIZE(begins); i++) {
		size_t length = strlen(begins[i]);

		if (!strncmp(text, begins[i], (size_t)got < length ? (size_t)got : length))
			return end;
	}
	return size;
}

void torn_record_remove(int file)
{
	remove_torn(file, whole_records);
}

/* --- frames ----------------------------------------------------------------------------------- */

/* RFC 8878, sections 3.1.1 and 3.1.2. */
#define FRAME	      0xfd2fb528U
#define SKIPPABLE     0x184d2a50U
#define SKIPPABLE_ANY 0xfU
#define BLOCK_OF_RUN  1

/* A number of so many bytes. Those that are missing are zero. Returns whether none is. */
static bool take_number(int file, off_t at, size_t bytes, uint32_t *number)
{
	unsigned char text[4] = {0};
	ssize_t got = pread(file, text, bytes, at);

	*number = text[0] | text[1] << 8 | text[2] << 16 | (uint32_t)text[3] << 24;
	return got == (ssize_t)bytes;
}

/* Where the blocks begin that are behind a frame's header, of which the descriptor tells the size. */
static off_t first_block(off_t frame, uint32_t descriptor)
{
	static const unsigned char dictionary[] = {0, 1, 2, 4}, content[] = {0, 2, 4, 8};
	bool single = descriptor & 1 << 5;
	unsigned int size = content[descriptor >> 6];

	return frame + 5 + !single + dictionary[descriptor & 3] + (size ? size : single);
}

/* Returns where the frame ends; INT64_MAX: behind the file's end; -1: there is no frame. */
static off_t frame_end(int file, off_t at)
{
	uint32_t magic, word;
	off_t end;

	if (!take_number(file, at, 4, &magic)) /* of a part of one, the bytes that are missing are zero */
		return magic == (FRAME & 0xff) || magic == (FRAME & 0xffff) || magic == (FRAME & 0xffffff)
			       ? INT64_MAX
			       : -1;
	if ((magic & ~SKIPPABLE_ANY) == SKIPPABLE)
		return take_number(file, at + 4, 4, &word) ? at + 8 + word : INT64_MAX;
	if (magic != FRAME)
		return -1;
	if (!take_number(file, at + 4, 1, &word))
		return INT64_MAX;
	end = first_block(at, word) + (word & 1 << 2 ? 4 : 0); /* with the checksum behind the blocks */
	at = first_block(at, word);
	do {
		off_t bytes;

		if (!take_number(file, at, 3, &word))
			return INT64_MAX;
		bytes = 3 + ((word >> 1 & 3) == BLOCK_OF_RUN ? 1 : word >> 3);
		at += bytes;
		end += bytes;
	} while (!(word & 1));
	return end;
}

static off_t whole_frames(int file, off_t size)
{
	off_t at = 0;

	while (at < size) {
		off_t end = frame_end(file, at);

		if (end < 0)
			return size;
		if (end > size)
			break;
		at = end;
	}
	return at;
}

void torn_frame_remove(int file)
{
	remove_torn(file, whole_frames);
}
