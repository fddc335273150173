// SPDX-License-Identifier: GPL-2.0-only
#include "host/host.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>
#include <linux/perf_event.h>

#include "base/alternatives.h"
#include "base/array.h"
#include "base/copied.h"
#include "base/memory.h"
#include "host/cgroup_owner.h"
#include "host/cgroups.h"
#include "host/files.h"
#include "host/privileges.h"
#include "host/processor.h"
#include "shared.h"

static void read_processor(struct host *host)
{
	char text[8192], value[128], flags[4096];

	if (slurp(host, text, sizeof(text), "/proc/cpuinfo") <= 0)
		return;
	if (line_value(text, "vendor_id", value, sizeof(value)))
		snprintf(host->cpu.vendor, sizeof(host->cpu.vendor), "%.15s", value);
	if (line_value(text, "model name", value, sizeof(value)))
		snprintf(host->cpu.model_name, sizeof(host->cpu.model_name), "%.63s", value);
	if (line_value(text, "cpu family", value, sizeof(value)))
		host->cpu.family = strtoul(value, NULL, 10);
	if (line_value(text, "model", value, sizeof(value)))
		host->cpu.model = strtoul(value, NULL, 10);
	if (line_value(text, "stepping", value, sizeof(value)))
		host->cpu.stepping = strtoul(value, NULL, 10);
	if (line_value(text, "microcode", value, sizeof(value)))
		host->cpu.microcode = strtoul(value, NULL, 0);
	if (line_value(text, "flags", flags, sizeof(flags)))
		host->virtual = strstr(flags, " hypervisor");
}

static bool is_of(const struct host *host, const struct cpu_events *cpu)
{
	if (strcmp(cpu->vendor, host->cpu.vendor))
		return false;
	for (size_t m = 0; m < cpu->nr_models; m++)
		if (cpu->models[m].family == host->cpu.family && cpu->models[m].model == host->cpu.model)
			return !cpu->third_level_cache || processor_third_level_cache(host);
	return false;
}

/* The table for this processor. Of two tables of the same model, the one that requires a third-level cache is
 * used if the processor has one. */
static const struct cpu_events *table_among(const struct host *host, const struct cpu_events *cpus, size_t nr)
{
	const struct cpu_events *found = NULL;

	for (size_t i = 0; i < nr; i++)
		if ((!found || cpus[i].third_level_cache) && is_of(host, &cpus[i]))
			found = &cpus[i];
	return found;
}

static void take_table(struct host *host, const struct cpu_events *cpu)
{
	host->events = cpu && cpu->nr_events ? cpu : NULL;
	host->units = cpu && cpu->nr_units ? cpu : NULL;
}

/* A CPU without a table has the architectural events, if there are any, and CPUID gives the numbers of
 * counters. For versions 2 to 4 the kernel assumes at least three fixed counters, except under a hypervisor
 * (intel_pmu_init(), intel/core.c). */
static void take_architecture(struct host *host, const struct cpu_events *cpus, size_t nr)
{
	struct perfmon perfmon;
	__u32 assumed;

	for (size_t i = 0; i < nr; i++) {
		if (cpus[i].nr_models || strcmp(cpus[i].vendor, host->cpu.vendor) ||
		    !processor_perfmon(host, &perfmon) || !perfmon.version || !perfmon.general_counters)
			continue;
		assumed = perfmon.version > 1 && perfmon.version < 5 && !host->virtual ? 3 : 0;
		free(host->numbered);
		host->numbered = xmalloc(sizeof(*host->numbered));
		*host->numbered = cpus[i];
		host->numbered->perfmon = perfmon.version;
		host->numbered->general_counters = perfmon.general_counters;
		host->numbered->fixed_counters = perfmon.version < 2		    ? 0
						 : perfmon.fixed_counters < assumed ? assumed
										    : perfmon.fixed_counters;
		host->events = host->numbered;
	}
}

