// SPDX-License-Identifier: GPL-2.0-only
#include "plan/modelled.h"

#include <stdio.h>

#include "event/encoding.h"
#include "host/processor.h"

/* The fields of IA32_PERFEVTSELx. */
#define CODE(config)  ((config)&0xff)
#define UMASK(config) ((config) >> 8 & 0xff)

/* Code 0 stands for a fixed counter, and every machine has those that it reports. */
static void settle_modelled(struct event *event, struct host *host)
{
	struct encoding encoding;
	__u32 umask;

	if ((event->attr.type != PERF_TYPE_RAW && !host->events) ||
	    !encoding_of(&event->attr, host, &encoding) || !CODE(encoding.config))
		return;
	if (!processor_models(host, CODE(encoding.config), UMASK(encoding.config), &umask))
		snprintf(event->never, sizeof(event->never), "the emulated machine does not model it");
	else if (umask != UMASK(encoding.config))
		event_note(event, "the emulated machine models only umask 0x%02x of its 0x%02x", umask,
			   (__u32)UMASK(encoding.config));
}

void modelled_settle(struct events *events, struct host *host)
{
	if (!host->emulated.model[0] || host->pretended)
		return;
	for (size_t i = 0; i < events->nr; i++)
		settle_modelled(&events->list[i], host);
}
