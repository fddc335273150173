/* SPDX-License-Identifier: GPL-2.0-only */
/* Small text files below the host's root. */
#pragma once

#include <stddef.h>

#include "host/host.h"

/* Reads a file, at most size - 1 bytes of it, without its last newline. Returns the length, or -errno with an
 * empty text. */
int slurp(const struct host *host, char *text, size_t size, const char *path, ...)
	__attribute__((format(printf, 4, 5)));

/* Reads a file with one decimal number. Returns `otherwise` if it can't be read or has no number. */
long slurp_number(const struct host *host, const char *path, long otherwise);

/* Copies the value after "NAME :" from a text of such lines, up to the end of the line. Returns NULL if there
 * is no such line. */
char *line_value(char *text, const char *name, char *value, size_t size);
