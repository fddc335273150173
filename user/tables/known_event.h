/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tables in events/ say about a CPU, in the form in which events/compile.c writes it as C. All of it
 * is constant data: nothing is owned, nothing must be freed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

/* One event of a CPU by name. */
struct known_event {
	const char *name;	 /* Intel's spelling: "INST_RETIRED.ANY_P" */
	const char *description; /* one line, ours */
	const char *topic;	 /* the table that it is in: "cache", "pipeline", … */
	/* In the format of perf_event_attr.config (guide, IA32_PERFEVTSELx): event 0-7, umask 8-15, edge 18,
	 * any 21, inv 23, cmask 24-31. */
	__u64 config;
	__u64 config1;	      /* the load-latency threshold, else 0 */
	__u64 default_period; /* occurrences between two samples, from the table's source */
	__u32 counters;	      /* bit i: general counter i can count it, by the table */
	__s8 fixed_counter;   /* the fixed counter that counts it, 0-2; -1 if there is none */
	__u8 precise;	      /* PEBS, by the table: 0 never, 1 possible, 2 the event counts only with PEBS */
	__s8 architectural;   /* the bit of CPUID.0AH:EBX that is set if it is missing; -1 if there is none */
	/* The bits of the umask that the name is about; the others have the event's usual value. 0: it is
	 * about the whole umask. */
	__u8 umask_field;
	const char *errata; /* "AAJ80", or NULL */
	const char *source; /* where the row is from */
};

/* Another spelling of a name, by the guide or libpfm4. */
struct known_alias {
	const char *name;   /* "MEM_LOAD_RETIRED.LOAD_HIT_L2_MLC" */
	const char *of;	    /* the name it stands for: "MEM_LOAD_RETIRED.L2_HIT" */
	const char *source; /* who uses this spelling: "guide" */
};

/* What a bit of an off-core register means. */
enum offcore_kind {
	OFFCORE_REMOTE = 1,	   /* another package answered */
	OFFCORE_PARTLY_REMOTE = 2, /* another package or this one answered; the bit does not tell which */
	OFFCORE_HITM = 4,	   /* a cache that had modified the line answered */
	OFFCORE_PREFETCH = 8,
	OFFCORE_NO_LINE = 16, /* no cache line is transferred, or not in every case */
	/* On a CPU that has both, a response is counted if a bit of each is set (SDM 18.9.5), or by a bit
	 * that is neither. */
	OFFCORE_SUPPLIER = 32, /* who had the line */
	OFFCORE_SNOOP = 64,    /* the result of asking other caches for it */
};

/* OFFCORE_RESPONSE.REQUEST.RESPONSE consists of a register, a request and a response. config is that of the
 * register; config1 has the bits of the request and of the response. If either has no bits, nothing is
 * counted. */
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
		__u64 bits;		 /* a composite has several */
		__u8 kinds;		 /* flags of enum offcore_kind; for single bits only */
	} * requests, *responses;	 /* single bits first, in ascending order; then the composites */
	size_t nr_requests, nr_responses;
	const struct offcore_preset {
		const char *name;		  /* "numa" */
		const char *requests, *responses; /* "LOCAL_DRAM,REMOTE_DRAM" */
	} * presets; /* selections for nhmtap offcore; the first is its default */
	size_t nr_presets;
	const struct known_alias *aliases; /* of registers, requests and responses; sorted */
	size_t nr_aliases;
	__u64 reserved; /* bits that this CPU's hardware does not support */
	/* The event that other CPUs have for a second register. On this CPU it counts regardless of requests
	 * and responses. */
	__u64 ignored; /* 0: none */
	const char *ignored_source;
	__u64 default_period;
	const char *source;
};

/* Where a load got its data from, by the code in a PEBS load-latency record. */
struct known_data_source {
	__u8 code;		 /* the code in the record, 0-15 */
	bool reserved;		 /* the guide assigns it no meaning on this CPU */
	const char *name;	 /* "l3_hitm" */
	const char *description; /* one line, ours */
	__u64 perf_data_src;	 /* the kernel's perf_mem_data_src.val for it; TLB, lock and blk are 0 */
	const char *perf;	 /* the same in words: "L3 HITM" */
};

