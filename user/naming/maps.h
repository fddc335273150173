/* SPDX-License-Identifier: GPL-2.0-only */
/* Symbols from texts: /proc/kallsyms, and the perf-PID.map that a run-time compiler writes. */
#ifndef NHMTAP_MAPS_H
#define NHMTAP_MAPS_H

#include "naming/symbols.h"

/*
 * The kernel's symbols of code, with those of its modules, from texts in the form of /proc/kallsyms and
 * /proc/modules (which says where a module ends; it may be missing). Behind each name's zero byte is its
 * module's, "" for the kernel's own. Returns NULL, or why there are none: a constant sentence.
 */
const char *kernel_symbols(struct symbols *symbols, const char *kallsyms, const char *modules);

/* The symbols of "START SIZE name" lines, read from a descriptor, which is closed; at most `most` bytes of
 * them. A later line is meant where two overlap. */
const char *jit_symbols(struct symbols *symbols, int fd, size_t most);

#endif
