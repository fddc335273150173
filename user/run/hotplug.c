// SPDX-License-Identifier: GPL-2.0-only
#include "run/hotplug.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "record/record.h"
#include "run/run.h"

#define KERNEL_NOTICES 1 /* the group of what the kernel says itself: lib/kobject_uevent.c */

/* What notices say of a CPU: "offline@/devices/system/cpu/cpu1". */
#define OFFLINE_NOTICE "offline@/devices/system/cpu/cpu"

static int open_notices(void)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_NOTICES};
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

void hotplug_begin(struct run *run)
{
	char path[PATH_MAX];

	run->hotplug = (struct hotplug){.notices = -1, .online = -1};
	if (!run->plan.target.cpus_given)
		return;
	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/online", run->host.root);
	run->hotplug.online = open(path, O_RDONLY | O_CLOEXEC);
	run->hotplug.notices = open_notices();
}

void hotplug_end(struct run *run)
{
	if (run->hotplug.online >= 0)
		close(run->hotplug.online);
	if (run->hotplug.notices >= 0)
		close(run->hotplug.notices);
	run->hotplug.online = run->hotplug.notices = -1;
}

/* CPUs that have gone since it was last asked, though they may be back already. */
static void read_notices(struct hotplug *hotplug, struct cpus *gone)
{
	char text[4096];
	ssize_t length;

	while ((length = recv(hotplug->notices, text, sizeof(text) - 1, 0)) > 0) {
		text[length] = '\0';
		if (!strncmp(text, OFFLINE_NOTICE, strlen(OFFLINE_NOTICE))) {
			int cpu = atoi(text + strlen(OFFLINE_NOTICE));

			if (cpu >= 0 && cpu < CPUS_MAX)
				cpus_add(gone, cpu);
		}
	}
}

/* Returns false where it can't be told. */
static bool read_online(const struct hotplug *hotplug, struct cpus *online)
{
	char text[4096];
	ssize_t length = pread(hotplug->online, text, sizeof(text) - 1, 0);

	if (length <= 0)
		return false;
	text[length] = '\0';
	return !cpus_parse(text, online);
}

static int tell(struct run *run, const char *change, int cpu, const char *why)
{
	json_t *record = json_pack("{s:s, s:s, s:i}", "type", "hotplug", "change", change, "cpu", cpu);

	if (why)
		json_object_set_new(record, "why", value_text(why, 512));
	return stream_write(&run->stream, record, NULL, NULL);
}

static int leave(struct run *run, int cpu)
{
	counters_leave(run->counters, cpu);
	cpus_add(&run->hotplug.missing, cpu);
	cpus_add(&run->hotplug.missed, cpu);
	return tell(run, "offline", cpu, NULL);
}

/* Opens, attaches and enables what is measured at a place. Returns 0, or -1 with the reason. */
static int join_place(struct run *run, size_t place, struct refusal *refusal)
{
	int err = counters_join(run->counters, place);

	if (!err && run->activity->attach_at && run->activity->attach_at(run, place, refusal))
		return -1;
	if (!err)
		err = run->off ? 0 : counters_enable_at(run->counters, place);
	return err ? because(refusal, "its events can't be opened: %s", strerror(-err)) : 0;
}

static int join(struct run *run, int cpu)
{
	const struct places *places = counters_places(run->counters);
	struct hotplug *hotplug = &run->hotplug;
	bool told = cpus_has(&hotplug->refused, cpu);
	struct refusal refusal = {0};

	for (size_t p = 0; p < places->nr; p++) {
		if (places->list[p].cpu != cpu || places->list[p].open ||
		    !join_place(run, p, &refusal))
			continue;
		counters_leave(run->counters, cpu);
		cpus_add(&hotplug->refused, cpu);
		return told ? 0 : tell(run, "refused", cpu, refusal.why);
	}
	cpus_remove(&hotplug->missing, cpu);
	cpus_remove(&hotplug->refused, cpu);
	return tell(run, "online", cpu, NULL);
}

/* CPUs whose events are open, those that are to be, and those that have gone in between: where no
 * notice says so, the events' own clocks do, at the next reading. */
static void look_at(const struct run *run, struct cpus *open, struct cpus *wanted, struct cpus *gone)
{
	const struct places *places = counters_places(run->counters);

	*open = *wanted = (struct cpus){0};
	for (size_t p = 0; p < places->nr; p++) {
		const struct place *place = &places->list[p];

		if (place->cpu < 0)
			continue;
		cpus_add(place->open ? open : wanted, place->cpu);
		if (place->open && place->stalled)
			cpus_add(gone, place->cpu);
	}
}

int hotplug_follow(struct run *run)
{
	struct hotplug *hotplug = &run->hotplug;
	struct cpus online, open, wanted, gone = {0};
	int err = 0;

	if (hotplug->notices >= 0)
		read_notices(hotplug, &gone);
	if (hotplug->online < 0 || !read_online(hotplug, &online))
		return 0;
	look_at(run, &open, &wanted, &gone);
	for (int cpu = cpus_next(&open, 0); cpu >= 0 && !err; cpu = cpus_next(&open, cpu + 1)) {
		if (cpus_has(&online, cpu) && !cpus_has(&gone, cpu))
			continue;
		err = leave(run, cpu);
		cpus_add(&wanted, cpu);
	}
	for (int cpu = cpus_next(&wanted, 0); cpu >= 0 && !err; cpu = cpus_next(&wanted, cpu + 1))
		if (cpus_has(&online, cpu))
			err = join(run, cpu);
	return err;
}

/* The kernel tells only those who are in a network namespace of its own user namespace. Where it does not,
 * the clock of a CPU's events stands still when it goes, but not only then that of a cgroup's. */
int hotplug_check(struct run *run, bool last)
{
	bool needed = last || run->hotplug.notices < 0 || run->plan.target.nr_cgroups ||
		      counters_stalled(run->counters);

	return needed ? hotplug_follow(run) : 0;
}

void hotplug_next(struct run *run)
{
	run->hotplug.missed = run->hotplug.missing;
}

void run_put_missing(const struct run *run, json_t *record, const struct cpus *of)
{
	struct cpus missed;
	char text[512];

	if (cpus_next(&run->hotplug.missed, 0) < 0) /* as nearly always, of many records */
		return;
	missed = run->hotplug.missed;
	for (int cpu = cpus_next(&missed, 0); cpu >= 0; cpu = cpus_next(&missed, cpu + 1))
		if (of && !cpus_has(of, cpu))
			cpus_remove(&missed, cpu);
	if (cpus_next(&missed, 0) >= 0)
		json_object_set_new(record, "cpus_missing",
				    json_string(cpus_print(&missed, text, sizeof(text))));
}
