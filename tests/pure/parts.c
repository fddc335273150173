// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads steps, one per line, and does them to a list of documents of 100 bytes with 3 records each: "add MOST
 * KEPT", "split" the first, "take" the first. Prints how many records wait and how many were dropped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/documents.h"

static struct half half_of(const struct document *document)
{
	return (struct half){calloc(1, document->size / 2), document->size / 2};
}

static void split(struct documents *documents)
{
	const struct half halves[] = {half_of(documents->first), half_of(documents->first)};

	documents_split(documents, halves);
}

int main(void)
{
	char bytes[100] = "", line[80];
	const struct document document = {.bytes = bytes, .size = sizeof(bytes), .records = 3};
	struct documents documents;
	unsigned long long waiting = 0;
	unsigned int kept;
	size_t most;

	documents_begin(&documents, "place");
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "add %zu %u", &most, &kept) == 2)
			documents_add(&documents, &document, most, kept);
		else if (!strcmp(line, "split\n"))
			split(&documents);
		else
			documents_taken(&documents);
	}
	for (const struct document *each = documents.first; each; each = each->next)
		waiting += each->records;
	printf("%llu %llu\n", waiting, documents.dropped);
	documents_release(&documents);
	return 0;
}
