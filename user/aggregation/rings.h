/* SPDX-License-Identifier: GPL-2.0-only */
/* The stream of samples beside an aggregation's tables: one ring per CPU in mapped memory, which the program
 * overwrites without waiting; see bpf/shared.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct bpf_object;
struct rings;

/* What samples have beside their keys, in bytes; 0: they don't. */
enum ring_extra { RING_EXTRA_REGISTERS, RING_EXTRA_STACK, RING_EXTRA_BRANCHES, RING_EXTRAS };
struct ring_extras {
	size_t bytes[RING_EXTRAS];
};

/* The bytes of a sample's key and what comes behind it, and where the extra begins. */
size_t rings_tail(size_t key_size, const struct ring_extras *extras);
size_t rings_extra_at(size_t key_size, const struct ring_extras *extras, enum ring_extra extra);

/* What the rings of all events of an activity may take together, in bytes, and how many events that are. */
struct ring_share {
	size_t bytes, events;
};

/* A sample of the stream. */
struct streamed {
	__u64 time; /* CLOCK_MONOTONIC, ns */
	__u64 address, latency, period, physical;
	const void *key; /* laid out as the aggregation's layout says, and the extras behind it: bpf/shared.h;
			    valid up to the next call */
};

/* Samples that were overwritten before they could be read: between the times of the last sample that was read
 * before and of the first one after (CLOCK_MONOTONIC, ns; 0: none was). */
struct ring_loss {
	__u64 samples, since, until;
};

/* Must be called before the object is loaded: makes room for nr_cpus rings, whose keys have key_size
 * bytes. */
struct rings *rings_prepare(struct bpf_object *object, int nr_cpus, size_t key_size,
			    const struct ring_extras *extras, const struct ring_share *share);
/* Instead, if there is no stream: the object has no rings then. */
void rings_leave_out(struct bpf_object *object);
/* Must be called after the object is loaded: maps the rings. Returns 0 or -errno. */
int rings_map(struct rings *rings);

/* The bytes of one CPU's ring of an event, which has fewer samples if there are many CPUs, or events. */
size_t rings_bytes(int nr_cpus, size_t key_size, const struct ring_extras *extras,
		   const struct ring_share *share);

void rings_close(struct rings *rings);

/* Whether a ring of any CPU is at least half full of samples that were not read yet. */
bool rings_are_behind(const struct rings *rings);

/* Gives the next sample of all CPUs, in the order of their times, if it is older than `before`. Returns false
 * if there is none. What is found to be lost is added to *loss. */
bool rings_next(struct rings *rings, __u64 before, struct streamed *sample, struct ring_loss *loss);
