// SPDX-License-Identifier: GPL-2.0-only
#include "base/baggage.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int digit_of(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? (c | 0x20) - 'a' + 10 : -1;
}

/* Decodes in place. Returns what is wrong; NULL: nothing. */
static const char *decode(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		int high, low;

		if (*at != '%') {
			*to++ = *at;
			continue;
		}
		high = digit_of(at[1]);
		low = high < 0 ? -1 : digit_of(at[2]);
		if (low < 0)
			return "has a '%' without two hexadecimal digits behind it";
		if (!high && !low)
			return "has a byte of zero";
		*to++ = high << 4 | low;
		at += 2;
	}
	*to = '\0';
	return NULL;
}

static char *trimmed(char *text)
{
	char *end;

	text += strspn(text, " \t");
	end = text + strlen(text);
	while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	return text;
}

/* Returns what is wrong with a member; NULL: nothing. */
static const char *read_member(char *member,
			       const char *(*take)(void *context, const char *name, const char *value),
			       void *context)
{
	char *value = strchr(member, '='), *name;
	const char *wrong;

	if (!value)
		return "has no '='";
	*value++ = '\0';
	name = trimmed(member);
	value = trimmed(value);
	wrong = decode(name);
	wrong = wrong ? wrong : decode(value);
	if (wrong)
		return wrong;
	return *name ? take(context, name, value) : "has no name";
}

const char *baggage_read(const char *text,
			 const char *(*take)(void *context, const char *name, const char *value),
			 void *context, char *member, size_t size)
{
	char *copy = xstrdup(text), *rest = copy, *next;
	const char *wrong = NULL;

	while (!wrong && (next = strsep(&rest, ","))) {
		snprintf(member, size, "%s", next);
		wrong = read_member(next, take, context);
	}
	free(copy);
	return wrong;
}
