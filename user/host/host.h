/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Facts about the machine. They are gathered from files below a root folder, so that a test can provide
 * another machine's. Plans depend on these facts alone. What may change while a session goes on for months,
 * and when the session sees it:
 *
 * - host_see_again(), before an activity is planned at SIGHUP or tried again: the name, CPUs that are online,
 *   nodes, sysctls, types and masks of PMUs, a cgroup mount where there was none.
 * - activity/hotplug.c, at the kernel's notice: CPUs that go offline and online.
 * - naming/ksymbols.c, at the kernel's note: symbols of BPF programs and modules. naming/naming.c: those of
 *   modules also by /proc/modules, if an address is outside of the kernel.
 * - At the kernel's notes and notices: programs, mappings, threads, cgroups.
 * - naming/naming.c: a perf-PID.map that lacks an address and has changed.
 * - activity/life.c, at the end of an interval: a CLOCK_REALTIME that was set.
 * - Each time: mounts below files that are opened (base/local.h), tracepoints (host/tracepoints.c).
 * - Never, because they can't change while a process lives: processor, kernel, BTF, boot, container.
 * - Never, because a session keeps what it began with: capabilities, limits, lockdown, tables of events.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/capability.h>
#include <linux/types.h>

#include "base/cpus.h"
#include "base/refusal.h"
#include "host/cgroups.h"
#include "host/processes.h"
#include "tables/known_event.h"
#include "tables/pmu_events.h"
#include "tables/tables.h"

/* One bit field of a PMU's config words: sysfs-bus-event_source-devices-format. */
struct pmu_format {
	char name[32];
	int word;   /* 0: config, 1: config1, 2: config2 */
	__u64 bits; /* the bits of that word, in the order in which a value fills them */
};

/* A name that the PMU's driver gives to some terms: …/events/NAME. */
struct pmu_alias {
	char name[64];
	char terms[192]; /* "event=0x0b,umask=0x10,ldlat=3" */
	char unit[32];	 /* "Joules", "" if none */
	double scale;	 /* factor for a count, 1 if none */
};

struct pmu {
	char name[64];
	__u32 type;
	int mux_interval_ms; /* perf_event_mux_interval_ms; -1 if not known */
	struct cpus cpus;    /* its cpumask: CPUs that count for all; empty if every CPU counts */
	bool sideless;	     /* rejects exclude_user, exclude_kernel and the like (PERF_PMU_CAP_NO_EXCLUDE) */
	int max_precise;     /* caps/max_precise; -1 if the driver does not say */
	int branches; /* caps/branches: the size of the last branch record; -1 if there is no such file */
	struct pmu_format *formats;
	size_t nr_formats;
	struct pmu_alias *aliases;
	size_t nr_aliases;
	const struct known_unit *unit; /* unit of the CPU's table, if Linux has no driver; else NULL */
	struct pmu *next;
};

/* The emulated machine that this is, if it is one: nhmtap-machine(1). */
struct emulated {
	char model[17];	  /* "ep"; "": it is none */
	char version[17]; /* a checksum of its sources */
};

#define PARANOID_ALL 3 /* from this level on (it is Debian's) everything requires CAP_SYS_ADMIN */

struct host {
	char root[256];
	char name[65];	  /* host.name */
	char release[65]; /* the kernel's */
	char version[65]; /* its upstream version: "6.1.192", if Debian's release is 6.1.0-49-amd64 */
	char machine[65]; /* "x86_64" */
	char boot_id[40]; /* random for each boot; "" if not known */
	struct {
		char vendor[16];
		char model_name[64];
		__u32 family, model, stepping;
		__u32 microcode; /* its revision; 0 if the kernel does not tell */
	} cpu;
	struct emulated emulated;
	const struct cpu_events *events; /* table of this CPU's core; NULL if there is none */
	const struct cpu_events *units;	 /* table of the units for --msr, mostly the same; or NULL */
	struct cpu_events *numbered; /* architectural table with this CPU's numbers of counters; or NULL */
	__u32 events_missing; /* architectural ones, by CPUID.0AH:EBX; 0 if the CPU is only looked up */
	bool pretended;	      /* the CPU is only looked up: host_pretend_cpu() */
	struct tables tables; /* tables from a folder; without one only the built-in metrics */

	struct pmu_events pmu_events; /* names from perf's own files, if they were asked for */

	/* What a plan can't have, since it is held by other events of the session that the kernel schedules
	 * first: together_held(). In placement_find()'s form of `taken`. */
	unsigned long long counters_ahead;

