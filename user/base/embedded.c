// SPDX-License-Identifier: GPL-2.0-only
#include "base/embedded.h"

#include <string.h>

/* embedded.inc is a list of EMBED("name", "path"), made by the Makefile. The contents of the files follow
 * each other in .rodata, between symbols that are named by line numbers. */
#define JOIN(a, b)  JOIN_(a, b)
#define JOIN_(a, b) a##b
#define TEXT(a)	    TEXT_(a)
#define TEXT_(a)    #a

#define EMBED(name, path)                                                                                    \
	__asm__(".pushsection .rodata\n"                                                                     \
		".balign 16\n"                                                                               \
		"embedded_" TEXT(__LINE__) "_start: .incbin \"" path "\"\n"                                  \
					   "embedded_" TEXT(__LINE__) "_end: .byte 0\n"                      \
								      ".popsection\n");                      \
	extern const char JOIN(JOIN(embedded_, __LINE__), _start)[];                                         \
	extern const char JOIN(JOIN(embedded_, __LINE__), _end)[];
#include "base/array.h"
#include "embedded.inc"
#undef EMBED

static const struct {
	const char *name;
	const char *start, *end;
} places[] = {
#define EMBED(name, path)                                                                                    \
	{name, JOIN(JOIN(embedded_, __LINE__), _start), JOIN(JOIN(embedded_, __LINE__), _end)},
#include "embedded.inc"
};
#define COUNT ARRAY_SIZE(places)

struct embedded embedded_at(size_t i)
{
	if (i >= COUNT)
		return (struct embedded){0};
	return (struct embedded){places[i].name, places[i].start, places[i].end - places[i].start};
}

struct embedded embedded_find(const char *name)
{
	for (size_t i = 0; i < COUNT; i++)
		if (!strcmp(places[i].name, name))
			return embedded_at(i);
	return (struct embedded){0};
}
