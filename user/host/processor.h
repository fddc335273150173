/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The processor's identification: CPUID and the two MSRs that describe its PMU. Sources: the guide, 3.1.1,
 * 4.1 to 4.3; SDM volume 2A, CPUID; volume 4 for the MSRs' bits.
 */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#include "host/host.h"

struct cpuid {
	__u32 eax, ebx, ecx, edx;
};

/* CPUID.1:EAX, the guide's table "Nehalem CPUID Processor Signatures". */
struct signature {
	__u32 value; /* the whole register: 0x106a5 */
	__u32 stepping, model, family, type, extended_model, extended_family;
};

/* CPUID.0AH, the guide's table "CPUID.A Information". */
struct perfmon {
	__u32 version;		/* 0: no architectural performance monitoring */
	__u32 general_counters; /* per logical CPU */
	__u32 general_width;	/* bits */
	__u32 events;		/* length of the vector below */
	__u32 events_missing;	/* bit i: architectural event i is missing */
	__u32 fixed_counters;
	__u32 fixed_width; /* bits */
};

/* The architectural events, by their bits in CPUID.0AH:EBX. */
#define PERFMON_EVENTS 7
extern const char *const perfmon_event_names[PERFMON_EVENTS];

/* A model-specific register, and the result of reading it on CPU 0. */
struct msr {
	const char *name;
	__u32 address;
	int error; /* errno of opening or reading it; ENODEV: missing, by CPUID; 0: value is valid */
	__u64 value;
	const struct msr_field {
		const char *name;
		int low, width; /* bits */
		const char *meaning;
	} * fields;
	int nr_fields;
};

enum { MSR_PERF_CAPABILITIES, MSR_MISC_ENABLE, NR_MSRS };

struct processor {
	bool cpuid;	    /* the machine has CPUID (it is x86), and the following members are valid */
	struct cpuid basic; /* leaf 1 */
	struct signature signature;
	bool architectural; /* leaf 0AH exists */
	struct perfmon perfmon;
	char hypervisor[13]; /* the name it reports (leaf 4000_0000H), "unknown", or "" if there is none */
	struct msr msrs[NR_MSRS];
};

/* Bits of leaf 1 that concern the PMU. */
#define CPUID_DTES64(basic)	((basic).ecx >> 2 & 1)	/* the debug store has 64-bit records */
#define CPUID_PDCM(basic)	((basic).ecx >> 15 & 1) /* IA32_PERF_CAPABILITIES exists */
#define CPUID_HYPERVISOR(basic) ((basic).ecx >> 31 & 1)
#define CPUID_DS(basic)		((basic).edx >> 21 & 1) /* debug store: PEBS and BTS */

/*
 * Reads CPUID and the registers. On this machine the CPUID instruction is used. Below a root, CPUID is read
 * from the file `cpuid`, in the format of `cpuid -r` ("0x0000000a 0x00: eax=0x07300403 …"). Registers are
 * read from /dev/cpu/0/msr, relative to the root.
 */
void processor_gather(struct processor *processor, const struct host *host);

/* Reads only CPUID.0AH, from the same place. Returns whether it exists. */
bool processor_perfmon(const struct host *host, struct perfmon *perfmon);

/* Whether this is the emulated machine, by CPUID, from the same place: both texts are empty if it is not. */
void processor_emulated(const struct host *host, struct emulated *emulated);

/* Whether the emulated machine models anything of an event. Sets `modelled` to the bits of its umask that
 * count. One too old to tell is taken to model it. */
bool processor_models(const struct host *host, __u32 code, __u32 umask, __u32 *modelled);

/* Whether CPUID.04H, from the same place, reports a third-level cache. */
bool processor_third_level_cache(const struct host *host);

/* Pure decoders of single registers. */
struct signature signature_of(__u32 eax);
struct perfmon perfmon_of(const struct cpuid *leaf);
__u64 msr_field_value(const struct msr *msr, const struct msr_field *field);
