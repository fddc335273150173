// SPDX-License-Identifier: GPL-2.0-only
#include "base/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WRITE(refusal, member, format)                                                                       \
	do {                                                                                                 \
		va_list args;                                                                                \
		va_start(args, format);                                                                      \
		vsnprintf((refusal)->member, sizeof((refusal)->member), format, args);                       \
		va_end(args);                                                                                \
	} while (0)

int refuse(struct refusal *refusal, enum status status, const char *asked, ...)
{
	*refusal = (struct refusal){.status = status};
	WRITE(refusal, asked, asked);
	return -1;
}

int because(struct refusal *refusal, const char *why, ...)
{
	WRITE(refusal, why, why);
	return -1;
}

int instead(struct refusal *refusal, const char *remedy, ...)
{
	WRITE(refusal, remedy, remedy);
	return -1;
}

int according(struct refusal *refusal, const char *source, ...)
{
	WRITE(refusal, source, source);
	return -1;
}

/* Bytes of the text on either side of the place: half a line of a terminal. */
#define CONTEXT 36

int at_place(struct refusal *refusal, const char *text, size_t at)
{
	size_t from = at > CONTEXT ? at - CONTEXT : 0;

	snprintf(refusal->input, sizeof(refusal->input), "%.*s", 2 * CONTEXT, text + from);
	refusal->column = at - from + 1;
	return -1;
}

const char *error_name(int error)
{
	const char *name = error ? strerrorname_np(error) : "";

	return name ? name : "";
}
