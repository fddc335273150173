// SPDX-License-Identifier: GPL-2.0-only
/* Reads start records, and prints what someone who has seen such a command's tables may try next. */
#include <stdio.h>
#include <stdlib.h>

#include "output/hints.h"
#include "output/member.h"
#include "tables/known_event.h"

static const struct known_share shares[1];

/* As the tables have them: NetBurst's is one of events alone. */
const struct cpu_events known_cpus[] = {
	{.name = "nehalem-ep", .shares = shares, .nr_shares = 1},
	{.name = "netburst"},
};
const size_t nr_known_cpus = 2;

int main(void)
{
	json_t *start;

	while ((start = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, NULL))) {
		const json_t *record = json_object_get(start, "record");
		struct sharing sharing = {0};
		struct text text = {0};

		if (record)
			sharing_take(&sharing, record);
		hint_add(&text, string(start, "command"), start, &sharing);
		printf("%s", text.bytes ? text.bytes : "\n");
		free(text.bytes);
		json_decref(start);
	}
	return 0;
}
