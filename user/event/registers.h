/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The values that the kernel writes into the registers of the core's PMU for an event: a pure function of the
 * perf_event_attr and the CPU's table. The names and meanings of the bits are from the guide (its Tables 4,
 * 5, 8-10, 12, 14, 17 and 19). Their values are the kernel's choice, by the functions of Linux 6.1 that
 * registers.c names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/perf_event.h>

#include "event/encoding.h"

/* A bit field of a register, as the guide names it. Texts are constant. */
struct register_field {
	const char *name;    /* "EVTMSK" */
	const char *meaning; /* of this value */
	int low, high;	     /* first and last bit, both inclusive */
	__u64 value;
};

#define REGISTER_FIELDS 40

struct register_value {
	const char *name; /* "IA32_PERFEVTSELx" */
	__u32 msr;	  /* its address */
	/* The number of the counter (the x in names) is known only at run time. It is either added to the
	 * address, or value, mask and fields are shifted left by it; these members are those of counter 0. */
	enum { COUNTER_NOWHERE, COUNTER_IN_ADDRESS, COUNTER_IN_BITS } counter;
	__u64 value;
	__u64 mask;  /* the bits that this event sets; other bits belong to other events */
	__u32 rdpmc; /* the argument of RDPMC to read the count; 0: none, or not known */
	struct register_field fields[REGISTER_FIELDS]; /* the fields within the mask, by ascending bit */
	size_t nr_fields;
};

#define REGISTERS_MAX 8

struct registers {
	__u32 counters;	   /* the general counters that the kernel allows: bit i is counter i */
	int fixed_counter; /* the fixed counter that the kernel uses if it is free; -1: none */
	bool refused;	   /* a precise event that the kernel's rules refuse; then `list` is empty */
	struct register_value list[REGISTERS_MAX];
	size_t nr;
};

/* Fills in `registers`. cpu->kernel must not be NULL. */
void registers_of(const struct perf_event_attr *attr, const struct host *host,
		  const struct encoding *encoding, struct registers *registers);

/* Whether the LBR records branches while the event runs: either branch_sample_type asks for it, or precise_ip
 * is 2 and uses the LBR to find the precise instruction. */
bool event_uses_lbr(const struct perf_event_attr *attr);
