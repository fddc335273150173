// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap explain EVENT…: what the kernel would be asked for, field by field, and why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "plan/plan.h"
#include "record/record.h"
#include "run/start.h"

static void print_event(const struct event *event)
{
	json_t *record = json_pack("{s:s, s:s}", "type", "event", "schema_version", SCHEMA_VERSION);
	json_t *value = event_value(event), *reasons = json_object();
	char *line;

	for (size_t i = 0; i < event->nr_reasons; i++)
		json_object_set_new(reasons, event->reasons[i].field,
				    value_text(event->reasons[i].why, sizeof(event->reasons[i].why)));
	json_object_set_new(value, "why", reasons);
	json_object_set_new(record, "event", value);
	line = json_dumps(record, JSON_COMPACT);
	puts(line);
	free(line);
	json_decref(record);
}

int command_explain(const struct options *options, struct refusal *refusal)
{
	struct options planned = *options;
	struct plan plan = {0};
	struct host host = {0};
	int err = host_gather(&host, options->host_root);

	if (options->nr_rest)
		planned.events = options->rest[0];
	if (err) {
		refuse(refusal, STATUS_REFUSED, "reading what this machine has");
		refusal->error = -err;
		err = because(refusal, "/sys or /proc can't be read: %s", strerror(-err));
	} else {
		err = plan_explain(&plan, &planned, &host, refusal);
	}
	for (size_t i = 0; !err && i < plan.events.nr; i++)
		print_event(&plan.events.list[i]);
	plan_release(&plan);
	host_release(&host);
	return err ? (int)refusal->status : STATUS_DONE;
}
