/* SPDX-License-Identifier: GPL-2.0-only */
/* With --verbose: what nhmtap does, a line each on stderr, for a report of what went wrong. */
#ifndef NHMTAP_NOTE_H
#define NHMTAP_NOTE_H

#include <stdbool.h>

/* Notes are written from here on, or not. */
void note_begin(bool verbose);

/* "nhmtap: 0.012 s: opened …": the time is that since note_begin(). */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
