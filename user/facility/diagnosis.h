/* SPDX-License-Identifier: GPL-2.0-only */
/* The records of nhmtap doctor: what the machine is, what the process is allowed to do, and what works. */
#pragma once

#include <jansson.h>

#include "facility/facility.h"
#include "host/host.h"
#include "host/processor.h"
#include "plan/permission.h"

/* Each makes a record, and returns a new reference. */
json_t *processor_record(const struct processor *processor, struct host *host);
json_t *kernel_record(struct host *host);
json_t *permission_record(const struct permission *permission);
json_t *counters_record(const struct free_counters *counters, const struct processor *processor,
			struct host *host);
json_t *facility_record(const struct finding *finding);
