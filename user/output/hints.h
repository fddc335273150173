/* SPDX-License-Identifier: GPL-2.0-only */
/* What someone who has seen a table may try next: a line that ends it on a terminal. */
#pragma once

#include <jansson.h>

#include "output/sharing.h"
#include "output/text.h"

/* Adds the line for a command whose records began with `start` (NULL: they had no start), and tell of this
 * sharing. Nothing is added where there is nothing better to ask. */
void hint_add(struct text *text, const char *command, const json_t *start, const struct sharing *sharing);

/* Adds "--machine=ep,cpus=2", with the texts before and behind it, for the emulated machine that a start
 * record is from. Nothing is added if it is from none. */
void hint_add_machine(struct text *text, const json_t *start, const char *before, const char *behind);
