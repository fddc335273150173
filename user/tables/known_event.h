/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tables in events/ know about a CPU, as events/compile.c writes it into C.
 * Everything here is constant data: nothing is owned, nothing is to be freed.
 */
#ifndef NHMTAP_KNOWN_EVENT_H
#define NHMTAP_KNOWN_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

/* One event of a CPU by name. */
struct known_event {
	const char *name;	 /* Intel's spelling: "INST_RETIRED.ANY_P" */
	const char *description; /* one line, ours */
	const char *topic;	 /* the table it stands in: "cache", "pipeline", … */
	/* As perf_event_attr.config has it (guide, IA32_PERFEVTSELx): event 0-7, umask 8-15,
	 * edge 18, any 21, inv 23, cmask 24-31. */
	__u64 config;
	__u64 config1;	      /* the load-latency threshold, else 0 */
	__u64 default_period; /* occurrences between two samples, from the table's source */
	__u32 counters;	      /* bit i: general counter i can count it, by the table */
	__s8 fixed_counter;   /* 0-2 where a fixed counter counts it, else -1 */
	__u8 precise;	      /* PEBS, by the table: 0 never, 1 can, 2 only so */
	__s8 architectural;   /* the bit of CPUID.0AH:EBX that says that it is missing, else -1 */
	const char *errata;   /* "AAJ80", or NULL */
	const char *source;   /* what the row is taken from */
};

/* Another spelling of a name: the guide's, libpfm4's. */
struct known_alias {
	const char *name;   /* "MEM_LOAD_RETIRED.LOAD_HIT_L2_MLC" */
	const char *of;	    /* the name it stands for: "MEM_LOAD_RETIRED.L2_HIT" */
	const char *source; /* who spells it so: "guide" */
};

/* What a bit of an off-core register is about. */
enum offcore_kind {
	OFFCORE_REMOTE = 1,	   /* another package answered */
	OFFCORE_PARTLY_REMOTE = 2, /* another package or this one: the bit does not say which */
	OFFCORE_HITM = 4,	   /* a cache that had modified the line answered */
	OFFCORE_PREFETCH = 8,
	OFFCORE_NO_LINE = 16, /* no line is moved, or not always */
	/* Where a CPU has both, a response counts by one of each (SDM 18.9.5), or by a bit that is neither.
	 */
	OFFCORE_SUPPLIER = 32, /* who had the line */
	OFFCORE_SNOOP = 64,    /* what came of asking others for it */
};

/* OFFCORE_RESPONSE.REQUEST.RESPONSE is a register, a request and a response: config is the
 * register's, config1 the request's bits and the response's. Zero of either counts nothing. */
struct known_offcore {
	const struct offcore_register {
		const char *name; /* "OFFCORE_RESPONSE" */
		__u64 config;	  /* 0x01b7 */
		__u32 msr;	  /* 0x1a6 */
		__u32 counters;	  /* as in struct known_event */
	} * registers;
	size_t nr_registers;
	const struct offcore_part {
		const char *name;	 /* "DEMAND_DATA_RD" */
		const char *description; /* one line, ours */
		__u64 bits;		 /* several in a composite */
		__u8 kinds;		 /* of a single bit: enum offcore_kind */
	} * requests, *responses;	 /* single bits first, from the lowest; then the composites */
	size_t nr_requests, nr_responses;
	const struct offcore_preset {
		const char *name;		  /* "numa" */
		const char *requests, *responses; /* "LOCAL_DRAM,REMOTE_DRAM" */
	} * presets;				  /* of nhmtap offcore; the first is its default */
	size_t nr_presets;
	const struct known_alias *aliases; /* of registers, requests and responses; sorted */
	size_t nr_aliases;
	__u64 reserved; /* bits that the hardware of this CPU does not support */
	/* An event that others have for a second register: here it counts without any request or response. */
	__u64 ignored; /* 0: none */
	const char *ignored_source;
	__u64 default_period;
	const char *source;
};

/* Where a load got its data from: a code of the PEBS load-latency record. */
struct known_data_source {
	__u8 code;		 /* 0-15, the record's */
	bool reserved;		 /* the guide gives it no meaning on this CPU */
	const char *name;	 /* "l3_hitm" */
	const char *description; /* one line, ours */
	__u64 perf_data_src;	 /* the perf_mem_data_src.val that the kernel makes of it, its fields
				  * of TLB, lock and blk being 0 */
	const char *perf;	 /* that in words; "L3 HITM" */
};

/* A kind of branches that the LBR can be limited to, or can't on this CPU. */
struct known_branch_kind {
	const char *filter; /* perf's word: "any_call" */
	__u32 records; /* bits of LBR_SELECT that the kernel leaves clear for it; 0: there is no such kind */
	const char *note;		   /* what else comes, or NULL */
	const char *why, *source, *remedy; /* where records is 0 */
};

/* What the kernel's driver accepts on a CPU, which is not all that the tables say the hardware can.
 * A rule holds for an event if (config & mask) == rule.config; the first one that holds counts. */
