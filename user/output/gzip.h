/* SPDX-License-Identifier: GPL-2.0-only */
/* gzip's form of what is written. */
#ifndef NHMTAP_GZIP_H
#define NHMTAP_GZIP_H

#include <stdbool.h>
#include <stddef.h>

/* The same, gzipped; to be freed. */
char *gzip(const void *bytes, size_t size, size_t *zipped_size);

/* Whether it is already. */
bool gzip_is(const void *bytes, size_t size);

#endif
