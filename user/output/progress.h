/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A line on stderr that shows the progress of a long run and is removed at the end. It is global state, as a
 * process has one stderr. Nothing is shown where stderr is not a terminal, or where records are written to a
 * terminal.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

/* Time between updates. A run that is shorter than this shows no line. */
#define PROGRESS_NS 500000000ULL

/* Begins to show progress, unless `quiet` is set or stderr is not a terminal. Returns whether it will be
 * shown. */
bool progress_begin(bool quiet);

/*
 * For a run whose command may write to the terminal, too. The line is then on the last row, above which the
 * rest of the screen scrolls, and gives way to what others write: it is back once they have been silent for
 * PROGRESS_NS. Returns a descriptor that can be read when somebody has written, for progress_give_way(); it
 * is closed by progress_end(). -1: nobody can tell, or the terminal has no such rows, and no line will be
 * shown.
 */
int progress_share(void);
void progress_give_way(void);

/* Leaves the terminal as it was, from a signal's handler, too. */
void progress_abandon(void);

/* Whether it is time for an update. For commands that read without waiting. */
bool progress_due(void);

/* Shows this text, cut to the current width of the terminal. */
void progress_show(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Removes the line for good. */
void progress_end(void);

/* Shows how much of a file has been read: "42% of 3.1 MiB read", or "1.3 MiB read" where its size is not
 * known. */
void progress_show_read(int fd, __u64 bytes);

/* 3250586 as "3.1 MiB"; returns buffer. */
const char *progress_size(__u64 bytes, char *buffer, size_t size);
