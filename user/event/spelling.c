// SPDX-License-Identifier: GPL-2.0-only
#include "event/spelling.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* libpfm4's modifiers (pfmlib_intel_x86_priv.h, pfmlib_perf_event_priv.h) and what they correspond to
 * here. */
static const struct modifier {
	const char *name;
	const char *term; /* a term of the PMU or of perf; NULL: one of perf's letters */
	char letter;
	bool needs_value;
	__u64 most;
} modifiers[] = {
	{"e", "edge", .most = 1},
	{"i", "inv", .most = 1},
	{"c", "cmask", .needs_value = true, .most = 255},
	{"t", "any", .most = 1},
	{"ldlat", "ldlat", .needs_value = true, .most = 65535},
	{"period", "period", .needs_value = true, .most = ~0ULL >> 1},
	{"freq", "freq", .needs_value = true, .most = ~0ULL >> 1},
	{"u", NULL, 'u', .most = 1},
	{"k", NULL, 'k', .most = 1},
	{"h", NULL, 'h', .most = 1},
	{"precise", NULL, 'p', .needs_value = true, .most = 3},
	{"pinned", NULL, 'D', .most = 1},
	{"mg", NULL, 'G', .most = 1},
	{"mh", NULL, 'H', .most = 1},
};

/* State of the parser. */
struct spelling_reader {
	struct spelling *spelling;
	const char *text; /* text of the whole event */
	size_t length;
	size_t *at;
	struct refusal *refusal;
	spelling_umask_fn is_umask; /* NULL: the text has no name */
	const void *context;
	bool given[ARRAY_SIZE(modifiers)];
};

__attribute__((format(printf, 4, 5))) static int refuse_part(struct spelling_reader *reader, size_t at,
							     size_t length, const char *why, ...)
{
	char words[300];
	va_list args;

	*reader->at = at;
	va_start(args, why);
	vsnprintf(words, sizeof(words), why, args);
	va_end(args);
	refuse(reader->refusal, STATUS_USAGE, "modifier '%.*s'", (int)(length < 60 ? length : 60),
	       reader->text + at);
	because(reader->refusal, "%s", words);
	return instead(reader->refusal, "modifiers are " MODIFIERS_KNOWN);
}

static void note_place(struct spelling *spelling, size_t at)
{
	if (!spelling->modified)
		spelling->modifiers_at = at;
	spelling->modified = true;
}

static char *mode_of(struct spelling *spelling, char letter)
{
	return &spelling->modes[strchr(PERF_MODIFIERS, letter) - PERF_MODIFIERS];
}

int spelling_mode(const struct spelling *spelling, char letter)
{
	return *mode_of((struct spelling *)spelling, letter);
}

/* --- perf's letters --------------------------------------------------------------------------- */

static int read_letters(struct spelling_reader *reader, size_t at, size_t length)
{
	for (size_t i = at; i < at + length; i++) {
		char letter = reader->text[i], *mode = mode_of(reader->spelling, letter);

		if (*mode && letter != 'p')
			return refuse_part(reader, i, 1, "it stands twice");
		if (++*mode > 3)
			return refuse_part(reader, i, 1,
					   "precise_ip has levels 0 to 3, and more are asked for");
	}
	return 0;
}

/* --- libpfm4's -------------------------------------------------------------------------------- */

static const struct modifier *modifier_named(const char *text, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(modifiers); i++)
		if (strlen(modifiers[i].name) == length && !strncasecmp(modifiers[i].name, text, length))
			return &modifiers[i];
	return NULL;
}

/* Parses a text that must be a number as a whole. */
static bool read_number(const char *text, size_t length, __u64 *value)
{
	char copy[32], *end;

	if (!length || length >= sizeof(copy) || !isdigit((unsigned char)text[0]))
		return false;
	snprintf(copy, sizeof(copy), "%.*s", (int)length, text);
	errno = 0;
	*value = strtoull(copy, &end, 0);
	return !*end && !errno;
}

static int keep_modifier(struct spelling_reader *reader, const struct modifier *modifier, __u64 value,
			 size_t at, size_t length)
{
	struct spelling *spelling = reader->spelling;

	if (reader->given[modifier - modifiers])
		return refuse_part(reader, at, length, "it stands twice");
	reader->given[modifier - modifiers] = true;
	if (modifier->term) {
		spelling->terms[spelling->nr_terms++] = (struct term){modifier->term, value, at, length == 1};
		return 0;
	}
	if (*mode_of(spelling, modifier->letter))
		return refuse_part(reader, at, length, "it stands twice");
	*mode_of(spelling, modifier->letter) = value ? (char)value : -1;
	return 0;
}

static int read_modifier(struct spelling_reader *reader, const struct modifier *modifier, size_t at,
			 size_t length)
{
	size_t name = strlen(modifier->name);
	__u64 value = 1;

	if (length == name && modifier->needs_value)
		return refuse_part(reader, at, length, "it needs a value: %s=N, N up to %llu", modifier->name,
				   modifier->most);
	if (length > name &&
	    (!read_number(reader->text + at + name + 1, length - name - 1, &value) || value > modifier->most))
		return refuse_part(reader, at + name + 1, length - name - 1,
				   "%s takes a number from 0 to %llu", modifier->name, modifier->most);
	return keep_modifier(reader, modifier, value, at, length);
}

static int read_umask(struct spelling_reader *reader, size_t at, size_t length)
{
	struct spelling *spelling = reader->spelling;

	if (spelling->has_umask)
		return refuse_part(reader, at, length, "a raw umask stands twice");
	if (!read_number(reader->text + at, length, &spelling->umask))
		return refuse_part(reader, at, length, "it is no number of up to 64 bits");
	spelling->has_umask = true;
	spelling->umask_at = at;
	return 0;
}

