// SPDX-License-Identifier: GPL-2.0-only
/* The contents of the line of progress on stderr: see output/progress.h. */
#include "run/parts.h"

#include <poll.h>

#include "base/clock.h"
#include "output/progress.h"
#include "output/rows.h"

/* Whether records are shown on a terminal. Then no line of progress is needed, and none may be mixed with
 * them. */
static bool seen(const struct session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (session->streams[i].sink.terminal)
			return true;
	return false;
}

static void on_progress(void *context)
{
	struct run *run = context;
	struct so_far sum = {0};
	char samples[40], rate[40], lost[40], size[40];
	__u64 bytes = 0;
	double seconds;

	for (size_t i = 0; i < run->nr; i++) {
		struct activity *activity = &run->members[i]->activity;

		if (run->members[i]->going && activity->ops->so_far)
			activity->ops->so_far(activity, &sum);
	}
	for (size_t i = 0; i < run->session.nr_streams; i++)
		bytes += run->session.streams[i].sink.bytes;
	progress_size(bytes, size, sizeof(size));
	if (!sum.sampled) {
		progress_show(", %s written", size);
		return;
	}
	seconds = (clock_ns(CLOCK_MONOTONIC) - timespec_ns(&run->session.began)) / 1e9;
	progress_show(", %s (%s/s), %s lost, %s written",
		      row_counted(sum.samples, "sample", samples, sizeof(samples)),
		      row_grouped(sum.samples / seconds, rate, sizeof(rate)),
		      row_grouped(sum.lost, lost, sizeof(lost)), size);
}

static void on_others_written(void *context, short events)
{
	(void)context;
	(void)events;
	progress_give_way();
}

void begin_progress(struct run *run)
{
	struct session *session = &run->session;
	int written;

	if (seen(session) || !progress_begin(run->request->quiet))
		return;
	if (has_command(session)) {
		written = progress_share();
		if (written < 0)
			return;
		run->others_written = loop_watch(session->loop, written, POLLIN, on_others_written, run);
	}
	run->progress = loop_every(session->loop, clock_ns(CLOCK_MONOTONIC), PROGRESS_NS, on_progress, run);
}

void end_progress(struct run *run)
{
	loop_remove(run->session.loop, &run->progress);
	loop_remove(run->session.loop, &run->others_written);
	progress_end();
}
