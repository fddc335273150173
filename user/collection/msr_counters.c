// SPDX-License-Identifier: GPL-2.0-only
#include "collection/msr_counters.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/note.h"
#include "event/escr.h"
#include "event/unit.h"
#include "host/files.h"
#include "host/kernel.h"
#include "plan/denial.h"

/* A unit on a CPU. */
struct site {
	const struct known_unit *unit;
	int cpu;	   /* the plan's CPU, which stands for all that share the unit */
	struct cpus share; /* the CPUs that share it and were online */
	int fd;		   /* the device of one of them */
	__u32 used;	   /* the counters that this run has taken, by their bits in the control register */
};

struct msr_counter {
	size_t event, site;
	__u32 bit; /* in the control register */
	int width;
	/* The registers that it takes, and their old contents. The first one identifies the owner, the last
	 * one has the count. */
	struct own_register own[OWN_REGISTERS];
	__u64 before[OWN_REGISTERS];
	size_t nr;
	__u32 enabled; /* counters with ESCRs: the value with which the CCCR counts, or waits to be started */
	__u64 last;    /* the last reading of the register */
	__u64 total;
	__u64 since_ns; /* CLOCK_MONOTONIC of the last start or reading; 0: off */
	__u64 enabled_ns, ran_ns;
	bool wrapped;	  /* its overflow status was set at the last reading */
	const char *lost; /* why it is lost; NULL: it counts */
	bool told;	  /* the loss has been reported */
};

struct msr_counters {
	const struct host *host;
	struct site *sites;
	size_t nr_sites;
	struct msr_counter *list;
	size_t nr;
	int state;     /* the state file; -1: not open */
	pid_t process; /* the process that took the registers; its children must not restore them */
	bool written, on;
	struct msr_counters *next;
};

/* All that are open, for exits that do not close them. */
static struct msr_counters *open_ones;

/* --- registers -------------------------------------------------------------------------------- */

static int read_register(int fd, __u32 msr, __u64 *value)
{
	ssize_t bytes = pread(fd, value, sizeof(*value), msr);

	return bytes == sizeof(*value) ? 0 : bytes < 0 ? -errno : -EIO;
}

static int write_register(int fd, __u32 msr, __u64 value)
{
	ssize_t bytes = pwrite(fd, &value, sizeof(value), msr);

	return bytes == sizeof(value) ? 0 : bytes < 0 ? -errno : -EIO;
}

static int open_device(const struct host *host, int cpu, int flags)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/dev/cpu/%d/msr", host->root, cpu);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static __u64 count_mask(int width)
{
	return (1ULL << width) - 1;
}

static __u32 count_register(const struct msr_counter *counter)
{
	return counter->own[counter->nr - 1].msr;
}

static bool is_own(const struct own_register *own, __u64 value)
{
	return (value & own->mask) == (own->value & own->mask);
}

/* Writes to the unit's control register. Does nothing for counters without one. */
static int command(const struct site *site, int which, __u32 counters)
{
	return site->unit->control ? write_register(site->fd, site->unit->control_msr,
						    unit_command(site->unit, which, counters))
				   : 0;
}

/* --- whether it may be ------------------------------------------------------------------------ */

#define ALLOW_WRITES "/sys/module/msr/parameters/allow_writes"

static int refuse_registers(struct refusal *refusal, int error)
{
	refuse(refusal, STATUS_REFUSED, "writing model-specific registers");
	refusal->error = error;
	return -1;
}

int msr_writable(struct host *host, struct refusal *refusal)
{
	struct msr device = {.name = "/dev/cpu/N/msr"};
	char text[32];
	int fd;

	if (host->lockdown[0] && strcmp(host->lockdown, "none")) {
		refuse_registers(refusal, EPERM);
		because(refusal, "the kernel is locked down (%s)", host->lockdown);
		according(refusal, "kernel, LOCKDOWN_MSR");
		return instead(refusal, "boot without lockdown");
	}
	if (slurp(host, text, sizeof(text), ALLOW_WRITES) > 0 && !strncmp(text, "off", 3)) {
		refuse_registers(refusal, EPERM);
		because(refusal, "the driver of /dev/cpu/N/msr takes no writes: %s is off", ALLOW_WRITES);
		return instead(refusal, "echo default > %s", ALLOW_WRITES);
	}
	fd = open_device(host, cpus_next(&host->online, 0), O_RDWR);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	device.error = -fd;
	msr_denied(refusal, host, &device);
	snprintf(refusal->asked, sizeof(refusal->asked), "writing model-specific registers");
	return -1;
}

