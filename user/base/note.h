/* SPDX-License-Identifier: GPL-2.0-only */
/* Notes for --verbose: what nhmtap does, a line each on stderr, for bug reports. */
#pragma once

#include <stdbool.h>

/* Sets whether notes are written from now on. */
void note_begin(bool verbose);

/* Writes a note like "nhmtap: 0.012 s: opened …", with the time since note_begin(). */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