struct known_kernel {
	const struct kernel_rule {
		__u64 mask, config;
		__u32 counters;	    /* bit i: general counter i */
		__s8 fixed_counter; /* or this one, if not -1 */
		bool exclusive;	    /* with two threads a core, halves what each of them may use */
	} * precise;		    /* may have precise_ip > 0; where no rule holds, it is EINVAL; without any
				     * rule nothing is known of it */
	size_t nr_precise;
	const struct kernel_rule *placed; /* where it may count; where no rule holds, any general one */
	size_t nr_placed;
	/* What it counts for perf's generic names, PERF_TYPE_HARDWARE and PERF_TYPE_HW_CACHE. */
	const struct known_generic {
		const char *name;      /* "LLC-load-misses", as names.h knows it */
		__u64 config, config1; /* of a raw event that counts the same */
		const char *note;      /* when it is otherwise, or NULL */
	} * generic;
	size_t nr_generic;
	const struct known_erratum {
		const char *name;	 /* "AAJ80", as struct known_event has it */
		const char *description; /* what goes wrong, and what the kernel does about it */
		bool all_events;	 /* of every event, not of some */
	} * errata;
	size_t nr_errata;
	__u64 lowest_period;  /* a sample_period below is EINVAL */
	bool access_bits;     /* PEBS records tell TLB misses and locked accesses */
	bool own_registers;   /* threads of a core share no off-core register, threshold or branch filter */
	__u64 precise_cycles; /* what is counted for precise cycles, which have no PEBS */
	const char *record;   /* what a PEBS record holds, in words; NULL: not known */
	/* Microcode that PEBS works with, by model and stepping; of others the driver keeps it off. */
	const struct known_microcode {
		__u32 model, stepping, revision; /* this one or a later one */
	} * microcode;
	size_t nr_microcode;
	const char *source;
};

/* What has one of a unit's counters. */
enum unit_scope { UNIT_THREAD, UNIT_CORE, UNIT_PACKAGE };

/* A number that has a name: a register's address, "MSR_EMON_L3_CTR_CTL0"; a value of a field, "hitm". */
struct unit_number {
	const char *name;
	__u64 value;
};

/* Bits of a selection with ESCRs (SDM volume 3B, figures of ESCR and CCCR): the event's number and its mask
 * in the ESCR's half; the select of an ESCR and two bits that have to be set in the CCCR's. */
#define ESCR_EVENT	      57
#define ESCR_MASK	      41
#define ESCR_MASKS	      (0xffffULL << ESCR_MASK)
#define ESCR_VALUE(selection) ((__u32)((selection) >> 32))
#define CCCR_VALUE(selection) ((__u32)(selection))
#define CCCR_ENABLE	      (1U << 12)
#define CCCR_SELECT	      13
#define CCCR_ALWAYS	      (3U << 16)
#define CCCR_EXTENDED	      (1U << 11) /* cascades after counter 16 or 17 */
#define CCCR_CASCADE	      (1U << 30) /* cascades after any other */
#define CCCR_OVERFLOW	      (1U << 31)

/* Counters that Linux has no driver for, or a wrong one: they are programmed and read through /dev/cpu/N/msr.
 * They are of one of two forms.
 *
 * With a control: a counter's register has its count in its lowest bits and above it what it counts, nothing
 * while that is 0, and each kind of events has counters of its own.
 *
 * With ESCRs (NetBurst): a counter has two registers, for its count and for its configuration (CCCR), which
 * names an ESCR that selects what it counts. An event's selection is the ESCR's value in the upper 32 bits
 * and the CCCR's in the lower. Any kind has the counters that its ESCRs reach. */
struct known_unit {
	const char *name; /* "l3bus" */
	const char *description;
	const char *source;
	__u8 scope;	   /* enum unit_scope */
	__u32 count_bits;  /* of a count, which wraps; from the lowest on */
	__u32 wraps_in_ms; /* it can't wrap in less time */
	__u32 rdpmc;	   /* the first counter's number for RDPMC, the others' follow; 0: it reads none */
	/* The register that switches all counters at once: the bits of its commands, and the first of those
	 * that stand for a counter each, in the order of the kinds and their counters. NULL: ESCRs. */
	const char *control;
	__u32 control_msr;
	__u8 freeze, unfreeze, reset, select, status;
	/* With ESCRs: all counters, the terms that any event takes, and the registers of replay metrics. */
	const struct unit_counter {
		const char *name, *cccr; /* "MSR_IQ_COUNTER0", "MSR_IQ_CCCR0" */
		__u32 msr, cccr_msr;
		/* The counters whose overflow starts it, if it cascades. */
		const struct unit_start {
			__u8 counter;
			const char *by; /* the flag at CCCR_EXTENDED's place; NULL: CCCR_CASCADE */
		} * after;
		size_t nr_after;
		const char *unusable; /* why it never counts, or NULL */
	} * counters;
	size_t nr_counters;
	const struct unit_field *fields;
	size_t nr_fields;
	const struct unit_number *replay;
	size_t nr_replay;
	const struct unit_kind {
		const char *name; /* "gbsq" */
		const char *description;
		__u64 always; /* bits that are set whatever is selected */
		const struct unit_number *counters;
		size_t nr_counters;
		const struct unit_field {
			const char *name;  /* of the term: "snoop" */
			const char *title; /* "Snoop_Match" */
			const char *description;
			__u8 low, high;
			const char *usual;     /* the value's name where there is no such term; NULL: 0 */
			const char *usual_smt; /* the same where a core has two threads; NULL: usual */
			__u64 sets;	       /* bits that the term sets besides */
			const struct unit_number *values;
			size_t nr_values;
		} * fields; /* with ESCRs: those of the event mask, one of which has to be set */
		size_t nr_fields;
		const struct unit_escr {
			const char *name; /* "MSR_CRU_ESCR0" */
			__u32 msr;
			__u32 counters; /* bit i: counter i of the unit can count by it */
		} * escrs;
		size_t nr_escrs;
		/* What marks the micro-operations that are replayed: values of the unit's `replay`. */
		const struct unit_metric {
			const char *name; /* "l1_load_miss" */
			const char *description;
			__u64 enable, matrix;
		} * metrics;
		size_t nr_metrics;
	} * kinds;
	size_t nr_kinds;
};