int host_add_tables(struct host *host, const char *folder, struct refusal *refusal)
{
	const struct cpu_events *own;

	if (!folder)
		return 0;
	if (tables_load(&host->tables, folder, refusal))
		return -1;
	own = table_among(host, host->tables.cpus, host->tables.nr_cpus);
	if (own)
		take_table(host, own);
	if (!host->events)
		host->events = host->numbered;
	if (host->events == host->numbered)
		take_architecture(host, host->tables.cpus, host->tables.nr_cpus);
	return 0;
}

int host_add_pmu_events(struct host *host, const char *path, struct refusal *refusal)
{
	char cpuid[64];

	if (!path)
		return 0;
	snprintf(cpuid, sizeof(cpuid), "%s-%u-%X-%X", host->cpu.vendor, host->cpu.family, host->cpu.model,
		 host->cpu.stepping);
	return pmu_events_read(&host->pmu_events, path, cpuid, refusal);
}

#define INITIAL_USERS 0xeffffffdU /* PROC_USER_INIT_INO, include/linux/proc_ns.h */

/* Whether nhmtap is not in the initial user namespace. perf_event_open(2), bpf(2) and other things that it
 * needs require capabilities there: capable(), kernel/capability.c. A test's root has a uid_map instead of
 * the namespace's number. */
static bool in_user_namespace(const struct host *host)
{
	struct stat stat_of;
	char text[200];
	unsigned int inside, outside, length;

	if (!host->root[0])
		return !stat("/proc/self/ns/user", &stat_of) && stat_of.st_ino != INITIAL_USERS;
	return slurp(host, text, sizeof(text), "/proc/self/uid_map") > 0 &&
	       sscanf(text, "%u %u %u", &inside, &outside, &length) == 3 && length != ~0U;
}

static void read_privileges(struct host *host)
{
	char text[4096], value[64];
	struct rlimit limit = {0};

	host->uid = geteuid();
	host->pid_namespace = pid_namespace();
	host->proc_foreign = !proc_is_ours();
	getrlimit(RLIMIT_NOFILE, &limit);
	host->descriptor_limit = limit.rlim_max;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	host->locked_memory_limit = limit.rlim_cur;
	if (slurp(host, text, sizeof(text), "/proc/self/status") > 0) {
		if (line_value(text, "CapEff", value, sizeof(value)))
			host->capabilities = host->root[0] ? strtoull(value, NULL, 16) : privileges_held();
		host->user_namespace = in_user_namespace(host);
		if (host->user_namespace) {
			host->held_there = host->capabilities;
			host->capabilities = 0;
		}
		host->no_new_privs =
			host->uid && line_value(text, "NoNewPrivs", value, sizeof(value)) && atoi(value);
		if (line_value(text, "Seccomp", value, sizeof(value)))
			host->seccomp = atoi(value);
	}
	/* The active one of "none [integrity] confidentiality" is in brackets. */
	if (slurp(host, text, sizeof(text), "/sys/kernel/security/lockdown") > 0) {
		char *open = strchr(text, '[');

		if (open)
			snprintf(host->lockdown, sizeof(host->lockdown), "%.*s", (int)strcspn(open + 1, "]"),
				 open + 1);
	}
}

/* Whether a list separated by ',' contains a word. */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
	return false;
}

/* Spaces, tabs, newlines and backslashes of a mount's folder are written in octal: getmntent(3). */
static void unescape(char *folder)
{
	unsigned int character;
	char *to = folder;

	for (const char *at = folder; *at; to++)
		if (sscanf(at, "\\%3o", &character) == 1) {
			*to = character;
			at += 4;
		} else {
			*to = *at++;
		}
	*to = '\0';
}

/* Of several mounts, the one that shows most is used. */
static int what_it_shows(const char *folder)
{
	struct statfs about;

	if (statfs(folder, &about) || about.f_type != CGROUP2_SUPER_MAGIC)
		return 1; /* it is covered by another mount */
	return cgroups_is_whole(folder) ? 3 : 2;
}

