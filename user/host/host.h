/* SPDX-License-Identifier: GPL-2.0-only */
/* Facts about the machine. They are gathered once, from files below a root folder, so that a test can provide
 * another machine's. Plans depend on these facts alone. */
#ifndef NHMTAP_HOST_H
#define NHMTAP_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/capability.h>
#include <linux/types.h>

#include "cpus.h"
#include "tables/known_event.h"
#include "tables/tables.h"
#include "host/cgroups.h"
#include "host/processes.h"
#include "refusal.h"
#include "tables/pmu_events.h"

/* One bit field of a PMU's config words: sysfs-bus-event_source-devices-format. */
struct pmu_format {
	char name[32];
	int word;   /* 0: config, 1: config1, 2: config2 */
	__u64 bits; /* the bits of that word, in the order in which the value fills them */
};

/* A name that the PMU's driver gives to some terms: …/events/NAME. */
struct pmu_alias {
	char name[64];
	char terms[192]; /* "event=0x0b,umask=0x10,ldlat=3" */
	char unit[32];	 /* "Joules", "" if none */
	double scale;	 /* of one count, 1 if none */
};

struct pmu {
	char name[64];
	__u32 type;
	int mux_interval_ms; /* perf_event_mux_interval_ms; -1 if not known */
	struct cpus cpus;    /* its cpumask: CPUs that count for all; empty if every CPU counts */
	bool sideless;	     /* rejects exclude_user, exclude_kernel and the like (PERF_PMU_CAP_NO_EXCLUDE) */
	int max_precise;     /* caps/max_precise; -1 if the driver does not say */
	int branches; /* caps/branches: how many the last branch record holds; -1 where there is no such file
		       */
	struct pmu_format *formats;
	size_t nr_formats;
	struct pmu_alias *aliases;
	size_t nr_aliases;
	const struct known_unit *unit; /* unit of the CPU's table, if Linux has no driver; else NULL */
	struct pmu *next;
};

#define PARANOID_ALL 3 /* from this level on, Debian's own, everything requires CAP_SYS_ADMIN */

struct host {
	char root[256];
	char name[65];	  /* host.name */
	char release[65]; /* the kernel's */
	char version[65]; /* what it is made of: "6.1.192", where Debian's release says 6.1.0-49-amd64 */
	char machine[65]; /* "x86_64" */
	char boot_id[40]; /* random for each boot; "" if not known */
	struct {
		char vendor[16];
		char model_name[64];
		__u32 family, model, stepping;
		__u32 microcode; /* its revision; 0 where the kernel does not say */
	} cpu;
	const struct cpu_events *events; /* table of this CPU's core; NULL if there is none */
	const struct cpu_events *units;	 /* table of the units for --msr, mostly the same; or NULL */
	struct cpu_events *numbered; /* the architecture's, with this CPU's numbers of counters; or NULL */
	__u32 events_missing; /* architectural ones, by CPUID.0AH:EBX; 0 if the CPU is only looked up */
	bool pretended;	      /* the CPU is only looked up: host_pretend_cpu() */
	struct tables tables; /* tables from a folder; without one only the built-in metrics */

	struct pmu_events pmu_events; /* names from perf's own files, if they were asked for */

