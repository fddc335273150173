// SPDX-License-Identifier: GPL-2.0-only
#include "collection/self.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <linux/perf_event.h>

#include <perf/core.h>
#include <perf/evsel.h>
#include <perf/threadmap.h>

#include "base/memory.h"
#include "collection/libperf_fd.h"

struct self {
	struct perf_evsel *evsel;
	struct perf_thread_map *threads;
	bool kernel;
};

static int open_event(struct self *self, bool kernel)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.exclude_kernel = !kernel,
		.exclude_hv = 1,
	};
	int err;

	self->kernel = kernel;
	self->evsel = had(perf_evsel__new(&attr));
	err = perf_evsel__open(self->evsel, NULL, self->threads);
	if (!err)
		return 0;
	perf_evsel__delete(self->evsel);
	self->evsel = NULL;
	return err;
}

struct self *self_begin(void)
{
	struct self *self = xcalloc(1, sizeof(*self));
	int err;

	self->threads = had(perf_thread_map__new_dummy());
	perf_thread_map__set_pid(self->threads, 0, 0);
	err = open_event(self, true);
	if (err == -EACCES)
		err = open_event(self, false);
	if (err) {
		self_end(self);
		return NULL;
	}
	/* libperf passes no flags to the kernel, and a COMMAND must not inherit this descriptor. */
	fcntl(libperf_fd(self->evsel, 0, 0), F_SETFD, FD_CLOEXEC);
	/* If the page can't be mapped, the event is read with read(2). */
	perf_evsel__mmap(self->evsel, 0);
	return self;
}

bool self_instructions(struct self *self, __u64 *instructions)
{
	struct perf_counts_values values = {0};

	/* If an event has been on its counter since it was opened, the times in its page are still 0. */
	if (!self || perf_evsel__read(self->evsel, 0, 0, &values) || !values.val || values.run < values.ena)
		return false;
	*instructions = values.val;
	return true;
}

bool self_has_kernel(const struct self *self)
{
	return self->kernel;
}

void self_end(struct self *self)
{
	if (!self)
		return;
	if (self->evsel) {
		perf_evsel__munmap(self->evsel);
		perf_evsel__close(self->evsel);
		perf_evsel__delete(self->evsel);
	}
	perf_thread_map__put(self->threads);
	free(self);
}