/* A kind of branches to which the LBR can be limited, or can't on this CPU. */
struct known_branch_kind {
	const char *filter; /* perf's word: "any_call" */
	__u32 records;	  /* bits of LBR_SELECT that the kernel clears for it; 0: this CPU has no such kind */
	const char *note; /* what else is recorded, or NULL */
	const char *why, *source, *remedy; /* only if `records` is 0 */
};

/* What the kernel's driver accepts on a CPU. The hardware may be able to do more, according to the tables. A
 * rule matches an event if (config & mask) == rule.config; the first rule that matches applies. */
struct known_kernel {
	const struct kernel_rule {
		__u64 mask, config;
		__u32 counters;	    /* bit i: general counter i */
		__s8 fixed_counter; /* the fixed counter that is allowed as well; -1: none */
		bool exclusive;	    /* if cores have two threads, each may use only half of its counters */
		bool several;	    /* precise: an instruction may cause several at once */
	} * precise;		    /* for precise_ip > 0: EINVAL if none matches. Empty: nothing is known */
	size_t nr_precise;
	const struct kernel_rule *placed; /* counters that may be used; if no rule matches, any general one */
	size_t nr_placed;
	/* What the kernel counts for perf's generic events, PERF_TYPE_HARDWARE and PERF_TYPE_HW_CACHE. */
	const struct known_generic {
		const char *name;      /* "LLC-load-misses", in the spelling of names.h */
		__u64 config, config1; /* of the raw event that counts the same */
		const char *note;      /* when the kernel chooses otherwise, or NULL */
	} * generic;
	size_t nr_generic;
	const struct known_erratum {
		const char *name;	 /* "AAJ80", in the spelling of struct known_event */
		const char *description; /* what goes wrong, and what the kernel does about it */
		bool all_events;	 /* applies to every event */
	} * errata;
	size_t nr_errata;
	__u64 lowest_period;  /* a lower sample_period is EINVAL */
	__u64 beyond_period;  /* events that a PEBS record takes beyond its sample_period; 0: no PEBS */
	bool access_bits;     /* PEBS records show TLB misses and locked accesses */
	bool own_registers;   /* each thread has its own off-core registers, threshold and branch filter */
	__u64 precise_cycles; /* the config that the kernel counts for precise cycles, which have no PEBS */
	const char *record;   /* the content of a PEBS record, in words; NULL: not known */
	/* Microcode revisions with which PEBS works, by model and stepping. With other models and steppings
	 * the driver disables PEBS. */
	const struct known_microcode {
		__u32 model, stepping, revision; /* the least revision */
	} * microcode;
	size_t nr_microcode;
	const char *source;
};

/* The part of the machine that has its own set of a unit's counters. */
enum unit_scope { UNIT_THREAD, UNIT_CORE, UNIT_PACKAGE };

/* A number with a name: the address of a register, "MSR_EMON_L3_CTR_CTL0", or a value of a field, "hitm". */
struct unit_number {
	const char *name;
	__u64 value;
};

/* Bits of an event's selection with ESCRs (SDM volume 3B, figures of ESCR and CCCR). The upper half, for the
 * ESCR, has the event's number and its mask. The lower half, for the CCCR, has the number of the ESCR and two
 * bits that must be set. */
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

/*
 * Counters for which Linux has no driver, or a wrong one. They are programmed and read through
 * /dev/cpu/N/msr. There are two forms.
 *
 * With a control: the register of a counter has the count in its lowest bits. The bits above select what is
 * counted; 0 stops the counter. Each kind of events has counters of its own.
 *
 * With ESCRs (NetBurst): a counter has two registers, one for the count and one for the configuration (CCCR).
 * The CCCR names an ESCR, which selects what is counted. An event's selection has the value of the ESCR in
 * its upper 32 bits and that of the CCCR in its lower 32. A kind can use the counters that its ESCRs reach.
 */
