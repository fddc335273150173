// SPDX-License-Identifier: GPL-2.0-only
/* Reads JSON values, one per line, and prints each as compact_add_value() does, then as jansson. */
#include <stdio.h>
#include <stdlib.h>

#include "record/compact.h"

int main(void)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		json_t *value = json_loads(line, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
		struct compact compact = {0};
		char *dumped;

		if (!value)
			return 1;
		dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
		compact_add_value(&compact, value);
		printf("%.*s\n%s\n", (int)compact.used, compact.text, dumped);
		free(compact.text);
		free(dumped);
		json_decref(value);
	}
	free(line);
	return 0;
}
