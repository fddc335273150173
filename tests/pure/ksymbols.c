/* SPDX-License-Identifier: GPL-2.0-only */
/* Takes notes of code that the kernel makes, and says whose an address was: `ksymbols WORD…`, where a word is
 * new=NAME,BEGIN,TIME or gone=NAME,BEGIN,TIME (256 bytes each), or find=ADDRESS,SINCE, which prints a name,
 * with "?" if other code was there as well, or "-". */
#include <stdio.h>
#include <string.h>

#include "naming/ksymbols.h"

static void take(struct ksymbols *ksymbols, const char *word)
{
	struct sideband_note note = {
		.kind = SIDEBAND_KSYMBOL, .size = 256, .gone = word[0] == 'g', .bpf = true};
	char name[16];

	if (sscanf(strchr(word, '=') + 1, "%15[^,],%llu,%llu", name, &note.begin, &note.time) != 3)
		return;
	note.symbol = name;
	ksymbols_take(ksymbols, &note);
}

int main(int argc, char **argv)
{
	struct ksymbols ksymbols = {0};
	const struct ksymbol *found;
	__u64 address, since;
	bool ambiguous;

	for (int i = 1; i < argc; i++)
		if (sscanf(argv[i], "find=%llu,%llu", &address, &since) == 2) {
			found = ksymbols_find(&ksymbols, address, since, &ambiguous);
			printf("%s%s\n", found ? found->name : "-", ambiguous ? "?" : "");
		} else {
			take(&ksymbols, argv[i]);
		}
	ksymbols_release(&ksymbols);
	return 0;
}
