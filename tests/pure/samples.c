/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads what was read of an event, one reading per line: "MEMBER=VALUE …", members of struct samples_read;
 * what a line does not name stays as it was. Prints the account of each as a line of JSON: the account, what
 * is new in it, its cause, and what the counter lacks.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/samples.h"

#define NUMBER(member)                                                                                       \
	{                                                                                                    \
#member, offsetof(struct samples_read, member), sizeof(__u64)                                \
	}
#define FLAG(member)                                                                                         \
	{                                                                                                    \
#member, offsetof(struct samples_read, member), sizeof(bool)                                 \
	}

static const struct member {
	const char *name;
	size_t offset, size;
} members[] = {
	NUMBER(count),		NUMBER(sample_period), NUMBER(beyond),	     NUMBER(count_before),
	NUMBER(samples_before), NUMBER(runs),	       NUMBER(period),	     NUMBER(aggregated),
	NUMBER(filtered),	NUMBER(table_full),    NUMBER(stack_failed), NUMBER(contexts),
	NUMBER(throttled),	FLAG(stops),	       FLAG(at_least),	     FLAG(precise),
	FLAG(collides),		FLAG(clock),	       FLAG(one_side),	     FLAG(by_count),
};

static void set(struct samples_read *read, const char *name, __u64 value)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
		char *at = (char *)read + members[i].offset;

		if (strcmp(members[i].name, name))
			continue;
		if (members[i].size == sizeof(bool))
			*(bool *)at = value;
		else
			*(__u64 *)at = value;
		return;
	}
	exit(1);
}

int main(void)
{
	struct samples_read read = {0};
	struct samples before = {0};
	char line[1000];

	while (fgets(line, sizeof(line), stdin)) {
		struct samples now, since;
		json_t *shown;

		for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
			char *equals = strchr(word, '=');

			*equals = '\0';
			set(&read, word, strtoull(equals + 1, NULL, 10));
		}
		now = samples_account(&read, &before);
		since = samples_since(&now, &before);
		shown = json_pack(
			"{s:o, s:o, s:s, s:I, s:b}", "all", samples_value(&now, missed_cause(&read)), "new",
			samples_value(&since, missed_cause(&read)), "cause", missed_cause(&read), "uncounted",
			(json_int_t)samples_uncounted(&read, &now), "paused", samples_paused(&now));
		json_dumpf(shown, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(shown);
		before = now;
	}
	return 0;
}
