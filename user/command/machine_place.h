/* SPDX-License-Identifier: GPL-2.0-only */
/* The emulated machine: where its driver and what was built of it are, and what it can be. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <linux/types.h>

#include "base/arguments.h"
#include "base/refusal.h"

#define MACHINE_PATH 2200

struct machine_place {
	char folder[MACHINE_PATH]; /* that of its driver, `run` */
	char built[MACHINE_PATH];  /* that of the emulator and its kernels; it need not exist */
};

/* What a machine is to be. 0 and NULL: the driver's default. */
struct machine_kind {
	const char *model, *kernel;
	const char *date; /* of its clock at boot */
	const char *vary; /* the number that decides about addresses, random numbers and pids */
	__u64 packages, cores, threads, memory;
	__u64 ips; /* instructions in a second of its clock, whatever they cost; 0: the processor's own clock
		    */
	bool no_snapshot; /* boot it, and keep nothing of it */
	char *text;	  /* the copy of machine_read_kind() that the above point into, or NULL */
};

#define MACHINE_CORES_MOST    16
#define MACHINE_THREADS_MOST  2
#define MACHINE_PACKAGES_MOST 2
#define MACHINE_MEMORY_LEAST  128
#define MACHINE_MEMORY_MOST   65536
#define MACHINE_IPS_LEAST     10000000 /* slower, and the kernel's own ticks take most of the time */
#define MACHINE_IPS_MOST      4294967295

/* Reads "[MODEL][,NAME=VALUE]…", what --machine=… says. The caller frees kind->text, also after a refusal.
 * Returns 0, or -1 with the refusal. */
int machine_read_kind(const char *text, struct machine_kind *kind, struct refusal *refusal);

/* Refuses a model that there is not, with the nearest names. `option` is the option that named it. Returns 0,
 * or -1 with the refusal. */
int machine_check_model(const char *option, const char *model, struct refusal *refusal);

/* Refuses what the machine can't be, besides its model. Returns 0, or -1 with the refusal. */
int machine_check_kind(const struct machine_kind *kind, const struct machine_place *place,
		       struct refusal *refusal);

/* Finds the driver: in the folder $NHMTAP_MACHINE, or relative to the executable, in the source tree or below
 * the prefix. Returns 0, or -1 with the refusal. */
int machine_find(struct machine_place *place, struct refusal *refusal);

/* Whether the emulator is built. Otherwise refuses what was `asked`. Returns 0, or -1 with the refusal. */
int machine_check_built(const struct machine_place *place, const char *asked, struct refusal *refusal);

/* Prints the models, the kernels, and the events that a model counts, by default (NULL) the first one. */
void machine_print(const struct machine_place *place, const char *model, FILE *out);

/* Begins the driver's command line for a command that runs as if it ran here; what follows "--" is COMMAND.
 */
void driver_line_begin(struct arguments *line);
void driver_line_add_kind(struct arguments *line, const struct machine_kind *kind);

/* Replaces this process by the driver. Returns only if that fails: -1 with the refusal. */
int machine_execute(const struct machine_place *place, const struct arguments *line, struct refusal *refusal);
