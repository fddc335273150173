// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/libbpf_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

/* Of the innermost pair of calls; NULL: there is none. */
static struct libbpf_words *current;

static int remember_words(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level != LIBBPF_WARN || !current)
		return 0;
	vsnprintf(current->last, sizeof(current->last), format, args);
	current->last[strcspn(current->last, "\n")] = '\0';
	return 0;
}

void libbpf_words_begin(struct libbpf_words *words)
{
	*words = (struct libbpf_words){.outer = current};
	current = words;
	libbpf_set_print(remember_words);
}

void libbpf_words_end(struct libbpf_words *words)
{
	current = words->outer;
}