/* By proc(5), the fields of a mount are device, folder, type, options, … */
static void read_cgroup_mounts(struct host *host)
{
	char path[PATH_MAX], folder[256], type[32], options[512], *line = NULL;
	int most = 0, shows;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/self/mounts", host->root);
	file = fopen(path, "re");
	while (file && getline(&line, &size, file) > 0) {
		if (sscanf(line, "%*s %255s %31s %511s", folder, type, options) != 3)
			continue;
		unescape(folder);
		shows = strcmp(type, "cgroup2") ? 0 : host->root[0] ? 1 : what_it_shows(folder);
		if (shows > most) {
			most = shows;
			memcpy(host->cgroup_mount, folder, sizeof(folder));
		}
		if (!strcmp(type, "cgroup") && has_word(options, "perf_event"))
			memcpy(host->cgroup_v1, folder, sizeof(folder));
		if (!strcmp(type, "cgroup") && has_word(options, "memory"))
			memcpy(host->memory_v1, folder, sizeof(folder));
	}
	free(line);
	if (file)
		fclose(file);
}

/* The least limit on the way from a cgroup to the root. `path` is cut. A file that can't be read or has "max"
 * sets none. */
static __u64 least_limit(const struct host *host, const char *mount, const char *limit, char *path)
{
	char file[PATH_MAX], *slash;
	__u64 least = 0;
	long here;

	do {
		snprintf(file, sizeof(file), "%s%s/%s", mount, path, limit);
		here = slurp_number(host, file, 0);
		if (here > 0 && (!least || (__u64)here < least))
			least = here;
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
	return least;
}

/* What the cgroups tell that this process is in: its container, and the limit of its memory. By cgroups(7), a
 * line is NUMBER:CONTROLLERS:PATH, and that of version 2 names no controllers. */
static void read_own_cgroups(struct host *host)
{
	bool first = host->memory_v1[0];
	char text[4096], *rest = text, *line;

	if (slurp(host, text, sizeof(text), "/proc/self/cgroup") <= 0)
		return;
	while ((line = strsep(&rest, "\n"))) {
		const char *controllers;

		if (!host->container_id[0])
			strcpy(host->container_id, cgroup_owner(line).container_id);
		strsep(&line, ":");
		controllers = strsep(&line, ":");
		if (!line || (first ? !has_word(controllers, "memory") : *controllers))
			continue;
		host->memory_limit = first ? least_limit(host, host->memory_v1, "memory.limit_in_bytes", line)
					   : least_limit(host, host->cgroup_mount, "memory.max", line);
	}
}

/* The release of a Debian kernel does not tell the version it is built from; the text in
 * /proc/sys/kernel/version does. */
static void read_version(struct host *host)
{
	static const char debian[] = "Debian ";
	char text[256];
	const char *at;

	snprintf(host->version, sizeof(host->version), "%s", host->release);
	at = slurp(host, text, sizeof(text), "/proc/sys/kernel/version") > 0 ? strstr(text, debian) : NULL;
	if (at && at[sizeof(debian) - 1] >= '0' && at[sizeof(debian) - 1] <= '9')
		snprintf(host->version, sizeof(host->version), "%.*s",
			 (int)strcspn(at + sizeof(debian) - 1, " -~+"), at + sizeof(debian) - 1);
}

static void see_name(struct host *host)
{
	struct utsname names;

	if (!uname(&names))
		snprintf(host->name, sizeof(host->name), "%s", names.nodename);
}

static void see_nodes(struct host *host)
{
	char text[4096];
	struct cpus nodes;

	if (slurp(host, text, sizeof(text), "/sys/devices/system/node/online") >= 0 &&
	    !cpus_parse(text, &nodes))
		host->nodes = nodes;
}

static void see_sysctls(struct host *host)
{
	host->perf_event_paranoid = slurp_number(host, "/proc/sys/kernel/perf_event_paranoid", INT_MIN);
	host->max_sample_rate = slurp_number(host, "/proc/sys/kernel/perf_event_max_sample_rate", LONG_MAX);
	host->max_stack = slurp_number(host, "/proc/sys/kernel/perf_event_max_stack", LONG_MAX);
}

/* Whether files below a --host-root can be read without waiting for a server that is silent. */
static bool answers(const char *root)
{
	char path[PATH_MAX];
	int fd;

	if (!*root)
		return true;
	snprintf(path, sizeof(path), "%s/proc/cpuinfo", root);
	fd = copied_open(path, ~0ULL, COPIED_WAIT_NS);
	if (fd < 0)
		return errno != ETIMEDOUT;
	close(fd);
	return true;
}

int host_gather(struct host *host, const char *root)
{
	char text[4096];
	struct utsname names;
	struct perfmon perfmon;
	int err;

	*host = (struct host){0};
	snprintf(host->root, sizeof(host->root), "%s", root);
	if (!answers(root))
		return -ETIMEDOUT;

	see_name(host);
	uname(&names);
	/* The kernel below another root may be another machine's. */
	if (!*root || slurp(host, host->release, sizeof(host->release), "/proc/sys/kernel/osrelease") <= 0)
		snprintf(host->release, sizeof(host->release), "%s", names.release);
	snprintf(host->machine, sizeof(host->machine), "%s", names.machine);
	read_version(host);
	slurp(host, host->boot_id, sizeof(host->boot_id), "/proc/sys/kernel/random/boot_id");
	read_processor(host);
	processor_emulated(host, &host->emulated);
	if (processor_perfmon(host, &perfmon))
		host->events_missing = perfmon.events_missing;
	take_table(host, table_among(host, known_cpus, nr_known_cpus));
	if (!host->events)
		take_architecture(host, known_cpus, nr_known_cpus);
	host->tables = (struct tables){.metrics = generic_metrics, .nr_metrics = nr_generic_metrics};

	err = slurp(host, text, sizeof(text), "/sys/devices/system/cpu/online");
	if (err < 0)
		return err;
	if (cpus_parse(text, &host->online))
		return -EINVAL;
	err = slurp(host, text, sizeof(text), "/sys/devices/system/cpu/possible");
	if (err < 0)
		return err;
	if (cpus_parse(text, &host->possible))
		return -EINVAL;
	see_nodes(host);
	see_sysctls(host);
	host->btf = slurp(host, text, sizeof(text), "/sys/kernel/btf/vmlinux") > 0;
	read_privileges(host);
	read_cgroup_mounts(host);
	read_own_cgroups(host);
	host->cgroups = cgroups_new(host->cgroup_mount);
	return 0;
}

static void free_pmus(struct pmu **pmus)
{
	while (*pmus) {
		struct pmu *pmu = *pmus;

		*pmus = pmu->next;
		free(pmu->formats);
		free(pmu->aliases);
		free(pmu);
	}
}

void host_release(struct host *host)
{
	cgroups_release(host->cgroups);
	host->cgroups = NULL;
	tables_release(&host->tables);
	pmu_events_release(&host->pmu_events);
	free(host->numbered);
	host->numbered = NULL;
	free_pmus(&host->pmus);
	free_pmus(&host->former);
	free(host->config);
	host->config = NULL;
}

/* Parses the bits of a format: "config1:0-15,32-47". */
static int format_parse(struct pmu_format *format, const char *text)
{
	const char *colon = strchr(text, ':');
	struct cpus bits; /* the notation is the same: numbers and ranges */

	if (!colon || strncmp(text, "config", 6))
		return -1;
	format->word = colon == text + 6 ? 0 : text[6] - '0';
	if (format->word < 0 || format->word > 2 || cpus_parse(colon + 1, &bits))
		return -1;
	format->bits = bits.bits[0];
	return 0;
}

/* Calls `add` for each file of a PMU's folder `folder`, with the file's text. */
static void each_file(const struct host *host, struct pmu *pmu, const char *folder,
		      void (*add)(const struct host *, struct pmu *, const char *name, const char *text))
{
	char path[PATH_MAX], text[256];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/bus/event_source/devices/%s/%s", host->root, pmu->name, folder);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' &&
		    slurp(host, text, sizeof(text), "/sys/bus/event_source/devices/%s/%s/%s", pmu->name,
			  folder, entry->d_name) > 0)
			add(host, pmu, entry->d_name, text);
	closedir(dir);
}

