// SPDX-License-Identifier: GPL-2.0-only
#include "command/host.h"

#include <string.h>

#include "base/guarded.h"

int command_host(struct host *host, const struct options *options, struct refusal *refusal)
{
	int err = host_gather(host, options->host_root);

	if (err) {
		refuse(refusal, STATUS_REFUSED, "reading what this machine has");
		refusal->error = -err;
		return because(refusal, "/sys or /proc can't be read: %s", guarded_why(-err));
	}
	if (host_add_tables(host, options->events_dir, refusal))
		return -1;
	if (options->cpu && host_pretend_cpu(host, options->cpu, refusal))
		return -1;
	return host_add_pmu_events(host, options->pmu_events, refusal);
}
