/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One line on stderr that says how far a long run is, and is gone at its end. There is one for the process,
 * as there is one stderr. Where stderr is no terminal, or records go to one, nothing is ever shown.
 */
#ifndef NHMTAP_PROGRESS_H
#define NHMTAP_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

/* How often the line changes. Runs that are shorter show none. */
#define PROGRESS_NS 500000000ULL

/* Begins, unless `quiet` or stderr is no terminal. Returns whether there will be a line. */
bool progress_begin(bool quiet);

/* Whether it is time to update the line; for commands that read and never wait. */
bool progress_due(void);

/* Shows this text, cut to the terminal's width as it is now. */
void progress_show(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* No line any more. */
void progress_end(void);

/* Shows how much of a file has been read: "42% of 3.1 MiB read", or "1.3 MiB read" where its size is not
 * known. */
void progress_show_read(int fd, __u64 bytes);

/* 3250586 as "3.1 MiB"; returns buffer. */
const char *progress_size(__u64 bytes, char *buffer, size_t size);

#endif
