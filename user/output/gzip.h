/* SPDX-License-Identifier: GPL-2.0-only */
/* Compression in the format of gzip. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Compresses the bytes. The caller frees the result. */
char *gzip(const void *bytes, size_t size, size_t *zipped_size);

/* Unpacks what gzip() has made. Returns NULL if the bytes are anything else; several such results behind one
 * another are. The caller frees the result. */
char *gunzip(const void *bytes, size_t size, size_t *unzipped_size);

/* Whether the bytes are in the format of gzip already. */
bool gzip_is(const void *bytes, size_t size);