static int refuse_unit(const struct known_unit *unit, int cpu, int error, struct refusal *refusal)
{
	refuse(refusal, STATUS_REFUSED, "the counters of '%s' on CPU %d", unit->name, cpu);
	refusal->error = error;
	return -1;
}

static int check_readable(int fd, const struct known_unit *unit, int cpu, const char *name, __u32 msr,
			  __u64 *value, struct refusal *refusal)
{
	int err = read_register(fd, msr, value);

	if (!err)
		return 0;
	refuse_unit(unit, cpu, -err, refusal);
	because(refusal, "%s (0x%x) can't be read: %s", name, msr, strerror(-err));
	return instead(refusal, "in a virtual machine it is not there; run it on the host");
}

/* Refuses counters that are in use: by the kernel's own driver, if it has one for them, or by another
 * program. */
static int refuse_in_use(const struct known_unit *unit, int cpu, const struct unit_number *reg, __u64 value,
			 struct refusal *refusal)
{
	refuse_unit(unit, cpu, EBUSY, refusal);
	because(refusal, "%s (0x%x) is 0x%llx: somebody else counts with it%s", reg->name, (__u32)reg->value,
		value, unit->counters ? ", the kernel's own driver or a program past it" : "");
	return unit->counters ? instead(refusal,
					"sysctl kernel.nmi_watchdog=0, and end other programs that count "
					"(perf); if there is none: wrmsr -p %d 0x%x 0",
					cpu, (__u32)reg->value)
			      : instead(refusal, "end that program; if there is none: wrmsr -p %d 0x%x 0",
					cpu, (__u32)reg->value);
}

/* Reads the control register, and those that select the events of all counters of the unit. The counters are
 * in use if one of them selects something. */
static int check_free(int fd, const struct known_unit *unit, int cpu, struct refusal *refusal)
{
	struct unit_number reg;
	__u64 control;

	if (unit->control &&
	    check_readable(fd, unit, cpu, unit->control, unit->control_msr, &control, refusal))
		return -1;
	for (size_t c = 0; (reg = unit_register(unit, c)).name; c++) {
		__u64 value;

		if (check_readable(fd, unit, cpu, reg.name, reg.value, &value, refusal))
			return -1;
		if (unit_in_use(unit, value))
			return refuse_in_use(unit, cpu, &reg, value, refusal);
	}
	return 0;
}

/* --- the file --------------------------------------------------------------------------------- */

/* The file has the old contents while registers are taken; it stays locked as long as the process lives. */
#define STATE_FOLDER "/run/nhmtap"
#define STATE_FILE   STATE_FOLDER "/msr.json"
#define STATE_MOST   (1 << 20)

static json_t *read_state(int fd)
{
	char *text = xcalloc(1, STATE_MOST + 1);
	ssize_t bytes = pread(fd, text, STATE_MOST, 0);
	json_t *state = bytes > 0 ? json_loadb(text, bytes, 0, NULL) : NULL;

	free(text);
	return state;
}

static __u64 hex_member(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? strtoull(text, NULL, 16) : 0;
}

/* The unit of the CPU's table that has this register. */
static const struct known_unit *unit_of(const struct host *host, __u32 msr)
{
	const struct cpu_events *cpu = host->units;

	for (size_t u = 0; cpu && u < cpu->nr_units; u++)
		if (unit_has(&cpu->units[u], msr))
			return &cpu->units[u];
	return NULL;
}

/* Restores an entry of the file. A register that somebody else has taken meanwhile is left alone, and so are
 * the other registers of that counter. */
