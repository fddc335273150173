// SPDX-License-Identifier: GPL-2.0-only
/* Tells others that a session is alive: heartbeat records, /readyz, and systemd's notifications. */
#include "run/parts.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/type.h"
#include "session/listen.h"

/* --- sd_notify(3) ----------------------------------------------------------------------------- */

/* Sends a datagram to the socket of NOTIFY_SOCKET; the protocol is in the manual page. Never blocks, and a
 * failure is ignored. */
static void notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = path ? strlen(path) : 0;
	int fd;

	if (!length || length >= sizeof(address.sun_path) || !strchr("/@", *path))
		return;
	memcpy(address.sun_path, path, length);
	if (*path == '@') /* an abstract socket */
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
	       offsetof(struct sockaddr_un, sun_path) + length);
	close(fd);
}

static void on_watchdog(void *context)
{
	notify("WATCHDOG=1");
}

/* Half of WATCHDOG_USEC, as sd_watchdog_enabled(3) advises; 0: there is no watchdog for this process. */
static __u64 watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	return usec && (!pid || atoi(pid) == getpid()) ? strtoull(usec, NULL, 10) * 1000 / 2 : 0;
}

void service_reloads(void)
{
	char state[64];

	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu", clock_ns(CLOCK_MONOTONIC) / 1000);
	notify(state);
}

void service_is_ready(void)
{
	notify("READY=1");
}

/* --- heartbeats ------------------------------------------------------------------------------- */

/* A stream is checked eight times per heartbeat, so it is silent for at most an eighth longer than asked. */
#define LOOKS 8

static void beat(struct run *run, struct stream *stream)
{
	struct timespec now = now_of(CLOCK_MONOTONIC);
	json_int_t going = 0;

	for (size_t i = 0; i < run->nr; i++)
		going += run->members[i]->going;
	stream_write(stream,
		     json_pack("{s:s, s:I, s:I}", "type", "heartbeat", "duration_ns",
			       (json_int_t)(timespec_ns(&now) - timespec_ns(&run->session.began)),
			       "activities", going),
		     run->session.alone ? run->members[0]->activity.name : SESSION);
}

static void on_heartbeat(void *context)
{
	struct run *run = context;
	__u64 now = clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < run->session.nr_streams; i++) {
		struct stream *stream = &run->session.streams[i];

		if (stream->records != stream->records_seen) {
			stream->records_seen = stream->records;
			stream->silent_since_ns = now;
		} else if (now - stream->silent_since_ns >= run->heartbeat_ns) {
			beat(run, stream);
			stream->silent_since_ns = now;
		}
	}
	flush(run);
}

static const struct record_type heartbeat_record = {.name = "heartbeat"};
REGISTER_RECORD(heartbeat_record);

/* --- readiness -------------------------------------------------------------------------------- */

/* Whether an activity has reported an interval. One without intervals is ready as soon as it measures. */
static bool is_ready(const struct running *member)
{
	return member->going && (member->activity.reported || !member->activity.options->interval_ms);
}

static unsigned int answer_ready(struct session *session, struct text *body, const char **type)
{
	const struct run *run = (const struct run *)session; /* `session` is the first member of struct run */
	unsigned int status = PAGE_OK;

	for (size_t i = 0; i < run->nr; i++) {
		if (is_ready(run->members[i]))
			continue;
		status = PAGE_NOT_YET;
		text_add(body, "%s: %s\n", run->members[i]->activity.name,
			 run->members[i]->going ? "its first interval is not written yet"
						: "it does not measure");
	}
	if (status == PAGE_OK)
		text_add(body, "ok\n");
	return status;
}

static const struct page ready = {"/readyz", answer_ready};
REGISTER_PAGE(ready);

/* --- all of it -------------------------------------------------------------------------------- */

void begin_service(struct run *run)
{
	struct loop *loop = run->session.loop;
	__u64 now = clock_ns(CLOCK_MONOTONIC), watchdog = watchdog_ns();

	for (size_t i = 0; i < run->session.nr_streams; i++)
		run->session.streams[i].silent_since_ns = now;
	run->heartbeat_ns = run->request->heartbeat_s * 1000000000;
	if (run->heartbeat_ns)
		run->heartbeat = loop_every(loop, now, run->heartbeat_ns / LOOKS, on_heartbeat, run);
	if (watchdog)
		run->watchdog = loop_every(loop, now, watchdog, on_watchdog, run);
	service_is_ready();
}

void end_service(struct run *run)
{
	loop_remove(run->session.loop, &run->heartbeat);
	loop_remove(run->session.loop, &run->watchdog);
	notify("STOPPING=1");
}
