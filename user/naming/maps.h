/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads symbols from text files: /proc/kallsyms, and the perf-PID.map that a JIT writes. */
#pragma once

#include <stdbool.h>

#include "naming/symbols.h"

/*
 * Reads the kernel's function symbols, with those of its modules, from files in the format of /proc/kallsyms
 * and /proc/modules. The latter tells where modules end; it may be missing. Each name is followed by a zero
 * byte and the name of its module, "" for the kernel itself. Returns NULL, or why there are no symbols: a
 * constant sentence.
 *
 * Of Debian 12's 94,266 lines it takes 19 million instructions. The kernel takes 187 million to write them
 * (the same for dd with pieces of 1 MiB, measured on the emulated machine): it expands each name and prints
 * each line.
 */
const char *kernel_symbols(struct symbols *symbols, const char *kallsyms, const char *modules);

/* A number that differs if other modules are loaded, or at other addresses, by a file in the format of
 * /proc/modules; or if one was loaded anew, by `folder`, which has a folder for each, as /sys/module. */
__u64 kernel_modules_version(const char *modules, const char *folder);

/* Reads symbols from lines "START SIZE name" of a descriptor, which is closed; of at most `most` bytes. If
 * two symbols overlap, the one on the later line is used. If the text still `grows`, a last line without a
 * line feed is left out, and that sets `half`. Returns NULL, or why there are no symbols: a constant
 * sentence. */
const char *jit_symbols(struct symbols *symbols, int fd, size_t most, bool grows, bool *half);
