/* SPDX-License-Identifier: GPL-2.0-only */
/* Small text files below the host's root. */
#ifndef NHMTAP_FILES_H
#define NHMTAP_FILES_H

#include <stddef.h>

#include "host/host.h"

/* Reads a file, at most size - 1 bytes of it, without its last newline. Returns the length or
 * -errno; text is "" then. */
int slurp(const struct host *host, char *text, size_t size, const char *path, ...)
	__attribute__((format(printf, 4, 5)));

/* A file that is one decimal number; `otherwise` if it can't be read or is none. */
long slurp_number(const struct host *host, const char *path, long otherwise);

/* The value after "NAME :" in a text of such lines, cut off at the line's end; NULL if missing. */
char *line_value(char *text, const char *name, char *value, size_t size);

#endif
