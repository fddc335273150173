// SPDX-License-Identifier: GPL-2.0-only
/* Reads lines of a width, a blank and a text, and prints each text as text_add_shortened() does; behind a
 * negative width, as text_fit() does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/text.h"

int main(void)
{
	char *line = NULL, *words;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		long width = strtol(line, &words, 10);
		struct text text = {0};

		words[strcspn(words, "\n")] = 0;
		if (width < 0) {
			text_add(&text, "%s", words + 1);
			text_fit(&text, -width);
		} else {
			text_add_shortened(&text, words + 1, width);
		}
		printf("%s\n", text.bytes);
		free(text.bytes);
	}
	free(line);
	return 0;
}