static void put_one_back(const struct host *host, const json_t *entry)
{
	__u32 msr = hex_member(entry, "msr");
	const struct known_unit *unit = unit_of(host, msr);
	const json_t *with = json_object_get(entry, "with"), *other;
	int cpu = json_integer_value(json_object_get(entry, "cpu"));
	struct own_register own = {msr, hex_member(entry, "own"), hex_member(entry, "mask")};
	int fd = unit ? open_device(host, cpu, O_RDWR) : -ENODEV;
	__u64 value;
	size_t i;

	if (fd < 0)
		return;
	if (!read_register(fd, msr, &value) && own.value && own.mask && is_own(&own, value)) {
		write_register(fd, msr, hex_member(entry, "before"));
		json_array_foreach(with, i, other)
			if (unit_has(unit, hex_member(other, "msr")))
				write_register(fd, hex_member(other, "msr"), hex_member(other, "before"));
		note("put back MSR 0x%x of CPU %d, which a process that is gone has left", msr, cpu);
	}
	close(fd);
}

static void put_left_back(const struct host *host, int fd)
{
	json_t *state = read_state(fd), *entry;
	const char *boot = json_string_value(json_object_get(state, "boot_id"));
	size_t i;

	if (boot && !strcmp(boot, host->boot_id))
		json_array_foreach(json_object_get(state, "registers"), i, entry)
			put_one_back(host, entry);
	json_decref(state);
	if (ftruncate(fd, 0))
		note("%s can't be emptied: %s", STATE_FILE, strerror(errno));
}

static int refuse_state(struct refusal *refusal, int error, const char *what)
{
	refuse_registers(refusal, error);
	because(refusal, "%s %s: %s; there the next run finds what to put back, should this one be killed",
		what, STATE_FILE, strerror(error));
	return instead(refusal, "run it as root, where /run can be written");
}

static int refuse_locked(int fd, struct refusal *refusal)
{
	json_t *state = read_state(fd);
	int pid = json_integer_value(json_object_get(state, "pid"));

	json_decref(state);
	refuse_registers(refusal, EBUSY);
	if (pid == getpid()) {
		because(refusal, "another activity of this session does so");
		return instead(refusal, "let one activity have all events that need --msr");
	}
	because(refusal, "another nhmtap does so (process %d)", pid);
	return instead(refusal, "wait until it has ended");
}

/* Opens the file, and restores registers that a process which has ended has left there. Returns the
 * descriptor, or -1 with the refusal. */
static int take_state(const struct host *host, struct refusal *refusal)
{
	int fd;

	if (mkdir(STATE_FOLDER, 0700) && errno != EEXIST)
		return refuse_state(refusal, errno, "cannot make the folder of");
	fd = open(STATE_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return refuse_state(refusal, errno, "cannot open");
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		refuse_locked(fd, refusal);
		close(fd);
		return -1;
	}
	put_left_back(host, fd);
	return fd;
}

static json_t *hex(__u64 value)
{
	return json_sprintf("0x%" PRIx64, (uint64_t)value);
}

static json_t *counter_state(const struct msr_counters *counters, const struct msr_counter *counter)
{
	json_t *with = json_array();

	for (size_t r = 1; r < counter->nr; r++)
		json_array_append_new(with, json_pack("{s:o, s:o}", "msr", hex(counter->own[r].msr), "before",
						      hex(counter->before[r])));
	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "cpu", counters->sites[counter->site].cpu, "msr",
			 hex(counter->own->msr), "before", hex(counter->before[0]), "own",
			 hex(counter->own->value), "mask", hex(counter->own->mask), "with", with);
}

static int write_state(struct msr_counters *counters, struct refusal *refusal)
{
	json_t *registers = json_array(), *state;
	char *text;
	ssize_t length, bytes;

	for (size_t i = 0; i < counters->nr; i++)
		json_array_append_new(registers, counter_state(counters, &counters->list[i]));
	state = json_pack("{s:s, s:i, s:o}", "boot_id", counters->host->boot_id, "pid", (int)getpid(),
			  "registers", registers);
	text = had(json_dumps(state, JSON_INDENT(1)));
	json_decref(state);
	length = strlen(text);
	bytes = pwrite(counters->state, text, length, 0);
	free(text);
	return bytes == length ? 0 : refuse_state(refusal, bytes < 0 ? errno : ENOSPC, "cannot write");
}

int msr_unit_free(struct host *host, const struct known_unit *unit, const struct cpus *cpus,
		  struct refusal *refusal)
{
	int state = open(STATE_FILE, O_RDONLY | O_CLOEXEC), err = 0;

