// SPDX-License-Identifier: GPL-2.0-only
#include "output/gzip.h"

#include <string.h>
#include <zlib.h>

#include "memory.h"

/* zlib.h, deflateInit2(). */
#define GZIP_WINDOW  (15 + 16)
#define MEMORY_LEVEL 8

char *gzip(const void *bytes, size_t size, size_t *zipped_size)
{
	z_stream zip = {.next_in = (unsigned char *)bytes, .avail_in = size};
	unsigned char *zipped;
	uLong room;

	/* It fails only if memory is exhausted, as every allocation here. */
	if (deflateInit2(&zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		memory_is_out();
	room = deflateBound(&zip, size);
	zipped = xmalloc(room);
	zip.next_out = zipped;
	zip.avail_out = room;
	deflate(&zip, Z_FINISH); /* there is room: it ends at once */
	*zipped_size = room - zip.avail_out;
	deflateEnd(&zip);
	return (char *)zipped;
}

bool gzip_is(const void *bytes, size_t size)
{
	return size > 2 && !memcmp(bytes, "\x1f\x8b", 2);
}
