/* SPDX-License-Identifier: GPL-2.0-only */
/* The terminal of nhmtap top, by ncurses: it draws lines and reads keys, and knows nothing else. */
#pragma once

#include <stdbool.h>

#include "base/refusal.h"
#include "top/lines.h"

/* A program that is built without ncurses has only open(), which refuses. */
extern const struct terminal_screen {
	/* Takes over the terminal. Sets *utf8: whether it takes other characters than ASCII, and *fd: where
	 * its keys come from. Returns 0, or -1 with the refusal. */
	int (*open)(bool *utf8, int *fd, struct refusal *refusal);
	void (*size)(int *columns, int *rows);
	void (*draw)(const struct screen_lines *lines);
	/* The next key, as top_key() takes it; -1: there is none yet. */
	int (*key)(void);
	void (*close)(void); /* gives the terminal back */
} terminal_screen;
