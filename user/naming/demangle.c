// SPDX-License-Identifier: GPL-2.0-only
#include "naming/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <libiberty/demangle.h>

struct demangling {
	char *text;
	size_t size, used;
	jmp_buf enough;
};

/*
 * Appends a piece. A mangled name of a hundred letters can expand to gigabytes, so demangling is aborted once
 * the buffer is full. This leaks nothing of the C++ demangler, which holds no heap memory during this call,
 * and at most the memory of one identifier of Rust's.
 */
static void write_piece(const char *piece, size_t length, void *opaque)
{
	struct demangling *writing = opaque;
	size_t left = writing->size - 1 - writing->used;

	memcpy(writing->text + writing->used, piece, length < left ? length : left);
	writing->used += length < left ? length : left;
	if (length > left)
		longjmp(writing->enough, 1);
}

/* Replaces the end of the text by "…", at a character boundary. */
static size_t cut_end(char *text, size_t size)
{
	size_t length = size - 1 - strlen("…");

	while (length && (text[length] & 0xc0) == 0x80)
		length--;
	strcpy(text + length, "…");
	return length + strlen("…");
}

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."

size_t unversioned(const char *symbol)
{
	size_t length = strspn(symbol, WORD "$");
	const char *version = symbol + length + strspn(symbol + length, "@");
	size_t signs = version - symbol - length;

	if (!length || !signs || signs > 2 || !strcmp(version, "plt") || !*version ||
	    version[strspn(version, WORD "+-")])
		return strlen(symbol);
	return length;
}

static size_t plain(const char *symbol, char *text, size_t size)
{
	size_t length = strnlen(symbol, size);

	memcpy(text, symbol, length < size ? length : size - 1);
	if (length == size)
		return cut_end(text, size);
	text[length] = '\0';
	return length;
}

/* Writes a character, if it is one, as UTF-8. Returns its bytes. */
static size_t put_character(char *to, unsigned long character)
{
	if (character < 0x20 || (character >= 0x7f && character < 0xa0) || character > 0x10ffff ||
	    (character >= 0xd800 && character < 0xe000))
		return 0;
	if (character < 0x80) {
		to[0] = character;
		return 1;
	}
	if (character < 0x800) {
		to[0] = 0xc0 | character >> 6;
		to[1] = 0x80 | (character & 0x3f);
		return 2;
	}
	if (character < 0x10000) {
		to[0] = 0xe0 | character >> 12;
		to[1] = 0x80 | (character >> 6 & 0x3f);
		to[2] = 0x80 | (character & 0x3f);
		return 3;
	}
	to[0] = 0xf0 | character >> 18;
	to[1] = 0x80 | (character >> 12 & 0x3f);
	to[2] = 0x80 | (character >> 6 & 0x3f);
	to[3] = 0x80 | (character & 0x3f);
	return 4;
}

/* Writes what stands for "$…$" or ".." at `from`, which is no shorter. Returns its bytes, and sets how many
 * it stands for; 0: nothing does. */
static size_t put_escaped(char *to, const char *from, size_t *length)
{
	static const struct {
		const char *escape;
		char is[3];
	} escapes[] = {{"..", "::"},  {"$SP$", "@"}, {"$BP$", "*"}, {"$RF$", "&"}, {"$LT$", "<"},
		       {"$GT$", ">"}, {"$LP$", "("}, {"$RP$", ")"}, {"$C$", ","}};
	size_t digits;

	for (size_t i = 0; i < ARRAY_SIZE(escapes); i++) {
		*length = strlen(escapes[i].escape);
		if (!strncmp(from, escapes[i].escape, *length))
			return strlen(memcpy(to, escapes[i].is, strlen(escapes[i].is) + 1));
	}
	if (from[0] != '$' || from[1] != 'u')
		return 0;
	digits = strspn(from + 2, "0123456789abcdef");
	*length = 2 + digits + 1;
	if (!digits || digits > 6 || from[2 + digits] != '$')
		return 0;
	return put_character(to, strtoul(from + 2, NULL, 16));
}

/* libiberty leaves an identifier of Rust's older mangling as it is from the first character on that is not in
 * ASCII. Each is shorter than what stands for it. Returns the length. */
static size_t decode_escapes(char *text)
{
	char *from = strstr(text, "$u") ? text : text + strlen(text), *to = from, piece[4];
	size_t length, put;

	while (*from) {
		put = put_escaped(piece, from, &length);
		memcpy(to, put ? piece : from, put ? put : 1);
		to += put ? put : 1;
		from += put ? length : 1;
	}
	*to = '\0';
	return to - text;
}

size_t demangle(const char *symbol, char *text, size_t size)
{
	static const int style = DMGL_PARAMS | DMGL_ANSI;
	struct demangling writing = {.text = text, .size = size};
	bool mangled =
		!strncmp(symbol, "_Z", 2) || !strncmp(symbol, "_R", 2) || !strncmp(symbol, "_GLOBAL_", 8);

	if (!mangled)
		return plain(symbol, text, size);
	if (setjmp(writing.enough))
		return cut_end(writing.text, writing.size);
	/* Rust's older manglings are also valid C++ names, with a hash at the end, so Rust comes first. */
	if (rust_demangle_callback(symbol, style, write_piece, &writing)) {
		text[writing.used] = '\0';
		return symbol[1] == 'Z' ? decode_escapes(text) : writing.used;
	}
	writing.used = 0;
	if (!cplus_demangle_v3_callback(symbol, style, write_piece, &writing))
		return plain(symbol, text, size);
	text[writing.used] = '\0';
	return writing.used;
}
