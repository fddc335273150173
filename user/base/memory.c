// SPDX-License-Identifier: GPL-2.0-only
#include "base/memory.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

/* Per process, not per session: memory can run out before there is a session. */
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
	static const char words[] = "nhmtap: there is no more memory. Next: raise the limit (ulimit -v, "
				    "memory.max of the cgroup), or ask for fewer keys or files.\n";

	/* Only the main thread writes records. */
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

void *xroom(void *list, size_t nr, size_t *room, size_t size)
{
	if (nr < *room)
		return list;
	*room = *room ? 2 * *room : 8;
	return xrealloc(list, *room * size);
}

void *xfit(void *list, size_t wanted, size_t *room, size_t size)
{
	if (wanted <= *room)
		return list;
	*room = 2 * wanted;
	return xrealloc(list, *room * size);
}

/* malloc(3) maps larger blocks each on its own, see main.c. Only these can be cut. */
#define TRIM_LEAST (128UL << 10)

void *xtrim(void *list, size_t nr, size_t *room, size_t size)
{
	if ((*room - nr) * size < TRIM_LEAST)
		return list;
	*room = nr;
	return xrealloc(list, nr * size);
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

/* --- what libraries allocate ------------------------------------------------------------------ */

/*
 * Libraries do not always check their allocations: libdw writes to NULL. So allocations of libraries and of
 * libc come through here as well (The GNU C Library manual, "Replacing malloc"; the other functions listed
 * there remain libc's, because the heap does). Very large requests still fail with NULL, because a broken
 * file may contain any size.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__
#endif
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define EARNEST_MOST (64UL << 20)

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t nr, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

static struct {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t nr, size_t size);
	void *(*realloc)(void *memory, size_t size);
} next = {__libc_malloc, __libc_calloc, __libc_realloc};

/* A preloaded allocator, for example a heap profiler, still gets the calls. */
static __attribute__((constructor)) void find_next(void)
{
	void *found[] = {dlsym(RTLD_NEXT, "malloc"), dlsym(RTLD_NEXT, "calloc"), dlsym(RTLD_NEXT, "realloc")};

	if (!found[0] || !found[1] || !found[2])
		return;
	memcpy(&next.malloc, &found[0], sizeof(found[0]));
	memcpy(&next.calloc, &found[1], sizeof(found[1]));
	memcpy(&next.realloc, &found[2], sizeof(found[2]));
}

static void *in_earnest(void *memory, size_t size)
{
	if (!memory && size && size <= EARNEST_MOST)
		memory_is_out();
	return memory;
}

void *malloc(size_t size)
{
	return in_earnest(next.malloc(size), size);
}

void *calloc(size_t nr, size_t size)
{
	size_t whole;

	if (__builtin_mul_overflow(nr, size, &whole))
		return NULL;
	return in_earnest(next.calloc(nr, size), whole);
}

void *realloc(void *memory, size_t size)
{
	return in_earnest(next.realloc(memory, size), size);
}

#else

/* Sanitizers exit with a status that nhmtap itself never has (nhmtap(1) lists its own), unless ASAN_OPTIONS
 * changes it: their default is 1, which nhmtap also returns for a refused option. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
	/* gcc 12's runtime guesses where the thread-local data of libraries lie that are loaded late. A wrong
	 * guess, of data 16 bytes into a page, ends the search for leaks with signal 11. */
	return "exitcode=99:intercept_tls_get_addr=0";
}

const char *__tsan_default_options(void)
{
	return "exitcode=99";
}

#endif