static void add_format(const struct host *host, struct pmu *pmu, const char *name, const char *text)
{
	struct pmu_format format = {0};

	if (format_parse(&format, text))
		return; /* a notation of later kernels: the term is then unknown, rather than misread */
	snprintf(format.name, sizeof(format.name), "%.31s", name);
	*xappend(pmu->formats, pmu->nr_formats) = format;
}

static void add_alias(const struct host *host, struct pmu *pmu, const char *name, const char *text)
{
	const char *folder = "/sys/bus/event_source/devices";
	struct pmu_alias alias = {.scale = 1};
	char scale[64];

	if (strchr(name, '.')) /* NAME.unit, NAME.scale, NAME.snapshot … describe NAME */
		return;
	snprintf(alias.name, sizeof(alias.name), "%.63s", name);
	snprintf(alias.terms, sizeof(alias.terms), "%.191s", text);
	slurp(host, alias.unit, sizeof(alias.unit), "%s/%s/events/%s.unit", folder, pmu->name, name);
	if (slurp(host, scale, sizeof(scale), "%s/%s/events/%s.scale", folder, pmu->name, name) > 0)
		alias.scale = strtod(scale, NULL);
	*xappend(pmu->aliases, pmu->nr_aliases) = alias;
}

bool host_shares(const struct host *host, enum unit_scope scope, int cpu, int other)
{
	struct topology a = host_topology(host, cpu), b = host_topology(host, other);

	if (cpu == other || scope == UNIT_THREAD)
		return cpu == other;
	return a.socket == b.socket && (scope == UNIT_PACKAGE || a.core == b.core);
}

