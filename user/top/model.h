/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What nhmtap top shows, without a terminal: it takes records, keys and the time, and makes lines. Records
 * that were taken in are kept, so what is frozen, or was some time ago, is made from the records up to there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "top/lines.h"
#include "view/reading.h"

/* Keys that are no characters. */
enum top_keys {
	TOP_ENTER = '\n',
	TOP_ESCAPE = 27,
	TOP_ERASE = 127,
	TOP_UP = 0x110000,
	TOP_DOWN,
	TOP_LEFT,
	TOP_RIGHT,
	TOP_PAGE_UP,
	TOP_PAGE_DOWN,
	TOP_HOME,
	TOP_END,
};

struct top_model;

/* replay: records are shown at the pace at which they were written, from the first one on. utf8: see
 * line_fitting(). */
struct top_model *top_new(bool replay, bool utf8);
void top_release(struct top_model *top);

/* Takes in a line of the stream. One that is no record is passed over. */
void top_take(struct top_model *top, const char *line, size_t size);

/* Whether any record has been taken in that there is something to show of. */
bool top_has_content(const struct top_model *top);

/* Takes in what the measuring process or its COMMAND has written for people. */
void top_say(struct top_model *top, const char *text, size_t size);

/* Says in words that no more records will come. */
void top_ended(struct top_model *top, const char *how);

/* Says that all records of a stored stream have been taken in, and how it ends. */
void top_replays(struct top_model *top, const struct stored_end *end);

void top_resize(struct top_model *top, int columns, int rows);

/* Takes in a key: a character, or one of enum top_keys; 0: another one, after which the screen is drawn anew.
 * Returns false if it ends the program. */
bool top_key(struct top_model *top, int key);

/* Says how late it is, by CLOCK_MONOTONIC. Returns whether the screen has changed since the last call of
 * top_draw(). */
bool top_tick(struct top_model *top, __u64 now_ns);

/* Makes the screen: as many lines as it has rows, each as wide as it is. They are valid until the next call.
 */
const struct screen_lines *top_draw(struct top_model *top);
