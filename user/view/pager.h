/* SPDX-License-Identifier: GPL-2.0-only */
/* Shows a long text on a terminal by the user's pager. */
#pragma once

#include "base/refusal.h"
#include "output/text.h"

/*
 * Writes a text to a file or, if path is NULL, to stdout. If that is a terminal, it is shown by $PAGER, or by
 * less if this is not set; without less it is just written. Lines that are too wide are broken. Characters
 * that must not reach a terminal are replaced. Returns 0, or -1 with the refusal.
 */
int show_text(struct text *text, const char *path, struct refusal *refusal);

/* A text for it: of the terminal's width, or without limits if it goes elsewhere. */
struct text show_begin(const char *path);