/* A CPU for each part that has its own set of the unit's counters: the first of the part's CPUs that is
 * online. */
static struct cpus unit_cpus(const struct host *host, const struct known_unit *unit)
{
	struct cpus cpus = {0};

	for (int cpu = cpus_next(&host->online, 0); cpu >= 0; cpu = cpus_next(&host->online, cpu + 1)) {
		int other = cpus_next(&cpus, 0);

		while (other >= 0 && !host_shares(host, unit->scope, cpu, other))
			other = cpus_next(&cpus, other + 1);
		if (other < 0)
			cpus_add(&cpus, cpu);
	}
	return cpus;
}

static const struct pmu *unit_pmu(struct host *host, const char *name)
{
	const struct cpu_events *cpu = host->units;
	struct pmu *pmu;
	size_t i = 0;

	while (cpu && i < cpu->nr_units && strcmp(cpu->units[i].name, name))
		i++;
	if (!cpu || i == cpu->nr_units)
		return NULL;
	pmu = xcalloc(1, sizeof(*pmu));
	snprintf(pmu->name, sizeof(pmu->name), "%s", name);
	pmu->type = PMU_TYPE_UNITS + i;
	pmu->unit = &cpu->units[i];
	pmu->cpus = unit_cpus(host, pmu->unit);
	pmu->sideless = true;
	pmu->max_precise = pmu->branches = pmu->mux_interval_ms = -1;
	pmu->next = host->pmus;
	host->pmus = pmu;
	return pmu;
}

static long type_of_pmu(const struct host *host, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", name);
	return slurp_number(host, path, -1);
}

/* PMUs that are shared by CPUs have a mask of those that count for all. Returns whether this one has. */
static bool mask_of_pmu(const struct host *host, const char *name, struct cpus *cpus)
{
	char text[256];
	bool has = slurp(host, text, sizeof(text), "/sys/bus/event_source/devices/%s/cpumask", name) > 0;

	if (!has || cpus_parse(text, cpus))
		*cpus = (struct cpus){0};
	return has;
}