	if (state >= 0 && flock(state, LOCK_SH | LOCK_NB))
		err = refuse_locked(state, refusal);
	for (int cpu = cpus_next(cpus, 0); !err && cpu >= 0; cpu = cpus_next(cpus, cpu + 1)) {
		int fd = open_device(host, cpu, O_RDONLY);

		if (fd < 0) {
			refuse_unit(unit, cpu, -fd, refusal);
			err = because(refusal, "/dev/cpu/%d/msr: %s", cpu, strerror(-fd));
			break;
		}
		err = check_free(fd, unit, cpu, refusal);
		close(fd);
	}
	if (err && state >= 0 && refusal->error == EBUSY && !flock(state, LOCK_SH | LOCK_NB)) {
		json_t *left = read_state(state);

		if (left)
			instead(refusal,
				"a run that was killed has left it (%s): the next one with --msr puts it "
				"back",
				STATE_FILE);
		json_decref(left);
	}
	if (state >= 0)
		close(state);
	return err;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* The CPUs that share the unit's counters with this one. */
static struct cpus sharing(const struct host *host, const struct known_unit *unit, int cpu)
{
	struct cpus share = {0};

	for (int other = cpus_next(&host->online, 0); other >= 0; other = cpus_next(&host->online, other + 1))
		if (host_shares(host, unit->scope, cpu, other))
			cpus_add(&share, other);
	return share;
}

static size_t site_of(struct msr_counters *counters, const struct known_unit *unit, int cpu)
{
	size_t i = 0;

	while (i < counters->nr_sites && (counters->sites[i].unit != unit || counters->sites[i].cpu != cpu))
		i++;
	if (i < counters->nr_sites)
		return i;
	*xappend(counters->sites, counters->nr_sites) = (struct site){
		.unit = unit, .cpu = cpu, .share = sharing(counters->host, unit, cpu), .fd = -1};
	return i;
}

/* Makes a counter for each event of a unit, on each of the target's CPUs that stands for those that share the
 * unit. */
static void make_list(struct msr_counters *counters, const struct plan *plan)
{
	for (size_t i = 0; i < plan->events.nr; i++) {
		const struct event *event = &plan->events.list[i];

		for (int cpu = event->msr ? cpus_next(event->cpus, 0) : -1; cpu >= 0;
		     cpu = cpus_next(event->cpus, cpu + 1)) {
			struct msr_counter counter = {
				.event = i,
				.bit = event->unit_counter,
				.width = event->msr->count_bits,
				.enabled = event->msr->counters ? escr_cccr(event, true) : 0,
			};

			if (!cpus_has(&plan->target.cpus, cpu))
				continue;
			counter.nr = unit_own_registers(event, counter.own);
			counter.site = site_of(counters, event->msr, cpu);
			counters->sites[counter.site].used |= 1U << counter.bit;
			*xappend(counters->list, counters->nr) = counter;
		}
	}
}

static int open_site(struct msr_counters *counters, struct site *site, struct refusal *refusal)
{
	int fd = open_device(counters->host, site->cpu, O_RDWR);

	if (fd < 0) {
		refuse_unit(site->unit, site->cpu, -fd, refusal);
		because(refusal, "/dev/cpu/%d/msr can't be opened: %s", site->cpu, strerror(-fd));
		return instead(refusal, "run it as root; nhmtap doctor says what else is missing");
	}
	site->fd = fd;
	return check_free(fd, site->unit, site->cpu, refusal);
}

static int refuse_write(const struct msr_counters *counters, const struct msr_counter *counter,
			const struct own_register *reg, int err, struct refusal *refusal)
{
	const struct site *site = &counters->sites[counter->site];

	refuse_unit(site->unit, site->cpu, -err, refusal);
	if (err)
		because(refusal, "MSR 0x%x can't be written: %s", reg->msr, strerror(-err));
	else
		because(refusal, "MSR 0x%x does not keep 0x%llx", reg->msr, reg->value);
	return instead(refusal, "see dmesg; nhmtap doctor says what may keep registers from being written");
}

/* Writes a register whose counter is stopped, and reads it back. */
static int program_register(const struct site *site, const struct msr_counter *counter,
			    const struct own_register *reg, bool *kept)
{
	__u64 value = 0;
	int err = write_register(site->fd, reg->msr, reg->value);

	/* If this register also holds the count, the count is cleared now. */
	if (!err)
		err = command(site, site->unit->reset, 1U << counter->bit);
	if (!err)
		err = read_register(site->fd, reg->msr, &value);
	*kept = value == reg->value;
	return err;
}

/* Writes the event selection and the initial count while the counter is frozen. The register that identifies
 * the owner is written first, so that the others are restored whatever happens. */
static int program(struct msr_counters *counters, struct msr_counter *counter, struct refusal *refusal)
{
	struct site *site = &counters->sites[counter->site];
	bool kept = true;
	int err = command(site, site->unit->freeze, 1U << counter->bit);

	for (size_t r = 0; r < counter->nr; r++) {
		if (!err)
			err = program_register(site, counter, &counter->own[r], &kept);
		if (err || !kept)
			return refuse_write(counters, counter, &counter->own[r], err, refusal);
	}
	return 0;
}

static int read_before(struct msr_counters *counters, struct msr_counter *counter, struct refusal *refusal)
{
	for (size_t r = 0; r < counter->nr; r++) {
		int fd = counters->sites[counter->site].fd;
		int err = read_register(fd, counter->own[r].msr, &counter->before[r]);

		if (err)
			return refuse_write(counters, counter, &counter->own[r], err, refusal);
	}
	return 0;
}

static int take_all(struct msr_counters *counters, struct refusal *refusal)
{
	for (size_t i = 0; i < counters->nr_sites; i++)
		if (open_site(counters, &counters->sites[i], refusal))
			return -1;
	for (size_t i = 0; i < counters->nr; i++)
		if (read_before(counters, &counters->list[i], refusal))
			return -1;
	if (write_state(counters, refusal))
		return -1;
	counters->written = true;
	for (size_t i = 0; i < counters->nr; i++)
		if (program(counters, &counters->list[i], refusal))
			return -1;
	return 0;
}

static bool wanted(const struct plan *plan)
{
	for (size_t i = 0; i < plan->events.nr; i++)
		if (plan->events.list[i].msr)
			return true;
	return false;
}

int msr_counters_open(struct msr_counters **result, const struct plan *plan, struct host *host,
		      struct refusal *refusal)
{
	static bool at_exit;
	struct msr_counters *counters;

