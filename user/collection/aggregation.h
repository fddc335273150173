/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An aggregation of bpf/ at work: loaded once for each event, attached to its descriptors, its
 * tables mapped and read with plain loads. What keys and values there are comes from the object's
 * BTF, so that a new file in bpf/ needs no code here.
 */
#ifndef NHMTAP_AGGREGATION_H
#define NHMTAP_AGGREGATION_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "collection/rings.h"
#include "collection/stacks.h"
#include "host/host.h"
#include "refusal.h"

struct aggregation;

/* A member of the key or value struct. Names are constant while the aggregation is open. */
struct member {
	const char *name; /* "ip" */
	const char *type; /* its typedef's name, "address_t"; "" if it has none */
	size_t offset, size;
	bool optional;    /* keys: told apart only on request */
	bool shown;       /* keys: told apart in this run */
	bool streamed;    /* keys: told in this run of each sample of the stream */
	bool maximum;     /* values: of several, the largest counts; in the first of its words */
};

struct layout {
	struct member *keys, *values;
	size_t nr_keys, nr_values;
	size_t key_size, value_size;
	const char **by; /* what is told apart in this run, of what the program can tell apart */
	size_t nr_by;
};

/* One key with its values, summed over CPUs. */
struct entry {
	const void *key;     /* as layout.keys describe it */
	const __u64 *values; /* what has come since the reading before: layout.value_size bytes */
};

/* What a reading found. All counts are since the beginning. */
struct reading {
	__u64 runs;       /* samples that reached the program: aggregated, table_full and stack_failed */
	__u64 period;     /* the sum of the periods of all runs */
	__u64 aggregated; /* samples in the tables */
	__u64 table_full, stack_failed; /* see struct table_head */
	__u64 throttled; /* times */
	/* Since the reading before: */
	__u64 further_lost;    /* see struct table_head */
	struct entry *entries; /* those that have changed */
	size_t nr_entries;     /* owned by the aggregation, valid up to the next reading */
	const struct stacks *stacks; /* what the entries' stacks are; NULL: they are not told apart */
};

/*
 * Opens the aggregation of this name (its file's: "profile") with the keys of `by` ("pid,ip") told
 * apart, and those that it always tells apart, for which it has no constant by_NAME. Nothing is loaded yet. Returns 0, or -1 with the refusal. The caller owns *aggregation up
 * to aggregation_close().
 */
int aggregation_open(struct aggregation **aggregation, const char *name, const char *by,
		     struct refusal *refusal);
void aggregation_close(struct aggregation *aggregation);

/* Loads it into the kernel and maps its tables, one for each possible CPU. */
int aggregation_load(struct aggregation *aggregation, const struct host *host,
		     struct refusal *refusal);

/* Attaches its program to a descriptor of perf_event_open, which stays the caller's. */
int aggregation_attach(struct aggregation *aggregation, int fd, const struct host *host,
		       struct refusal *refusal);

/*
 * Has each sample written into a ring as well, with the keys of `by`; the tables then keep none but the
 * keys that they always tell apart. To be called before loading.
 */
void aggregation_stream(struct aggregation *aggregation);

/* Which sides' frames the stacks are to have, and how many of both together, if stacks are among the
 * keys. To be called before loading. */
void aggregation_stacks(struct aggregation *aggregation, bool kernel, bool user, unsigned int frames);

/* Tells a key of `by` apart as before, but does not show it. */
void aggregation_conceal(struct aggregation *aggregation, const char *name);

/* The next sample of the stream: see rings_next(). */
bool aggregation_next(struct aggregation *aggregation, __u64 before, struct streamed *sample,
		      __u64 *lost);

const struct layout *aggregation_layout(const struct aggregation *aggregation);

/* Reads all tables; makes no system call. */
void aggregation_read(struct aggregation *aggregation, struct reading *reading);

#endif