const struct pmu *host_pmu(struct host *host, const char *name)
{
	char path[128];
	struct pmu *pmu;
	long type;

	for (pmu = host->pmus; pmu; pmu = pmu->next)
		if (!strcmp(pmu->name, name))
			return pmu;
	if (strchr(name, '/') || name[0] == '.' || strlen(name) >= sizeof(pmu->name))
		return NULL;
	type = type_of_pmu(host, name);
	if (type < 0)
		return unit_pmu(host, name);

	pmu = xcalloc(1, sizeof(*pmu));
	snprintf(pmu->name, sizeof(pmu->name), "%s", name);
	pmu->type = type;
	/* None of these can exclude sides (PERF_PMU_CAP_NO_EXCLUDE), which sysfs does not show. `msr` has no
	 * mask. */
	pmu->sideless = mask_of_pmu(host, name, &pmu->cpus) || !strcmp(name, "msr");
	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/caps/max_precise", name);
	pmu->max_precise = slurp_number(host, path, -1);
	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/caps/branches", name);
	pmu->branches = slurp_number(host, path, -1);
	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/perf_event_mux_interval_ms", name);
	pmu->mux_interval_ms = slurp_number(host, path, -1);
	each_file(host, pmu, "format", add_format);
	each_file(host, pmu, "events", add_alias);
	pmu->next = host->pmus;
	host->pmus = pmu;
	return pmu;
}

static bool is_as_it_was(const struct host *host, const struct pmu *pmu)
{
	long type = type_of_pmu(host, pmu->name);
	struct cpus cpus;

	if (pmu->unit)
		cpus = unit_cpus(host, pmu->unit);
	else
		mask_of_pmu(host, pmu->name, &cpus);
	return (pmu->unit ? type < 0 : type == (long)pmu->type) && !memcmp(&cpus, &pmu->cpus, sizeof(cpus));
}

/* A driver that was unloaded and loaded has another type, and a CPU that goes offline is replaced in masks.
 * What is asked for again is read again. */
static void see_pmus(struct host *host)
{
	struct pmu **at = &host->pmus, *pmu;

	while ((pmu = *at)) {
		if (is_as_it_was(host, pmu)) {
			at = &pmu->next;
			continue;
		}
		*at = pmu->next;
		pmu->next = host->former;
		host->former = pmu;
	}
}

void host_see_again(struct host *host)
{
	char text[4096];
	struct cpus online;

	see_name(host);
	if (slurp(host, text, sizeof(text), "/sys/devices/system/cpu/online") >= 0 &&
	    !cpus_parse(text, &online))
		host->online = online;
	see_nodes(host);
	see_sysctls(host);
	see_pmus(host);
	if (host->cgroup_mount[0])
		return;
	read_cgroup_mounts(host);
	cgroups_see_mount(host->cgroups);
}

void host_read_pmus(struct host *host)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/bus/event_source/devices", host->root);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		host_pmu(host, entry->d_name);
	closedir(dir);
}

const struct pmu *host_core_pmu(struct host *host)
{
	/* Hybrid CPUs have no PMU "cpu". As in perf, that of the big cores is used instead. */
	const struct pmu *pmu = host_pmu(host, "cpu");

	return pmu ? pmu : host_pmu(host, "cpu_core");
}

bool pmu_has_event(const struct pmu *pmu, const char *name)
{
	for (size_t i = 0; i < pmu->nr_aliases; i++)
		if (!strcmp(pmu->aliases[i].name, name))
			return true;
	return false;
}

bool pmu_has_term(const struct pmu *pmu, const char *name)
{
	for (size_t i = 0; i < pmu->nr_formats; i++)
		if (!strcmp(pmu->formats[i].name, name))
			return true;
	return false;
}

#define USUAL_BRANCHES 16 /* if neither the driver nor a table gives it */

size_t host_branches(struct host *host)
{
	const struct pmu *pmu = host_core_pmu(host);
	int table = host->events ? host->events->branch_depth : 0;
	int depth = pmu && pmu->branches > 0 ? pmu->branches : table ? table : USUAL_BRANCHES;

	return depth < BRANCHES_MOST ? depth : BRANCHES_MOST;
}