struct known_unit {
	const char *name; /* "l3bus" */
	const char *description;
	const char *source;
	__u8 scope;	   /* enum unit_scope */
	__u32 count_bits;  /* width of a count, from bit 0 on; it wraps */
	__u32 wraps_in_ms; /* the least time in which it can wrap */
	__u32 rdpmc;	   /* RDPMC's argument for the first counter, ascending; 0: RDPMC can't read them */
	/* The register that controls all counters; NULL: the unit has ESCRs. The numbers of its command bits,
	 * and those of the first bits of `select` and `status`, which have a bit per counter, in the order of
	 * the kinds and their counters. */
	const char *control;
	__u32 control_msr;
	__u8 freeze, unfreeze, reset, select, status;
	/* With ESCRs: all counters, the fields that any event has, and the registers of replay metrics. */
	const struct unit_counter {
		const char *name, *cccr; /* "MSR_IQ_COUNTER0", "MSR_IQ_CCCR0" */
		__u32 msr, cccr_msr;
		/* Counters whose overflow starts this one, if it cascades. */
		const struct unit_start {
			__u8 counter;
			const char *by; /* name of the flag if it is CCCR_EXTENDED; NULL: CCCR_CASCADE */
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
		__u64 always; /* bits that are always set */
		const struct unit_number *counters;
		size_t nr_counters;
		const struct unit_field {
			const char *name;  /* as in a term: "snoop" */
			const char *title; /* "Snoop_Match" */
			const char *description;
			__u8 low, high;
			const char *usual;     /* name of the default value; NULL: 0 */
			const char *usual_smt; /* the same if cores have two threads; NULL: as `usual` */
			__u64 sets;	       /* other bits that the term sets */
			const struct unit_number *values;
			size_t nr_values;
		} * fields; /* with ESCRs: those of the event mask, at least one of which must be set */
		size_t nr_fields;
		const struct unit_escr {
			const char *name; /* "MSR_CRU_ESCR0" */
			__u32 msr;
			__u32 counters; /* bit i: counter i of the unit can use this ESCR */
		} * escrs;
		size_t nr_escrs;
		/* How to tag micro-operations that are replayed: values for the unit's `replay` registers. */
		const struct unit_metric {
			const char *name; /* "l1_load_miss" */
			const char *description;
			__u64 enable, matrix;
		} * metrics;
		size_t nr_metrics;
	} * kinds;
	size_t nr_kinds;
};

/* A disagreement between sources, and which one the tables follow. */
struct known_contradiction {
	const char *id; /* "offcore-rsp-1" */
	const char *subject;
	/* The events concerned. An off-core register stands for all its responses. A name that is not an
	 * event was left out of the table on purpose. */
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

/* A number computed from events. */
struct known_metric {
	const char *name;    /* "ipc" */
	const char *formula; /* event names, numbers, + - * / and ( ); its result is in `unit` */
	const char *unit;
	__u32 most; /* no value is more: a share of what it is a part of; 0: any may be */
	const char *description;
	const char *source;
};

/* A part of where a core's cycles go: of a tree, in which each has its parts below it. */
struct known_share {
	const char *name;	 /* "l3_bound" */
	const char *parent;	 /* NULL: the whole, of which all others are shares; the table has one */
	const char *description; /* what it is: "Loads that the third-level cache served" */
	const char *formula;	 /* as a metric's; NULL: it is the sum of its parts */
	/* Cycles of one occurrence of what the formula counts; all 1 if it counts cycles. */
	__u32 cost_low, cost, cost_high;
	bool estimated;	     /* it has a cost, so that it may overlap its like, and be hidden by others */
	bool explained;	     /* its parts are estimated, and what they leave is to be told */
	bool beside;	     /* it overlaps other shares and is added to none */
	bool unmodelled;     /* the emulated machine does not count one of its events */
	bool of_time;	     /* the part of the time in which nothing ran; it has no formula */
	bool in_latency;     /* the measured latency of a load has it too */
	const char *sources; /* where its loads were served, separated by ','; NULL: not told by samples */
	const char *meaning; /* of a large share, and what helps; NULL: none */
	const char *locate;  /* the command and options that find its code; NULL: none */
	const char *source;
};

/* Counts that must agree; otherwise no model of the core allows them. */
struct known_identity {
	const char *name;
	const char *left, *right; /* formulas as a metric's */
	__u32 percent;		  /* how far both may differ */
	bool left_may_be_more;	  /* only a right side that is more contradicts the left one */
	const char *withdraws;	  /* the shares that depend on them, separated by ',' */
	const char *source;
};

/* Metrics over perf's own events, which are in no CPU's table: for any machine that has these events. */
extern const struct known_metric generic_metrics[];
extern const size_t nr_generic_metrics;

/* The section of the guide to a CPU's PMU that describes a facility. */
struct known_section {
	const char *facility; /* as named by nhmtap doctor: "mem" */
	const char *number;   /* "3.7" */
};

/* One CPU: which processors it covers, and what they count. Inheritance is already resolved. */
struct cpu_events {
	const char *name;    /* "nehalem-ep" */
	const char *title;   /* "Intel Nehalem-EP" */
	const char *vendor;  /* by CPUID: "GenuineIntel" */
	const char *libpfm4; /* libpfm4's name for this CPU: "nhm"; NULL: none */
	const struct known_processor {
		const char *pattern; /* of names that it is sold under, as by fnmatch(3): "X55??" */
	} * processors;
	size_t nr_processors;
	const struct cpu_model {
		__u32 family, model; /* display family and model (CPUID.1) */
	} * models;
	size_t nr_models;	/* 0: any CPU that no other table covers; CPUID then has the numbers below */
	bool third_level_cache; /* only processors of these models that have one, by CPUID.04H */
	__u32 perfmon;		/* the version of architectural performance monitoring */
	const struct known_section *guide; /* empty: there is no guide to its PMU */
	size_t nr_guide;
	__u32 branch_depth; /* number of branches that the LBR holds; 0: not known */
	__u32 general_counters, fixed_counters;
	__u32 general_counters_smt; /* per thread if a core has two and the number is smaller; else 0 */
	const char *loads, *stores; /* events that count every retired load or store once; NULL: not known */
	__u64 precise_store; /* event (code, umask) whose PEBS records have a store's address; 0: none */
	__u64 load_latency;  /* event (code, umask) with a latency threshold; 0: none */
	__u32 latency_least, latency_most; /* range of the threshold, in core cycles */
	const char *latency_source;
	__u32 cmask_most; /* the largest cmask, if the field is wider than that; 0: as wide as the field */
	const char *cmask_source;
	/* Sorted by name, ignoring case, as by strcasecmp(3); so are the aliases. Empty: nothing is known of
	 * the core's counters, only of units. */
	const struct known_event *events;
	size_t nr_events;
	const struct known_alias *aliases;
	size_t nr_aliases;
	const struct known_offcore *offcore;	      /* NULL if the CPU has none */
	const struct known_kernel *kernel;	      /* NULL if nothing is known */
	const struct known_data_source *data_sources; /* in the order of their codes */
	size_t nr_data_sources;
	const struct known_branch_kind *branches; /* empty: nothing is known of them */
	size_t nr_branches;
	const struct known_unit *units;
	size_t nr_units;
	const struct known_contradiction *contradictions;
	size_t nr_contradictions;
	const struct known_metric *metrics; /* in the order of the table: common ones first */
	size_t nr_metrics;
	/* The tree of shares, in the order of the table, and what must agree. Empty: there is none. */
	const struct known_share *shares;
	size_t nr_shares;
	const struct known_identity *identities;
	size_t nr_identities;
};

/* A document that the tables quote. */
struct known_source {
	const char *key;   /* "guide" */
	const char *title; /* with edition or version */
};

/* All CPUs that have a folder in events/; written by events/compile.c. */
extern const struct cpu_events known_cpus[];
extern const size_t nr_known_cpus;

extern const struct known_source known_sources[];
extern const size_t nr_known_sources;

/* The largest value of a field. */
static inline __u64 unit_field_most(const struct unit_field *field)
{
	return ~0ULL >> (63 - (field->high - field->low));
}
