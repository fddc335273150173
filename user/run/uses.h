/* SPDX-License-Identifier: GPL-2.0-only */
/* What each member of an output, and the option that says the same, needs of the output to have an effect.
 * One that would have none is refused: who writes it believes that it does something. */
#pragma once

#include <jansson.h>

#include "base/refusal.h"
#include "run/run.h"

/* Checks the members of an output of CONFIG, which are at `pointer` there, for the place that they became.
 * The refusal's place is the JSON pointer of the member. Returns 0, or -1 with the refusal. */
int uses_check_members(const json_t *output, const struct place_of_output *place, const char *pointer,
		       struct refusal *refusal);

/* Checks the options of a command for its outputs: one of them has to have a use for each option. Returns 0,
 * or -1 with the refusal. */
int uses_check_options(const struct options *options, const struct place_of_output *places, size_t nr,
		       struct refusal *refusal);

/* Returns what CONFIG's schema says of this to editors: a list for the `allOf` of an output. A text with a
 * variable may become anything. The caller owns it. */
json_t *uses_schema(void);
