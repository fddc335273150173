/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel writes into the registers of the core's PMU for an event: a pure function of the
 * perf_event_attr and the CPU's table. Names and meanings of the bits are the guide's (its Tables 4,
 * 5, 8-10, 12, 14, 17 and 19); which value they get is the kernel's choice, by the functions of
 * Linux 6.1 that registers.c names.
 */
#ifndef NHMTAP_EVENT_REGISTERS_H
#define NHMTAP_EVENT_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/perf_event.h>

#include "event/encoding.h"

/* Bits of a register that the guide gives one name. Texts are constant. */
struct register_field {
	const char *name;    /* "EVTMSK" */
	const char *meaning; /* of this value */
	int low, high;	     /* bits, both included */
	__u64 value;
};

#define REGISTER_FIELDS 40

struct register_value {
	const char *name; /* "IA32_PERFEVTSELx" */
	__u32 msr;	  /* its address */
	/* Which counter x an event gets is known only when it runs. It is added to the address, or
	 * shifts value, mask and fields to the left; what stands here is counter 0's. */
	enum { COUNTER_NOWHERE, COUNTER_IN_ADDRESS, COUNTER_IN_BITS } counter;
	__u64 value;
	__u64 mask;  /* the bits that this event decides; others belong to other events */
	__u32 rdpmc; /* the number by which RDPMC reads its count; 0: none, or not known */
	struct register_field fields[REGISTER_FIELDS]; /* those in the mask, from the lowest */
	size_t nr_fields;
};

#define REGISTERS_MAX 8

struct registers {
	__u32 counters;	   /* bit i: general counter i, by the kernel's rules */
	int fixed_counter; /* the kernel takes this one if it is free; -1: none */
	bool refused;	   /* precise, and by the kernel's rules it can't be: then there is no list */
	struct register_value list[REGISTERS_MAX];
	size_t nr;
};

/* Fills in registers. cpu->kernel must not be NULL. */
void registers_of(const struct perf_event_attr *attr, const struct host *host,
		  const struct encoding *encoding, struct registers *registers);

/* Whether the LBR records branches while the event runs: because of branch_sample_type, or because
 * precise_ip 2 steps back with its help. */
bool event_uses_lbr(const struct perf_event_attr *attr);

#endif