	struct cpus online, possible;
	struct cgroups *cgroups; /* their paths by id */
	char cgroup_mount[256];	 /* where cgroup2 is mounted, "" if nowhere */
	char cgroup_v1[256];	 /* the hierarchy of version 1 that has perf events, "" if none has */
	struct cpus nodes;	 /* NUMA nodes that are online; empty where the kernel knows none */
	int perf_event_paranoid; /* INT_MIN where there is no such file: no perf_event_open at all */
	long max_stack;		 /* frames; perf_event_max_stack */
	long max_sample_rate;	 /* Hz; perf_event_max_sample_rate */
	__u64 capabilities;	 /* effective capabilities that the kernel honours, one bit each */
	bool user_namespace;	 /* not the initial user namespace: none are honoured */
	__u64 held_there;	 /* the effective capabilities within that namespace */
	bool virtual;		 /* the processor says that a hypervisor runs it: /proc/cpuinfo */
	int seccomp;		 /* mode of this process: 0 off, 1 strict, 2 filter */
	bool perf_filtered;	 /* perf_event_open(2) itself is refused: see trial_perf_filtered() */
	bool cycles_tried;	 /* trial_cycles() was called, so that the next member is valid */
	int cycles_precise;	 /* highest precise_ip that the kernel accepts for cycles; -1: none */
	char lockdown[32];	 /* "none", "integrity", "confidentiality", "" if not built in */
	bool btf;		 /* the kernel describes its types */
	struct pid_namespace pid_namespace; /* this process's */
	bool proc_foreign;		    /* /proc is another pid namespace's */
	__u32 uid;			    /* effective */
	__u64 descriptor_limit;		    /* RLIMIT_NOFILE, hard */
	__u64 locked_memory_limit;	    /* RLIMIT_MEMLOCK in bytes, RLIM_INFINITY if there is none */
	char container_id[65];		    /* from this process's cgroup, "" outside a container */

	struct pmu *pmus; /* those that were asked for so far */
	char *config;	  /* the kernel's build configuration, once it was asked for: kernel_config() */
};

/*
 * Gathers the facts from below root ("" for this machine). Returns 0, or -errno if a fact that
 * nothing can do without is not there (the list of CPUs). The host owns what it points to, up to
 * host_release(), which may also be called on a zeroed one.
 */
int host_gather(struct host *host, const char *root);
void host_release(struct host *host);

/* Adds tables of CPUs from a folder to those that are built in; NULL: there is none. Returns 0, or -1
 * with the refusal. */
int host_add_tables(struct host *host, const char *folder, struct refusal *refusal);

/* Adds the events that perf's own files have for this CPU; NULL: none. Returns 0, or -1 with the refusal. */
int host_add_pmu_events(struct host *host, const char *path, struct refusal *refusal);

/*
 * Puts another CPU in the place of the machine's: its table, and a core PMU with the formats that the
 * kernel's driver for it has. What this process may do here says nothing about a machine that is not
 * there, so it may do everything. Returns 0, or -1 with the refusal: no table has this name.
 */
int host_pretend_cpu(struct host *host, const char *name, struct refusal *refusal);

/* The type of the first PMU that Linux has no driver for; those after it count on. The kernel numbers its own
 * from 0. */
#define PMU_TYPE_UNITS 0x4d535200

/* The PMU of this name, read from sysfs when first asked for, or else from the CPU's table; NULL if the
 * machine has none. The host keeps it. */
const struct pmu *host_pmu(struct host *host, const char *name);

/* Reads all PMUs of sysfs, so that host->pmus has them. */
void host_read_pmus(struct host *host);

/* The PMU that counts the core's own events; NULL on a machine without hardware counters. */
const struct pmu *host_core_pmu(struct host *host);

/* Topology of a CPU, from sysfs-devices-system-cpu, for online CPUs. Each is -1 if the kernel does not say.
 * Core numbers are unique in their package only; a package is what goes into a socket. */
struct topology {
	int core, socket, node;
};
struct topology host_topology(const struct host *host, int cpu);

/* Whether two CPUs are of the same thread, core or package. */
bool host_shares(const struct host *host, enum unit_scope scope, int cpu, int other);

/* The other hardware thread of a CPU's core, or -1 (topology/thread_siblings_list). */
int host_sibling(const struct host *host, int cpu);

/* Whether the cores have two threads; not those of a CPU that is only looked up. */
bool host_two_threads(const struct host *host);

/* Whether the effective capabilities hold CAP_… (or CAP_SYS_ADMIN, which the kernel takes for
 * CAP_PERFMON and CAP_BPF: capability.h, perfmon_capable() and bpf_capable()). */
bool host_capable(const struct host *host, int capability);

/* Whether perf_event_open may look at the kernel's side: perf_allow_kernel(), perf_event.h. */
bool host_may_count_kernel(const struct host *host);

#endif
