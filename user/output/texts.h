/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers for texts, and the texts of numbers. */
#pragma once

#include <jansson.h>
#include <linux/types.h>

struct numbered_texts {
	json_t *list;	 /* in the order of their numbers */
	json_t *numbers; /* {text: number} */
};

void numbered_texts_init(struct numbered_texts *texts);
void numbered_texts_release(struct numbered_texts *texts);

/* The number of a text, which may be cut within a UTF-8 character. */
__u32 text_number(struct numbered_texts *texts, const char *text);

/* Valid until numbered_texts_release(). */
const char *text_of_number(const struct numbered_texts *texts, __u32 number);
