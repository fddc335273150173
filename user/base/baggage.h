/* SPDX-License-Identifier: GPL-2.0-only */
/* Lists as OpenTelemetry has them in environment variables: NAME=VALUE,NAME=VALUE with special characters as
 * %XX (W3C Baggage without properties). */
#pragma once

#include <stddef.h>

/* Calls `take` for each member of the list, decoded; `take` returns what is wrong with it, or NULL. Returns
 * NULL, or what is wrong, as the end of a sentence about `member`, which then has the text of the member. */
const char *baggage_read(const char *text,
			 const char *(*take)(void *context, const char *name, const char *value),
			 void *context, char *member, size_t size);
