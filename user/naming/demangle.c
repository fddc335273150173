// SPDX-License-Identifier: GPL-2.0-only
#include "naming/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
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
	if (!rust_demangle_callback(symbol, style, write_piece, &writing)) {
		writing.used = 0;
		if (!cplus_demangle_v3_callback(symbol, style, write_piece, &writing))
			return plain(symbol, text, size);
	}
	text[writing.used] = '\0';
	return writing.used;
}
