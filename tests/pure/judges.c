/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads a run of the selftest, one per line: {"judge", "events": [[name, least, most]…], "records", and what
 * the test has of `places`, `requests`}. Prints the verdict: right, or wrong and, if it can't be measured,
 * why. Places of the program are numbers here, in the text that would be their symbol.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collection/self.h"
#include "output/member.h"
#include "selftest/tests.h"

/* Of selftest/ and collection/: there is no program to look into, and no counter of our own. */
__u64 landmark_address(const struct landmarks *landmarks, const char *name)
{
	return strtoull(name, NULL, 16);
}

__u64 landmark_offset(const struct landmarks *landmarks, const char *name)
{
	return strtoull(name, NULL, 16);
}

struct self *self_begin(void)
{
	return NULL;
}

bool self_instructions(struct self *self, __u64 *instructions)
{
	return false;
}

void self_end(struct self *self)
{
}

static const struct judge {
	const char *name;
	bool (*judge)(struct test_run *run);
} judges[] = {
	{"counts", judge_counts},	{"masks", judge_masks},	  {"beginnings", judge_beginnings},
	{"stalls", judge_stalls},	{"period", judge_period}, {"places", judge_places},
	{"responses", judge_responses},
};

static void judge(json_t *asked)
{
	static struct test_places places = {.what = "there"};
	struct test test = {.places = &places, .requests = integer(asked, "requests")};
	struct test_run run = {.test = &test, .records = json_object_get(asked, "records")};
	const json_t *list = json_object_get(asked, "events"), *event;
	size_t i;

	run.elsewhere = json_is_true(json_object_get(asked, "elsewhere"));
	json_array_foreach(list, i, event) {
		snprintf(run.names[i], sizeof(run.names[i]), "%s",
			 json_string_value(json_array_get(event, 0)));
		test.counted[i] = (struct counted){run.names[i], json_integer_value(json_array_get(event, 1)),
						   json_integer_value(json_array_get(event, 2))};
	}
	places.at[0] = string(asked, "place");
	for (i = 0; i < sizeof(judges) / sizeof(*judges); i++)
		if (!strcmp(judges[i].name, string(asked, "judge")))
			printf("%s", judges[i].judge(&run) ? "right" : "wrong");
	printf("%s%s\n", run.why ? ": " : "", run.why ? run.why : "");
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		json_t *asked = json_loads(line, 0, NULL);

		judge(asked);
		json_decref(asked);
	}
	free(line);
	return 0;
}
