// SPDX-License-Identifier: GPL-2.0-only
#include "host/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/array.h"
#include "base/memory.h"
#include "host/files.h"

/* --- configuration ---------------------------------------------------------------------------- */

/* Reads a whole file, compressed or not (gzopen() supports both). Returns NULL if there is no such file. */
static char *unpack(const char *path)
{
	gzFile file = gzopen(path, "re");
	size_t used = 0, room = 1 << 19;
	char *text;
	int n;

	if (!file)
		return NULL;
	text = xmalloc(room);
	while ((n = gzread(file, text + used, room - used - 1)) > 0) {
		used += n;
		if (room - used < 2)
			text = xrealloc(text, room *= 2);
	}
	text[used] = '\0';
	gzclose(file);
	return text;
}

static void read_config(struct host *host)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/proc/config.gz", host->root);
	host->config = unpack(path);
	if (!host->config) {
		snprintf(path, sizeof(path), "%s/boot/config-%s", host->root, host->release);
		host->config = unpack(path);
	}
	if (!host->config)
		host->config = xstrdup("");
}

char kernel_config(struct host *host, const char *option)
{
	size_t length = strlen(option);

	if (!host->config)
		read_config(host);
	for (const char *at = host->config; (at = strstr(at, option)); at += length)
		if (at[length] == '=' && (at == host->config || at[-1] == '\n'))
			return at[length + 1];
	/* "# CONFIG_X is not set", or no line at all if an option is missing on which it depends. */
	return host->config[0] ? 'n' : 0;
}

/* --- states ----------------------------------------------------------------------------------- */

bool kernel_pti(const struct host *host)
{
	char text[128];

	return slurp(host, text, sizeof(text), "/sys/devices/system/cpu/vulnerabilities/meltdown") > 0 &&
	       strstr(text, "PTI");
}

bool kernel_nmi_watchdog(const struct host *host)
{
	return slurp_number(host, "/proc/sys/kernel/nmi_watchdog", 0) == 1;
}

#define LOG_RECORD 8192 /* the longest: PRINTKRB_RECORD_MAX and its dictionary */

bool kernel_firmware_register(const struct host *host, struct firmware_register *found)
{
	static const char words[] = "corrupted hw-PMU resources (MSR ";
	char path[PATH_MAX], record[LOG_RECORD + 1];
	bool there = false;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/dev/kmsg", host->root);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	/* EPIPE: records were overwritten before they were read. */
	while (!there && ((n = read(fd, record, LOG_RECORD)) > 0 || (n < 0 && errno == EPIPE))) {
		const char *at;
		unsigned long long value;

		record[n < 0 ? 0 : n] = '\0';
		at = strstr(record, words);
		there = at && sscanf(at + strlen(words), "%x is %llx", &found->address, &value) == 2;
		if (there)
			found->value = value;
	}
	close(fd);
	return there;
}

bool kernel_at_least(const struct host *host, int major, int minor)
{
	int found[2] = {0};

	sscanf(host->release, "%d.%d", &found[0], &found[1]);
	return found[0] > major || (found[0] == major && found[1] >= minor);
}

#define NETBURST_FAMILY 15

bool kernel_miscounts(const struct host *host)
{
	return !strcmp(host->cpu.vendor, "GenuineIntel") && host->cpu.family == NETBURST_FAMILY &&
	       kernel_at_least(host, 6, 1);
}

/* --- PMUs that are not there ------------------------------------------------------------------ */

static int no_core(struct host *host, struct refusal *refusal)
{
	const char *machine = host_may_be_emulated(host) ? ", --machine" : "";

	because(refusal, "this %smachine has no core PMU (no PMU 'cpu')", host->virtual ? "virtual " : "");
	if (host->virtual)
		return instead(refusal, "use cpu-clock%s, or QEMU -cpu host,pmu=on", machine);
	return instead(refusal, "use cpu-clock%s; dmesg says why after 'Performance Events:'", machine);
}

static int no_bts(struct host *host, struct refusal *refusal)
{
	if (kernel_pti(host)) {
		because(refusal, "there is no PMU 'intel_bts': page-table isolation (PTI) is on, and the "
				 "kernel has BTS only without it");
		return instead(refusal, "use the LBR; or boot with nopti, which opens Meltdown again");
	}
	if (strcmp(host->cpu.vendor, "GenuineIntel")) {
		because(refusal,
			"there is no PMU 'intel_bts': only Intel's CPUs have a branch trace store, and this "
			"one is of %s",
			host->cpu.vendor);
		return instead(refusal, "run it on a CPU of Intel's, or with --machine on an emulated one");
	}
	because(refusal, "there is no PMU 'intel_bts': this %s no branch trace store",
		host->virtual ? "virtual machine has" : "CPU, or this kernel, has");
	return instead(refusal,
		       host->virtual ? "run it on the host itself, or with --machine on an emulated Nehalem"
				     : "use the LBR, if there is one");
}

static int no_rapl(struct host *host, struct refusal *refusal)
{
	if (host->events) {
		because(refusal, "there is no PMU 'power': this CPU has no energy counters (RAPL), which "
				 "came with Sandy Bridge");
		return instead(refusal, "measure the power supply");
	}
	because(refusal, "there is no PMU 'power': this CPU has no energy counters, or the kernel has no "
			 "driver for them");
	return instead(refusal, "modprobe rapl");
}

/* PMUs whose driver may be a module. */
static const struct driver {
	const char *pmu;
	const char *config, *module;
	const char *of; /* to what it belongs */
} drivers[] = {
	{"uncore", "CONFIG_PERF_EVENTS_INTEL_UNCORE", "intel-uncore", "the uncore"},
	{"cstate_core", "CONFIG_PERF_EVENTS_INTEL_CSTATE", "intel-cstate", "the cores' C-states"},
	{"cstate_pkg", "CONFIG_PERF_EVENTS_INTEL_CSTATE", "intel-cstate", "the package's C-states"},
};

static int no_driver(struct host *host, const struct driver *driver, struct refusal *refusal)
{
	char built = kernel_config(host, driver->config);

	if (built == 'n') {
		because(refusal, "there is no PMU '%s': this kernel was built without the driver of %s",
			driver->pmu, driver->of);
		return instead(refusal, "run a kernel with %s", driver->config);
	}
	if (built == 'y') {
		because(refusal, "there is no PMU '%s': the kernel's driver has not found %s", driver->pmu,
			driver->of);
		return instead(refusal, "run on the hardware itself, if this is a virtual machine");
	}
	because(refusal, "there is no PMU '%s': the driver of %s is not loaded, or has not found it",
		driver->pmu, driver->of);
	return instead(refusal, "modprobe %s", driver->module);
}

int kernel_lacks_pmu(struct host *host, const char *name, struct refusal *refusal)
{
	static const struct {
		const char *pmu;
		int (*explain)(struct host *host, struct refusal *refusal);
	} known[] = {{"cpu", no_core}, {"intel_bts", no_bts}, {"power", no_rapl}};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].pmu, name))
			return known[i].explain(host, refusal);
	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
		if (!strcmp(drivers[i].pmu, name))
			return no_driver(host, &drivers[i], refusal);
	because(refusal, "this machine has no PMU '%s' in /sys/bus/event_source/devices", name);
	return instead(refusal, "see that folder for their names");
}
