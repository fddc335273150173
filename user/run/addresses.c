// SPDX-License-Identifier: GPL-2.0-only
#include "run/addresses.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "collection/sideband.h"
#include "record/code.h"

/* A CPU may take the time of a note a moment before it writes it; see the stream's. */
#define SETTLED_NS 1000000

struct addresses {
	const struct run *run;
	struct sideband *sideband;
	struct mappings *mappings;
	struct naming *naming; /* NULL: no more than places are asked for */
	struct background *background; /* what it is asked through */
	struct codes *codes;   /* of this interval; NULL: not asked for yet */
	struct code_account account;
	char kallsyms[300];
};

/* Another root, of a test, has its own. */
static struct naming *open_naming(struct addresses *addresses, unsigned int detail)
{
	struct naming *naming;
	const char *root = addresses->run->host.root;
	struct naming_settings settings = {.lines = detail & CODE_LINE};

	if (!(detail & (CODE_SYMBOL | CODE_LINE)))
		return NULL;
	snprintf(addresses->kallsyms, sizeof(addresses->kallsyms), "%s/proc/kallsyms", root);
	if (root[0])
		settings.kallsyms = addresses->kallsyms;
	naming = naming_open(&settings);
	/* What takes longest is to make no interval late. */
	if (addresses->run->options->interval_ms)
		naming_kernel(naming, ~0ULL);
	return naming;
}

int addresses_open(struct addresses **result, const struct run *run, unsigned int detail,
		struct refusal *refusal)
{
	const struct target *target = &run->plan.target;
	struct addresses *addresses = calloc(1, sizeof(*addresses));
	pid_t *pids = NULL;
	size_t nr;

	addresses->run = run;
	addresses->mappings = mappings_new();
	addresses->naming = open_naming(addresses, detail);
	addresses->background = addresses->naming ? background_open(addresses->naming) : NULL;
	*result = addresses;
	if (sideband_open(&addresses->sideband, target, run->child.pid, &run->host, refusal))
		return -1;
	/* A command executes its program when all this is done. */
	if (run->child.pid)
		mappings_expect(addresses->mappings, run->child.pid);
	if (target->cpus_given)
		mappings_look_at_all(addresses->mappings);
	nr = target->cpus_given ? 0 : sideband_processes(target, &pids);
	for (size_t i = 0; i < nr; i++)
		mappings_look(addresses->mappings, pids[i]);
	free(pids);
	return 0;
}

void addresses_close(struct addresses *addresses)
{
	if (!addresses)
		return;
	sideband_close(addresses->sideband);
	codes_release(addresses->codes);
	background_close(addresses->background);
	naming_close(addresses->naming);
	mappings_release(addresses->mappings);
	free(addresses);
}

int addresses_fd(const struct addresses *addresses)
{
	return sideband_fd(addresses->sideband);
}

void addresses_take(struct addresses *addresses, bool all)
{
	__u64 before = all ? ~0ULL : clock_ns(CLOCK_MONOTONIC) - SETTLED_NS;
	struct sideband_note note;

	sideband_woken(addresses->sideband);
	while (sideband_next(addresses->sideband, before, &note))
		mappings_take(addresses->mappings, &note);
}

void addresses_begin(struct addresses *addresses, const struct timespec *since)
{
	codes_release(addresses->codes);
	addresses->codes = NULL;
	mappings_begin(addresses->mappings, timespec_ns(since));
}

struct mappings *addresses_mappings(struct addresses *addresses)
{
	return addresses->mappings;
}

struct codes *addresses_codes(struct addresses *addresses)
{
	__u64 ns = addresses->run->options->interval_ms * 1000000 / 2;

	if (addresses->codes)
		return addresses->codes;
	ns = ns && !addresses->run->reason ? clock_ns(CLOCK_MONOTONIC) + ns : 0;
	addresses->codes = codes_new(addresses->mappings, addresses->background, &addresses->account, ns);
	return addresses->codes;
}

json_t *addresses_value(const struct addresses *addresses)
{
	json_t *value = code_account_value(&addresses->account);

	json_object_set_new(value, "notes_lost", json_integer(sideband_lost(addresses->sideband)));
	json_object_set_new(value, "mappings_dropped",
			    json_integer(mappings_dropped(addresses->mappings)));
	return value;
}