	*result = NULL;
	if (!wanted(plan))
		return 0;
	if (msr_writable(host, refusal))
		return -1;
	counters = xcalloc(1, sizeof(*counters));
	counters->host = host;
	counters->process = getpid();
	counters->next = open_ones;
	open_ones = counters;
	if (!at_exit)
		atexit(msr_counters_put_back);
	at_exit = true;
	make_list(counters, plan);
	counters->state = take_state(host, refusal);
	if (counters->state < 0 || take_all(counters, refusal)) {
		msr_counters_close(counters);
		return -1;
	}
	*result = counters;
	return 0;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Restores the registers. Async-signal-safe. */
static void put_back(struct msr_counters *counters)
{
	if (!counters->written || counters->process != getpid())
		return;
	counters->written = false;
	for (size_t i = 0; i < counters->nr; i++) {
		const struct msr_counter *counter = &counters->list[i];
		const struct site *site = &counters->sites[counter->site];
		__u64 value;

		if (read_register(site->fd, counter->own->msr, &value) || !is_own(counter->own, value))
			continue; /* somebody else has taken it */
		command(site, site->unit->freeze, 1U << counter->bit);
		for (size_t r = 0; r < counter->nr; r++)
			write_register(site->fd, counter->own[r].msr, counter->before[r]);
		command(site, site->unit->unfreeze, 1U << counter->bit);
	}
	if (ftruncate(counters->state, 0))
		return; /* the registers stay in the file: the next run finds that they are not its own any
			   more, and leaves them */
}

void msr_counters_put_back(void)
{
	for (struct msr_counters *counters = open_ones; counters; counters = counters->next)
		put_back(counters);
}

void msr_counters_close(struct msr_counters *counters)
{
	struct msr_counters **at = &open_ones;

	if (!counters)
		return;
	put_back(counters);
	while (*at && *at != counters)
		at = &(*at)->next;
	if (*at)
		*at = counters->next;
	for (size_t i = 0; i < counters->nr_sites; i++)
		if (counters->sites[i].fd >= 0)
			close(counters->sites[i].fd);
	if (counters->state >= 0)
		close(counters->state);
	free(counters->sites);
	free(counters->list);
	free(counters);
}

/* --- counting --------------------------------------------------------------------------------- */

#define TAKEN_OVER    "another program has written its register"
#define WRAPPED_AWAY  "its register was not read in time, and may have wrapped more than once"
#define CAN_T_BE_READ "its register can't be read any more: the CPUs that share it are offline"

/* Reads a register if the CPU whose device is open has gone offline: opens that of another CPU that shares
 * the unit. */
static int read_elsewhere(struct msr_counters *counters, struct site *site, __u32 msr, __u64 *value)
{
	for (int cpu = cpus_next(&site->share, 0); cpu >= 0; cpu = cpus_next(&site->share, cpu + 1)) {
		int fd = open_device(counters->host, cpu, O_RDWR);

		if (fd < 0)
			continue;
		if (read_register(fd, msr, value)) {
			close(fd);
			continue;
		}
		close(site->fd);
		site->fd = fd;
		return 0;
	}
	return -ENXIO;
}

static int read_of_site(struct msr_counters *counters, struct site *site, __u32 msr, __u64 *value)
{
	int err = read_register(site->fd, msr, value);

	return err ? read_elsewhere(counters, site, msr, value) : 0;
}

/* Whether the counter has overflowed since it was reset. */
static int read_status(struct msr_counters *counters, const struct msr_counter *counter, bool *overflowed)
{
	struct site *site = &counters->sites[counter->site];
	const struct known_unit *unit = site->unit;
	__u64 status;
	int err =
		read_of_site(counters, site, unit->control ? unit->control_msr : counter->own->msr, &status);

	*overflowed = !err &&
		      (unit->control ? status >> (unit->status + counter->bit) & 1 : status & CCCR_OVERFLOW);
	return err;
}

/* Reads the count, and finds out whether the registers that select the event are unchanged. Reads each
 * register once. */
static int read_own(struct msr_counters *counters, const struct msr_counter *counter, bool *own, __u64 *count)
{
	struct site *site = &counters->sites[counter->site];
	int err = 0;

	*own = true;
	for (size_t r = 0; !err && r < counter->nr; r++) {
		const struct own_register *reg = &counter->own[r];

		if (!reg->mask && reg->msr != count_register(counter))
			continue;
		err = read_of_site(counters, site, reg->msr, count);
		*own = *own && !err && is_own(reg, *count);
	}
	return err;
}

/* Returns why a count can't be used, NULL if it can. A count that has decreased has wrapped, and its overflow
 * status must be set. The status also shows a wrap that left the count larger, but only the first one. */
static const char *judge_count(const struct msr_counter *counter, const struct site *site, __u64 count,
			       bool overflowed, __u64 elapsed_ns)
{
	bool less = count < counter->last;

	if (less && !overflowed)
		return TAKEN_OVER;
	if (!less && overflowed && !counter->wrapped)
		return WRAPPED_AWAY;
	if (overflowed && elapsed_ns > site->unit->wraps_in_ms * 1000000ULL)
		return WRAPPED_AWAY;
	return NULL;
}

/* Stops counting. The register, and whether it is frozen, belongs to somebody else now. */
static void lose(struct msr_counters *counters, struct msr_counter *counter, const char *why)
{
	counter->lost = why;
	counters->sites[counter->site].used &= ~(1U << counter->bit);
}

static int read_counter(struct msr_counters *counters, struct msr_counter *counter)
{
	struct site *site = &counters->sites[counter->site];
	__u64 now = clock_ns(CLOCK_MONOTONIC), elapsed = counter->since_ns ? now - counter->since_ns : 0;
	__u64 value, mask = count_mask(counter->width), count;
	const char *lost;
	bool overflowed, own;
	int err;

	counter->enabled_ns += elapsed;
	counter->since_ns = counter->since_ns ? now : 0;
	if (counter->lost)
		return 0;
	err = read_status(counters, counter, &overflowed);
	if (!err)
		err = read_own(counters, counter, &own, &value);
	if (err) {
		lose(counters, counter, CAN_T_BE_READ);
		return err;
	}
	count = value & mask;
	/* It may have overflowed between the two reads. */
	if (count < counter->last && !overflowed)
		read_status(counters, counter, &overflowed);
	lost = own ? judge_count(counter, site, count, overflowed, elapsed) : TAKEN_OVER;
	if (lost) {
		lose(counters, counter, lost);
		return 0;
	}
	counter->total += (count - counter->last) & mask;
	counter->last = count;
	counter->wrapped = overflowed;
	counter->ran_ns += elapsed;
	return 0;
}

/* Starts or stops a counter with a CCCR. A start that another counter's overflow has caused is remembered
 * over a stop, and the overflow flag is kept. */
static int switch_cccr(struct msr_counters *counters, struct msr_counter *counter, bool on)
{
	struct site *site = &counters->sites[counter->site];
	__u64 value;
	int err;

	if (!counter->enabled || counter->lost)
		return 0;
	err = read_of_site(counters, site, counter->own->msr, &value);
	if (err || !is_own(counter->own, value))
		return err; /* the next reading finds that it is somebody else's */
	if (!on)
		counter->enabled |= value & CCCR_ENABLE;
	value = (on ? counter->enabled : counter->own->value) | (value & CCCR_OVERFLOW);
	return write_register(site->fd, counter->own->msr, value);
}

/* Starts a site's counters. What is in the registers before does not belong to this run. */
static int begin_site(struct msr_counters *counters, size_t which)
{
	struct site *site = &counters->sites[which];
	int err = 0;

	for (size_t i = 0; i < counters->nr; i++) {
		struct msr_counter *counter = &counters->list[i];
		__u64 value;

		if (counter->site != which)
			continue;
		if (!counter->lost && !read_of_site(counters, site, count_register(counter), &value))
			counter->last = value & count_mask(counter->width);
		counter->since_ns = clock_ns(CLOCK_MONOTONIC);
	}
	for (size_t i = 0; !err && i < counters->nr; i++)
		if (counters->list[i].site == which)
			err = switch_cccr(counters, &counters->list[i], true);
	return err ? err : command(site, site->unit->unfreeze, site->used);
}

static int end_site(struct msr_counters *counters, size_t which)
{
	struct site *site = &counters->sites[which];
	int first = command(site, site->unit->freeze, site->used);

	/* In the list, a counter that starts others comes before them, so it is stopped first. */
	for (size_t i = 0; i < counters->nr; i++)
		if (counters->list[i].site == which) {
			int err = switch_cccr(counters, &counters->list[i], false);

			first = first ? first : err;
		}
	for (size_t i = 0; i < counters->nr; i++) {
		struct msr_counter *counter = &counters->list[i];
		int err = counter->site == which ? read_counter(counters, counter) : 0;

		if (counter->site == which)
			counter->since_ns = 0;
		first = first ? first : err;
	}
	return first;
}

int msr_counters_switch(struct msr_counters *counters, bool on)
{
	int first = 0;

	for (size_t i = 0; i < counters->nr_sites && counters->on != on; i++) {
		int err = on ? begin_site(counters, i) : end_site(counters, i);

		first = first ? first : err;
	}
	counters->on = on;
	return first;
}

int msr_counters_read(struct msr_counters *counters, size_t event, int cpu, struct count *count)
{
	size_t i = 0;
	int err;

	*count = (struct count){0};
	while (i < counters->nr &&
	       (counters->list[i].event != event || counters->sites[counters->list[i].site].cpu != cpu))
		i++;
	if (i == counters->nr)
		return 0;
	err = read_counter(counters, &counters->list[i]);
	*count = (struct count){counters->list[i].total, counters->list[i].enabled_ns,
				counters->list[i].ran_ns};
	return err;
}

__u64 msr_counters_pace(const struct msr_counters *counters)
{
	__u64 pace = 0;

	for (size_t i = 0; counters && i < counters->nr_sites; i++) {
		__u64 own = counters->sites[i].unit->wraps_in_ms * 1000000ULL / 4;

		pace = !pace || own < pace ? own : pace;
	}
	return pace;
}

const char *msr_counters_lost(struct msr_counters *counters, size_t event)
{
	for (size_t i = 0; counters && i < counters->nr; i++) {
		struct msr_counter *counter = &counters->list[i];

		if (counter->event != event || !counter->lost || counter->told)
			continue;
		counter->told = true;
		return counter->lost;
	}
	return NULL;
}
