/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds files that were built or installed with the program, relative to its executable. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Writes the first of the paths for which access(2) grants `mode`. The paths are relative to the executable's
 * folder; NULL ends the list. Returns false if there is none; `path` is then the last one tried. */
bool beside_program(char *path, size_t size, const char *const *relative, int mode);
