// SPDX-License-Identifier: GPL-2.0-only
#include "record/overhead.h"

#include <stdio.h>

#include "base/apart.h"
#include "base/clock.h"
#include "naming/worker.h"

/* The largest resident set so far, in bytes. getrusage(2) is not used: if the process's program before
 * execve(2) had a larger one, that is what it returns (setmax_mm_hiwater_rss(), fs/exec.c). */
static json_int_t max_rss_bytes(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long long kilobytes = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %llu kB", &kilobytes) == 1)
			break;
	if (file)
		fclose(file);
	return kilobytes * 1024;
}

__u64 own_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + workers_cpu_ns() + apart_cpu_ns();
}

json_t *overhead_value(struct self *self)
{
	__u64 instructions;
	json_t *value;

	value = json_pack("{s:I, s:I}", "cpu_time_ns", (json_int_t)own_cpu_ns(), "max_rss_bytes",
			  max_rss_bytes());
	if (self_instructions(self, &instructions)) {
		json_object_set_new(value, "instructions", json_integer(instructions));
		json_object_set_new(value, "instructions_of",
				    json_string(self_has_kernel(self) ? "user and kernel" : "user"));
	}
	return value;
}