/* Sources that disagree, and whom the tables follow. */
struct known_contradiction {
	const char *id; /* "offcore-rsp-1" */
	const char *subject;
	/* The events concerned; an offcore register stands for all its responses, and what is no
	 * event at all was left out on purpose. */
	const char *const *names;
	size_t nr_names;
	const struct source_claim {
		const char *source; /* a key of known_sources */
		const char *claim;
	} * says;
	size_t nr_says;
	const char *we_do;
	const char *why;
};

/* A number derived from events. */
struct known_metric {
	const char *name;    /* "ipc" */
	const char *formula; /* event names, numbers, + - * / and ( ); the value is in the unit */
	const char *unit;
	const char *description;
	const char *source;
};

/* Metrics of perf's own events, which no CPU's table describes: for every machine that has them. */
extern const struct known_metric generic_metrics[];
extern const size_t nr_generic_metrics;

/* Where the guide to a CPU's PMU describes a facility. */
struct known_section {
	const char *facility; /* of nhmtap doctor: "mem" */
	const char *number;   /* "3.7" */
};

/* One CPU: which processors it is and what it counts. Inheritance is already resolved. */
struct cpu_events {
	const char *name;    /* "nehalem-ep" */
	const char *title;   /* "Intel Nehalem-EP" */
	const char *vendor;  /* CPUID's, "GenuineIntel" */
	const char *libpfm4; /* its name for this CPU: "nhm"; NULL: none */
	const struct cpu_model {
		__u32 family, model; /* display family and model (CPUID.1) */
	} * models;
	size_t nr_models; /* 0: of any CPU that no other table is of; CPUID then has the numbers below */
	bool third_level_cache; /* only those processors of these models that have one, by CPUID.04H */
	__u32 perfmon;		/* the version of architectural performance monitoring */
	const struct known_section *guide; /* none: there is no guide to its PMU */
	size_t nr_guide;
	__u32 branch_depth; /* how many branches the LBR holds; 0: not known */
	__u32 general_counters, fixed_counters;
	__u32 general_counters_smt; /* of each of two threads of a core, where that is fewer; else 0 */
	const char *loads, *stores; /* events that count each one that retires once; NULL: not known */
	__u64 precise_store; /* code and umask of the event whose records have a store's address; 0: none */
	__u64 load_latency;  /* code and umask of the event with a threshold; 0: there is none */
	__u32 latency_least, latency_most; /* what the threshold may be, in core cycles */
	const char *latency_source;
	__u32 cmask_most; /* the rest of the field is reserved; 0: nothing is */
	const char *cmask_source;
	/* Sorted by name, without regard to case, as strcasecmp does; the aliases too. None: nothing is
	 * known of the core's counters, but of those of units. */
	const struct known_event *events;
	size_t nr_events;
	const struct known_alias *aliases;
	size_t nr_aliases;
	const struct known_offcore *offcore;	      /* NULL where the CPU has none */
	const struct known_kernel *kernel;	      /* NULL where nothing is known of it */
	const struct known_data_source *data_sources; /* by code */
	size_t nr_data_sources;
	const struct known_branch_kind *branches; /* none: nothing is known of them */
	size_t nr_branches;
	const struct known_unit *units;
	size_t nr_units;
	const struct known_contradiction *contradictions;
	size_t nr_contradictions;
	const struct known_metric *metrics; /* in the table's order: the common ones first */
	size_t nr_metrics;
};

/* A document that the tables quote. */
struct known_source {
	const char *key;   /* "guide" */
	const char *title; /* with edition or version */
};

/* Every CPU that events/ has a folder for; written by events/compile.c. */
extern const struct cpu_events known_cpus[];
extern const size_t nr_known_cpus;

extern const struct known_source known_sources[];
extern const size_t nr_known_sources;

/* The largest value of a field. */
static inline __u64 unit_field_most(const struct unit_field *field)
{
	return ~0ULL >> (63 - (field->high - field->low));
}

#endif