/* --- all -------------------------------------------------------------------------------------- */

static int add_to_name(struct spelling_reader *reader, size_t at, size_t length)
{
	struct spelling *spelling = reader->spelling;
	size_t used = strlen(spelling->name);

	if (used + length >= sizeof(spelling->name))
		return refuse_part(reader, at, length, "the name is too long");
	for (size_t i = 0; i < length; i++) {
		spelling->name[used + i] = reader->text[at + i];
		spelling->place[used + i] = at + i;
	}
	spelling->place[used + length] = at + length;
	return 0;
}

/* Whether the piece is a umask that looks like a modifier. libpfm4, whose names have no dot, takes it for the
 * umask wherever it stands. */
static bool is_short_umask(struct spelling_reader *reader, size_t at, size_t length)
{
	char event[NAME_SIZE], piece[4];

	if (!reader->is_umask || !length || length >= sizeof(piece) || strchr(reader->spelling->name, '.'))
		return false;
	snprintf(event, sizeof(event), "%.*s", (int)strcspn(reader->spelling->name, ":"),
		 reader->spelling->name);
	snprintf(piece, sizeof(piece), "%.*s", (int)length, reader->text + at);
	return reader->is_umask(reader->context, event, piece);
}

/* Whether the spelling names states, before or behind the letter, or has a threshold, which makes E libpfm4's
 * edge. */
static bool tells_states(const struct spelling_reader *reader, char letter)
{
	char text[2 * NAME_SIZE];

	snprintf(text, sizeof(text), "%.*s", (int)reader->length, reader->text);
	return strcasestr(text, "_STATE") || strcasestr(text, "MESI") ||
	       (letter == 'E' && strcasestr(text, ":c="));
}

/* Whether the piece is one of the letters M, E, S and I, and the event has a umask for the state of this
 * letter, but no state is named. Taken for a modifier, it would leave the event counting all states. Behind a
 * name of perf's own tables, which has a dot, S and I are perf's. */
static bool is_state(const struct spelling_reader *reader, const char *piece, size_t length)
{
	char event[NAME_SIZE], umask[] = "?_STATE";

	if (!reader->is_umask || length != 1 || tells_states(reader, *piece) ||
	    !strchr(strchr(reader->spelling->name, '.') ? "ME" : "MESI", *piece))
		return false;
	snprintf(event, sizeof(event), "%.*s", (int)strcspn(reader->spelling->name, ":."),
		 reader->spelling->name);
	umask[0] = *piece;
	return reader->is_umask(reader->context, event, umask);
}

static int refuse_state(struct spelling_reader *reader, size_t at)
{
	const char letter = reader->text[at];

	*reader->at = at;
	refuse(reader->refusal, STATUS_USAGE, "modifier '%c'", letter);
	because(reader->refusal, "this event has the umask %c_STATE, which may be meant", letter);
	return instead(reader->refusal, "write %c_STATE for the state of a line, or leave it out", letter);
}

static int read_piece(struct spelling_reader *reader, size_t at, size_t length, bool first)
{
	const char *piece = reader->text + at;
	size_t word = 0;
	const struct modifier *modifier;

	while (word < length && piece[word] != '=')
		word++;
	modifier = first ? NULL : modifier_named(piece, word);
	if (!first && !length)
		return refuse_part(reader, at, 0, "there is nothing behind the ':'");
	if (!first && is_short_umask(reader, at, length))
		return add_to_name(reader, at - 1, length + 1);
	if (!first && is_state(reader, piece, length))
		return refuse_state(reader, at);
	/* `e` of its own behind a name is libpfm4's. */
	if (!first && strspn(piece, PERF_MODIFIERS) >= length &&
	    !(reader->is_umask && length == 1 && *piece == 'e')) {
		note_place(reader->spelling, at);
		return read_letters(reader, at, length);
	}
	if (modifier) {
		note_place(reader->spelling, at);
		return read_modifier(reader, modifier, at, length);
	}
	if (!first && piece[0] == '0' && (piece[1] == 'x' || piece[1] == 'X'))
		return read_umask(reader, at, length);
	if (word < length)
		return refuse_part(reader, at, length, "there is no modifier of this name");
	/* It includes the ':' before it; after a '/' there is none. */
	return first || !at ? add_to_name(reader, at, length) : add_to_name(reader, at - 1, length + 1);
}

void spelling_take_perfs_e(struct spelling *spelling)
{
	for (size_t i = 0; i < spelling->nr_terms; i++) {
		if (!spelling->terms[i].bare || strcmp(spelling->terms[i].name, "edge"))
			continue;
		spelling->terms[i] = spelling->terms[--spelling->nr_terms];
		*mode_of(spelling, 'e') = 1;
		return;
	}
}

int spelling_read(struct spelling *spelling, const char *text, size_t length, spelling_umask_fn is_umask,
		  const void *context, size_t *at, struct refusal *refusal)
{
	struct spelling_reader reader = {.spelling = spelling,
					 .text = text,
					 .length = length,
					 .at = at,
					 .refusal = refusal,
					 .is_umask = is_umask,
					 .context = context};
	bool first = is_umask;

	*spelling = (struct spelling){0};
	for (size_t begin = 0; begin <= length; first = false) {
		size_t end = begin;

		while (end < length && text[end] != ':')
			end++;
		if (read_piece(&reader, begin, end - begin, first))
			return -1;
		begin = end + 1;
	}
	return 0;
}
