/* SPDX-License-Identifier: GPL-2.0-only */
/* What libbpf says while it does something: kept for whoever asked it, instead of written to stderr. */
#ifndef NHMTAP_LIBBPF_WORDS_H
#define NHMTAP_LIBBPF_WORDS_H

struct libbpf_words {
	char last[512]; /* the last warning's first line; "" if there was none */
	struct libbpf_words *outer;
};

/* Between the two, libbpf's warnings go to `words`. They may be nested. libbpf has one callback for the
 * process, without a context; it is ours from the first of these calls on. */
void libbpf_words_begin(struct libbpf_words *words);
void libbpf_words_end(struct libbpf_words *words);

#endif
