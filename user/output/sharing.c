// SPDX-License-Identifier: GPL-2.0-only
#include "output/sharing.h"

#include <string.h>

#include "output/member.h"
#include "record/source.h"

/* Fewer are chance: any program has some from its start, and from the kernel. */
#define LEAST_SAMPLES 5
#define LEAST_SHARE   0.02

void sharing_take(struct sharing *sharing, const json_t *record)
{
	const char *type = string(record, "type");
	json_t *source;
	size_t i;

	sharing->told |= !strcmp(type, "shared_line");
	if (strcmp(type, "mem"))
		return;
	json_array_foreach(json_object_get(record, "sources"), i, source) {
		double loads = real_member(source, "period", 0);

		sharing->loads += loads;
		if (!source_modified(hex_member(source, "data_src")))
			continue;
		sharing->modified += loads;
		sharing->samples = count_sum(sharing->samples, integer(source, "samples"));
	}
}

double sharing_untold(const struct sharing *sharing)
{
	double share = sharing->loads > 0 ? sharing->modified / sharing->loads : 0;

	return !sharing->told && sharing->samples >= LEAST_SAMPLES && share >= LEAST_SHARE ? share : 0;
}
