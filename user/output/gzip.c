// SPDX-License-Identifier: GPL-2.0-only
#include "output/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"

/* 16 more than the window's bits asks deflateInit2() for a gzip header: zlib.h. */
#define GZIP_WINDOW  (15 + 16)
#define MEMORY_LEVEL 8

char *gzip(const void *bytes, size_t size, size_t *zipped_size)
{
	z_stream zip = {.next_in = (unsigned char *)bytes, .avail_in = size};
	unsigned char *zipped;
	uLong room;

	/* deflateInit2() fails only if memory is exhausted; like every allocation here, that ends the
	 * process. */
	if (deflateInit2(&zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		memory_is_out();
	room = deflateBound(&zip, size);
	zipped = xmalloc(room);
	zip.next_out = zipped;
	zip.avail_out = room;
	deflate(&zip, Z_FINISH); /* the buffer has room for all of it, so one call is enough */
	*zipped_size = room - zip.avail_out;
	deflateEnd(&zip);
	return (char *)zipped;
}

/* RFC 1952: the file ends with the size of what was compressed. */
static size_t size_of_unzipped(const unsigned char *bytes, size_t size)
{
	const unsigned char *end = bytes + size;

	return end[-4] | end[-3] << 8 | end[-2] << 16 | (size_t)end[-1] << 24;
}

char *gunzip(const void *bytes, size_t size, size_t *unzipped_size)
{
	z_stream zip = {.next_in = (unsigned char *)bytes, .avail_in = size};
	unsigned char *unzipped;
	bool whole;

	if (!gzip_is(bytes, size) || size < 4)
		return NULL;
	if (inflateInit2(&zip, GZIP_WINDOW) != Z_OK)
		memory_is_out();
	*unzipped_size = size_of_unzipped(bytes, size);
	unzipped = xmalloc(*unzipped_size + 1);
	zip.next_out = unzipped;
	zip.avail_out = *unzipped_size + 1;
	whole = inflate(&zip, Z_FINISH) == Z_STREAM_END && !zip.avail_in && zip.total_out == *unzipped_size;
	inflateEnd(&zip);
	if (whole)
		return (char *)unzipped;
	free(unzipped);
	return NULL;
}

bool gzip_is(const void *bytes, size_t size)
{
	return size > 2 && !memcmp(bytes, "\x1f\x8b", 2);
}
