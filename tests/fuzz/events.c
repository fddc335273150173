// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the grammar of events and the plan made from it, on a host whose files are in the folder
 * NHMTAP_FUZZ_HOST. The second line is a filter of branches. Whatever the text: no crash, no leak,
 * and either a refusal with a reason or a list of events, each with a reason for its type and its
 * config.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "option/options.h"
#include "plan/plan.h"

#define UNIT "l3bus/" /* on a CPU with counters that have no driver */

static struct host host, host_of_unit;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *root = getenv("NHMTAP_FUZZ_HOST");
	struct refusal refusal = {0};

	if (!root || host_gather(&host, root) || !host.events || host_gather(&host_of_unit, root) ||
	    host_pretend_cpu(&host_of_unit, "xeon-7400", &refusal)) {
		fprintf(stderr, "NHMTAP_FUZZ_HOST must name the files of a known CPU\n");
		exit(1);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *rest = strndup((const char *)data, size), *text = strsep(&rest, "\n");
	struct options options = {
		.events = text, .filter = rest, .host_root = "", .force = size && data[0] & 1, .msr = true};
	struct refusal refusal = {0};
	struct plan plan = {0};

	if (plan_explain(&plan, &options, strstr(text, UNIT) ? &host_of_unit : &host, &refusal)) {
		if (!refusal.asked[0] || !refusal.why[0] || !refusal.status)
			abort();
	} else {
		for (size_t i = 0; i < plan.events.nr; i++)
			if (!event_reason_of(&plan.events.list[i], "config") ||
			    !event_reason_of(&plan.events.list[i], "type"))
				abort();
	}
	plan_release(&plan);
	free(text);
	return 0;
}
