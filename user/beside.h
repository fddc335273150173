/* SPDX-License-Identifier: GPL-2.0-only */
/* What was built or installed with the program, found by the place of its executable. */
#ifndef NHMTAP_BESIDE_H
#define NHMTAP_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the first of these paths, relative to the executable's folder, for which access(2) grants `mode`;
 * NULL ends them. Returns false if there is none; path is then the last one tried.
 */
bool beside_program(char *path, size_t size, const char *const *relative, int mode);

#endif
