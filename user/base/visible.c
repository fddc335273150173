// SPDX-License-Identifier: GPL-2.0-only
#include "base/visible.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/refusal.h"

/* Unicode 15, general categories Cc, Cf, Zl, Zp, in ascending order. */
static const struct range {
	unsigned int first, last;
} hidden[] = {
	{0x00, 0x1f},	    {0x7f, 0x9f},	{0xad, 0xad},	    {0x600, 0x605},	{0x61c, 0x61c},
	{0x6dd, 0x6dd},	    {0x70f, 0x70f},	{0x890, 0x891},	    {0x8e2, 0x8e2},	{0x180e, 0x180e},
	{0x200b, 0x200f},   {0x2028, 0x202e},	{0x2060, 0x206f},   {0xfeff, 0xfeff},	{0xfff9, 0xfffb},
	{0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
	{0xe0001, 0xe0001}, {0xe0020, 0xe007f},
};

static bool is_hidden(unsigned int character)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(hidden) && character > hidden[i].last)
		i++;
	return i < ARRAY_SIZE(hidden) && character >= hidden[i].first;
}

/* Number of bytes of the UTF-8 character at `at`; 0: it is invalid. RFC 3629. */
static size_t character_at(const char *at, unsigned int *character)
{
	static const unsigned int least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char first = *at;
	size_t length = first < 0x80	   ? 1
			: first >> 5 == 6  ? 2
			: first >> 4 == 14 ? 3
			: first >> 3 == 30 ? 4
					   : 0;

	*character = length == 1 ? first : first & (0x7f >> length);
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		*character = *character << 6 | (at[i] & 0x3f);
	}
	if (length && (*character < least[length] || *character > 0x10ffff || *character >> 11 == 0x1b))
		return 0;
	return length;
}

static size_t escape(char escaped[VISIBLE_MAX + 1], const char *at, unsigned int character, size_t length)
{
	if (!length)
		return sprintf(escaped, "\\x%02x", (unsigned char)*at);
	return sprintf(escaped, character < 0x10000 ? "\\u%04x" : "\\U%08x", character);
}

static size_t copy_visible(char *to, size_t size, const char *from, bool lines)
{
	char escaped[VISIBLE_MAX + 1];
	size_t used = 0;

	while (*from) {
		/* Most names are ASCII only. */
		if (*from >= ' ' && *from <= '~' && used + 1 < size) {
			to[used++] = *from++;
			continue;
		}
		unsigned int character;
		size_t length = character_at(from, &character), width = length;
		const char *text = from;

		if (!length || (is_hidden(character) && (character != '\n' || !lines))) {
			width = escape(escaped, from, character, length);
			text = escaped;
		}
		if (width >= size - used)
			break;
		memcpy(to + used, text, width);
		used += width;
		from += length ? length : 1;
	}
	to[used] = '\0';
	return used;
}

size_t visible(char *to, size_t size, const char *from)
{
	return copy_visible(to, size, from, false);
}

size_t visible_lines(char *to, size_t size, const char *from)
{
	return copy_visible(to, size, from, true);
}

static void (*room)(void);

void say_behind(void (*make_room)(void))
{
	room = make_room;
}

void say(const char *format, ...)
{
	char message[MESSAGE_MAX], shown[4 * MESSAGE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	visible(shown, sizeof(shown), message);
	if (room)
		room();
	fprintf(stderr, "%s\n", shown);
}

/* The full stop for a sentence, unless it ends with a question mark. */
static const char *full_stop(const char *sentence)
{
	return sentence[strlen(sentence) - 1] == '?' ? "" : ".";
}

void say_refusal(const struct refusal *refusal)
{
	const char *remedy = refusal->remedy;
	bool source = refusal->source[0];
	char before[sizeof(refusal->input)], shown[4 * sizeof(refusal->input)];

	if (!refusal->asked[0])
		return;
	say("nhmtap: %s: %s%s%s%s.%s%s%s", refusal->asked, refusal->why, source ? " (" : "", refusal->source,
	    source ? ")" : "", remedy[0] ? " Next: " : "", remedy, remedy[0] ? full_stop(remedy) : "");
	if (!refusal->column)
		return;
	snprintf(before, sizeof(before), "%.*s", refusal->column - 1, refusal->input);
	say("  %s", refusal->input);
	say("  %*s", (int)visible(shown, sizeof(shown), before) + 1, "^");
}