/* intel_arch_formats_attr, intel_arch3_formats_attr and nhm_format_attr of arch/x86/events/intel/core.c. */
static void pretend_formats(struct pmu *pmu, const struct cpu_events *cpu)
{
	const struct {
		struct pmu_format format;
		bool there;
	} formats[] = {
		{{"event", 0, 0xff}, true},
		{{"umask", 0, 0xff00}, true},
		{{"edge", 0, 1 << 18}, true},
		{{"pc", 0, 1 << 19}, true},
		{{"any", 0, 1 << 21}, cpu->perfmon >= 3},
		{{"inv", 0, 1 << 23}, true},
		{{"cmask", 0, 0xff000000}, true},
		{{"offcore_rsp", 1, ~0ULL}, cpu->offcore},
		{{"ldlat", 1, 0xffff}, cpu->load_latency},
	};

	pmu->formats = xcalloc(ARRAY_SIZE(formats), sizeof(*pmu->formats));
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (formats[i].there)
			pmu->formats[pmu->nr_formats++] = formats[i].format;
}

/* Adds a driver's name of an event, as in nhm_mem_events_attrs and snb_mem_events_attrs. */
static void pretend_alias(struct pmu *pmu, const char *name, __u64 config, const char *terms)
{
	struct pmu_alias *alias = &pmu->aliases[pmu->nr_aliases++];

	*alias = (struct pmu_alias){.scale = 1};
	snprintf(alias->name, sizeof(alias->name), "%s", name);
	snprintf(alias->terms, sizeof(alias->terms), "event=%#llx,umask=%#llx%s", config & 0xff, config >> 8,
		 terms);
}

/* Makes the core PMU. If no table describes the CPU's core, it has no formats: perf's names and raw codes are
 * accepted. */
static void pretend_core_pmu(struct host *host)
{
	const struct cpu_events *cpu = host->events;
	struct pmu *pmu = xcalloc(1, sizeof(*pmu));

	snprintf(pmu->name, sizeof(pmu->name), "cpu");
	pmu->type = PERF_TYPE_RAW;
	pmu->next = host->pmus;
	host->pmus = pmu;
	if (!cpu)
		return;
	pmu->max_precise = cpu->kernel && cpu->kernel->nr_precise ? 2 : 0;
	pmu->branches = cpu->branch_depth;
	pretend_formats(pmu, cpu);
	pmu->aliases = xcalloc(2, sizeof(*pmu->aliases));
	if (cpu->load_latency)
		pretend_alias(pmu, "mem-loads", cpu->load_latency, ",ldlat=3");
	if (cpu->precise_store)
		pretend_alias(pmu, "mem-stores", cpu->precise_store, "");
}

static int refuse_cpu(const char *name, struct refusal *refusal)
{
	struct alternatives alternatives;

	alternatives_begin(&alternatives, name, strlen(name));
	for (size_t i = 0; i < nr_known_cpus; i++)
		alternatives_offer(&alternatives, known_cpus[i].name);
	refuse(refusal, STATUS_USAGE, "option --cpu '%s'", name);
	because(refusal, "there is no table of this CPU");
	return alternatives_end(&alternatives, refusal,
				"there are %s; a processor's own name works too: X5570", alternatives.all);
}

static bool is_sold_as(const struct cpu_events *cpu, const char *name)
{
	for (size_t i = 0; i < cpu->nr_processors; i++)
		if (!fnmatch(cpu->processors[i].pattern, name, FNM_CASEFOLD))
			return true;
	return false;
}

/* Whether one word of a name like "Intel(R) Xeon(R) CPU X5570 @ 2.93GHz" is a name of the CPU. Processors of
 * a later generation may differ only in a word of their own: "E5-2670 v2". */
static bool is_called(const struct cpu_events *cpu, const char *name)
{
	char words[128], *rest = words, *word;
	bool is = false;

	snprintf(words, sizeof(words), "%s", name);
	while ((word = strsep(&rest, " @"))) {
		if (!fnmatch("v[2-9]", word, FNM_CASEFOLD))
			return false;
		is |= is_sold_as(cpu, word);
	}
	return is;
}

static const struct cpu_events *named(const struct cpu_events *cpus, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcasecmp(cpus[i].name, name))
			return &cpus[i];
	for (size_t i = 0; i < nr; i++)
		if (is_called(&cpus[i], name))
			return &cpus[i];
	return NULL;
}

