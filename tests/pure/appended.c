// SPDX-License-Identifier: GPL-2.0-only
/* Reads a size and words, one per line. Prints the list of them that list_append() makes in a buffer of this
 * size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"

int main(void)
{
	char line[256], *buffer;
	size_t size;

	if (!fgets(line, sizeof(line), stdin))
		return 1;
	size = strtoul(line, NULL, 10);
	buffer = calloc(1, size); /* of exactly this size: ASan notices a byte beyond it */
	if (!buffer)
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		list_append(buffer, size, line);
	}
	puts(buffer);
	free(buffer);
	return 0;
}
