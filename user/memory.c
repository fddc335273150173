// SPDX-License-Identifier: GPL-2.0-only
#include "memory.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "status.h"

/* Of the program, not of a session: it can run out of memory before there is one. */
static struct {
	void (*say)(void *context);
	void *context;
	bool saying;
} last;

void memory_last_words(void (*say)(void *context), void *context)
{
	last.say = say;
	last.context = context;
}

void memory_is_out(void)
{
	static const char words[] = "nhmtap: there is no more memory. Next: raise the limit (ulimit -v, memory.max "
				    "of the cgroup), or ask for fewer keys or files.\n";

	/* Only that thread writes records. */
	if (last.say && !last.saying && gettid() == getpid()) {
		last.saying = true;
		last.say(last.context);
	}
	if (write(STDERR_FILENO, words, sizeof(words) - 1) < 0)
		_exit(STATUS_REFUSED);
	_exit(STATUS_REFUSED);
}

void *had(void *made)
{
	if (!made)
		memory_is_out();
	return made;
}

void *xmalloc(size_t size)
{
	return had(malloc(size ? size : 1));
}

void *xcalloc(size_t nr, size_t size)
{
	return had(calloc(nr ? nr : 1, size ? size : 1));
}

void *xrealloc(void *memory, size_t size)
{
	return had(realloc(memory, size ? size : 1));
}

char *xstrdup(const char *text)
{
	return had(strdup(text));
}

char *xasprintf(const char *format, ...)
{
	char *text;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		memory_is_out();
	va_end(args);
	return text;
}

FILE *xopen_memstream(char **text, size_t *size)
{
	return had(open_memstream(text, size));
}

void xclose_memstream(FILE *stream)
{
	if (fclose(stream))
		memory_is_out();
}