	struct cpus online, possible;
	struct cgroups *cgroups; /* paths of cgroups by id */
	char cgroup_mount[256];	 /* where cgroup2 is mounted, "" if nowhere */
	char cgroup_v1[256];	 /* the version 1 hierarchy with perf_event, "" if there is none */
	struct cpus nodes;	 /* NUMA nodes that are online; empty if the kernel knows none */
	int perf_event_paranoid; /* INT_MIN if there is no such file: perf_event_open(2) is not available */
	long max_stack;		 /* frames; perf_event_max_stack */
	long max_sample_rate;	 /* Hz; perf_event_max_sample_rate */
	__u64 capabilities;	 /* effective capabilities that the kernel honours, one bit each */
	bool user_namespace;	 /* not the initial user namespace: none are honoured */
	__u64 held_there;	 /* the effective capabilities within that namespace */
	bool no_new_privs;  /* execve(2) gives this user no capabilities: PR_SET_NO_NEW_PRIVS, prctl(2) */
	bool virtual;	    /* the processor reports a hypervisor: /proc/cpuinfo */
	int seccomp;	    /* mode of this process: 0 off, 1 strict, 2 filter */
	bool perf_filtered; /* perf_event_open(2) itself is refused: see trial_perf_filtered() */
	bool cycles_tried;  /* trial_cycles() was called, so that the next member is valid */
	int cycles_precise; /* highest precise_ip that the kernel accepts for cycles; -1: none */
	char lockdown[32];  /* "none", "integrity", "confidentiality", "" if not built in */
	bool btf;	    /* the kernel describes its types */
	struct pid_namespace pid_namespace; /* this process's */
	bool proc_foreign;		    /* /proc belongs to another pid namespace */
	__u32 uid;			    /* effective */
	__u64 descriptor_limit;		    /* RLIMIT_NOFILE, hard */
	char memory_v1[256]; /* the version 1 hierarchy with the memory controller, "" if there is none */
	__u64 memory_limit;  /* of this process's cgroup or one above it, in bytes; 0 if there is none */
	__u64 locked_memory_limit; /* RLIMIT_MEMLOCK in bytes, RLIM_INFINITY if there is none */
	char container_id[65];	   /* from this process's cgroup, "" outside a container */

	struct pmu *pmus;   /* those that were asked for so far */
	struct pmu *former; /* those that have gone or changed: events that are counted refer to them */
	char *config;	    /* the kernel's build configuration, once it was asked for: kernel_config() */
};

/*
 * Gathers the facts, from files below `root` ("" for this machine). Returns 0, or -errno if an indispensable
 * fact (the list of CPUs) is missing. The host owns what it points to up to host_release(), which may also be
 * called on a zeroed one.
 */
int host_gather(struct host *host, const char *root);

/* Sees what may have changed since: see above. A cgroup file system that was mounted then stays the one that
 * is used, because paths below it are known. */
void host_see_again(struct host *host);
void host_release(struct host *host);

/* Adds tables of CPUs from a folder to the built-in ones. `folder` may be NULL. Returns 0, or -1 with the
 * refusal. */
int host_add_tables(struct host *host, const char *folder, struct refusal *refusal);

/* Adds the events for this CPU from perf's own files. `path` may be NULL. Returns 0, or -1 with the
 * refusal. */
int host_add_pmu_events(struct host *host, const char *path, struct refusal *refusal);

/*
 * Replaces the machine's CPU by another: its table, and a core PMU with the formats that the kernel's driver
 * has for it. What this process is permitted to do here does not apply to a machine that does not exist, so
 * everything is permitted. Returns 0, or -1 with the refusal if no table has this name.
 */
int host_pretend_cpu(struct host *host, const char *name, struct refusal *refusal);

/* How a start record names a processor. Texts are borrowed. */
struct processor_name {
	const char *vendor, *model_name;
	__u32 family, model;
};

/* As host_pretend_cpu(), by what a processor tells of itself. Returns false if there is no table of it. */
bool host_pretend_processor(struct host *host, const struct processor_name *name);

/* The type of the first PMU for which Linux has no driver; those of further ones follow. The kernel numbers
 * its own from 0. */
#define PMU_TYPE_UNITS 0x4d535200

/* The PMU of this name. It is read from sysfs when first asked for, or else made from the CPU's table. NULL
 * if the machine has none. The host owns it. */
const struct pmu *host_pmu(struct host *host, const char *name);

/* Reads all PMUs in sysfs into host->pmus. */
void host_read_pmus(struct host *host);

/* The PMU that counts the core's own events; NULL on a machine without hardware counters. */
const struct pmu *host_core_pmu(struct host *host);

/* Whether the PMU's driver has an event of this name, or a term. */
bool pmu_has_event(const struct pmu *pmu, const char *name);
bool pmu_has_term(const struct pmu *pmu, const char *name);

/* The number of branches that come with a sample, at most BRANCHES_MOST. */
size_t host_branches(struct host *host);

/* Topology of a CPU, from sysfs-devices-system-cpu. Only online CPUs have one. Each member is -1 if the
 * kernel does not tell. Core numbers are unique only within a package. A package is what goes into a
 * socket. */
struct topology {
	int core, socket, node;
};
struct topology host_topology(const struct host *host, int cpu);

/* Whether two CPUs are in the same thread, core or package. */
bool host_shares(const struct host *host, enum unit_scope scope, int cpu, int other);

/* The other hardware thread of a CPU's core, or -1 (topology/thread_siblings_list). */
int host_sibling(const struct host *host, int cpu);

/* Whether the cores have two threads. Returns false for a CPU that is only looked up. */
bool host_two_threads(const struct host *host);

/* Whether --machine is a way out where this machine lacks something: it is not the emulated machine itself.
 */
static inline bool host_may_be_emulated(const struct host *host)
{
	return !host->emulated.model[0] && !host->pretended;
}

/* Whether a capability is effective, or CAP_SYS_ADMIN, which the kernel accepts instead of CAP_PERFMON and
 * CAP_BPF (capability.h, perfmon_capable() and bpf_capable()). */
bool host_capable(const struct host *host, int capability);

/* Whether perf_event_open(2) may measure the kernel: perf_allow_kernel(), perf_event.h. */
bool host_may_count_kernel(const struct host *host);
