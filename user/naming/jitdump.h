/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the names of compiled code from a jitdump file (its lines: confined/jit_lines.h), the binary form
 * that V8, .NET, LLVM and Java's agents write: tools/perf/Documentation/jitdump-specification.txt. */
#pragma once

#include "naming/symbols.h"

/* Whether a path is that of such a file, by its name: jit-PID.dump. */
bool jitdump_is_named(const char *path);

/* Whether a file is one, by its first bytes. */
bool jitdump_is(int fd);

/* Reads the symbols of a descriptor, which is closed. Code that was written, or moved to an address, later
 * takes the place of what was there. They take at most `most` bytes. Returns NULL, or why there are no
 * symbols: a constant sentence. */
const char *jitdump_symbols(struct symbols *symbols, int fd, size_t most);
