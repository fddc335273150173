/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps libbpf's warnings for the caller of libbpf, instead of writing them to stderr. */
#pragma once

struct libbpf_words {
	char last[512]; /* the last warning's first line; "" if there was none */
	struct libbpf_words *outer;
};

/* Between these two calls, libbpf's warnings go to `words`. Pairs of calls may be nested. libbpf has one
 * callback for the process, without a context; the first call replaces it for good. */
void libbpf_words_begin(struct libbpf_words *words);
void libbpf_words_end(struct libbpf_words *words);
