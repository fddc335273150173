// SPDX-License-Identifier: GPL-2.0-only
#include "output/gzip.h"

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

bool gzip_is(const void *bytes, size_t size)
{
	return size > 2 && !memcmp(bytes, "\x1f\x8b", 2);
}