static void pretend(struct host *host, const struct cpu_events *cpu)
{
	take_table(host, cpu);
	host->events_missing = 0;
	host->pretended = true;
	snprintf(host->cpu.vendor, sizeof(host->cpu.vendor), "%.15s", cpu->vendor);
	snprintf(host->cpu.model_name, sizeof(host->cpu.model_name), "%.63s", cpu->title);
	host->cpu.family = cpu->nr_models ? cpu->models[0].family : 0;
	host->cpu.model = cpu->nr_models ? cpu->models[0].model : 0;
	host->cpu.stepping = 0;
	host->perf_event_paranoid = -1;
	host->max_sample_rate = 100000; /* the kernel's default: kernel/events/core.c */
	host->max_stack = 127;		/* likewise: PERF_MAX_STACK_DEPTH */
	pretend_core_pmu(host);
}

int host_pretend_cpu(struct host *host, const char *name, struct refusal *refusal)
{
	const struct cpu_events *cpu = named(host->tables.cpus, host->tables.nr_cpus, name);

	if (!cpu)
		cpu = named(known_cpus, nr_known_cpus, name);
	if (!cpu)
		return refuse_cpu(name, refusal);
	pretend(host, cpu);
	return 0;
}

/* Of two tables of a model, one that is of processors of this name is used, or one that any processor of the
 * model has. */
static const struct cpu_events *modelled(const struct cpu_events *cpus, size_t nr,
					 const struct processor_name *name)
{
	const struct cpu_events *found = NULL;

	for (size_t i = 0; i < nr; i++)
		for (size_t m = 0; m < cpus[i].nr_models && !strcmp(cpus[i].vendor, name->vendor); m++) {
			bool called = is_called(&cpus[i], name->model_name);

			if (cpus[i].models[m].family == name->family &&
			    cpus[i].models[m].model == name->model &&
			    (called || !cpus[i].third_level_cache) && (called || !found))
				found = &cpus[i];
		}
	return found;
}

bool host_pretend_processor(struct host *host, const struct processor_name *name)
{
	const struct cpu_events *cpu = modelled(host->tables.cpus, host->tables.nr_cpus, name);

	if (!cpu)
		cpu = modelled(known_cpus, nr_known_cpus, name);
	if (cpu)
		pretend(host, cpu);
	return cpu;
}

static int topology_number(const struct host *host, int cpu, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name);
	return slurp_number(host, path, -1);
}

struct topology host_topology(const struct host *host, int cpu)
{
	struct topology topology = {topology_number(host, cpu, "core_id"),
				    topology_number(host, cpu, "physical_package_id"), -1};
	struct cpus cpus;
	char text[1024];

	for (int node = cpus_next(&host->nodes, 0); node >= 0; node = cpus_next(&host->nodes, node + 1))
		if (slurp(host, text, sizeof(text), "/sys/devices/system/node/node%d/cpulist", node) > 0 &&
		    !cpus_parse(text, &cpus) && cpus_has(&cpus, cpu))
			topology.node = node;
	return topology;
}

int host_sibling(const struct host *host, int cpu)
{
	char text[64];
	struct cpus siblings;

	if (slurp(host, text, sizeof(text), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
		  cpu) <= 0 ||
	    cpus_parse(text, &siblings))
		return -1;
	for (int other = cpus_next(&siblings, 0); other >= 0; other = cpus_next(&siblings, other + 1))
		if (other != cpu)
			return other;
	return -1;
}

bool host_two_threads(const struct host *host)
{
	int first = cpus_next(&host->online, 0);

	return !host->pretended && first >= 0 && host_sibling(host, first) >= 0;
}

bool host_capable(const struct host *host, int capability)
{
	return host->capabilities >> capability & 1 || host->capabilities >> CAP_SYS_ADMIN & 1;
}

bool host_may_count_kernel(const struct host *host)
{
	return host->perf_event_paranoid <= 1 || host_capable(host, CAP_PERFMON);
}
