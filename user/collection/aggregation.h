/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An aggregation of bpf/ at work: loaded once for each event, attached to its descriptors, its
 * tables mapped, and read by a reader.
 */
#ifndef NHMTAP_AGGREGATION_H
#define NHMTAP_AGGREGATION_H

#include <stdbool.h>
#include <linux/types.h>

#include "collection/layout.h"
#include "collection/table_reader.h"
#include "collection/rings.h"
#include "host/host.h"
#include "refusal.h"

struct aggregation;
struct unwind_memory;

/*
 * Opens the aggregation of this name (its file's: "profile") with the keys of `by` ("pid,ip") told
 * apart, and those that it always tells apart, for which it has no constant by_NAME. Nothing is loaded
 * yet. Returns 0, or -1 with the refusal. The caller owns *aggregation up to aggregation_close().
 */
int aggregation_open(struct aggregation **aggregation, const char *name, const char *by,
		     struct refusal *refusal);
void aggregation_close(struct aggregation *aggregation);

/* The bytes that its tables will take in the kernel. */
size_t aggregation_bytes(const struct aggregation *aggregation, const struct host *host);

/* Loads it into the kernel and maps its tables, one for each possible CPU. */
int aggregation_load(struct aggregation *aggregation, const struct host *host, struct refusal *refusal);

/* Attaches its program to a descriptor of perf_event_open, which stays the caller's. */
int aggregation_attach(struct aggregation *aggregation, int fd, const struct host *host,
		       struct refusal *refusal);

/* Detaches it, before the descriptor is closed: a program that is attached keeps its event. */
void aggregation_detach(struct aggregation *aggregation, int fd);

/* Writes each sample into a ring as well, with the keys of `by`; the tables then keep only the keys that they
 * always have. Call before loading. */
void aggregation_stream(struct aggregation *aggregation);

/* Which sides' frames the stacks are to have, and how many of both together, if stacks are among the
 * keys. `chain`: the kernel takes the chain of each sample by itself (PERF_SAMPLE_CALLCHAIN), and its first
 * word says whose frames follow (PERF_CONTEXT_KERNEL, …). To be called before loading. */
void aggregation_stacks(struct aggregation *aggregation, bool kernel, bool user, unsigned int frames,
			bool chain);

/* Has the users' stacks walked by the tables in this memory, which must live longer; of samples whose
 * registers are not all of one moment, if they are `precise`. To be called before loading. */
void aggregation_unwind(struct aggregation *aggregation, const struct unwind_memory *memory, bool precise);

/* Has its program time some of its runs, and weigh samples as aggregation_weigh() says. To be called before
 * loading. */
void aggregation_pace(struct aggregation *aggregation);

/* See collection/table_reader.h. */
void aggregation_weigh(struct aggregation *aggregation, __u64 opened, __u64 held);
void aggregation_carry(struct aggregation *aggregation, int cpu, __u64 count, __u64 most);
struct table_runs aggregation_runs(const struct aggregation *aggregation);

/* Keeps a key of `by` in the tables without showing it. */
void aggregation_conceal(struct aggregation *aggregation, const char *name);

/* The next sample of the stream: see rings_next(). */
bool aggregation_next(struct aggregation *aggregation, __u64 before, struct streamed *sample, __u64 *lost);

const struct layout *aggregation_layout(const struct aggregation *aggregation);

/* How many samples a CPU's table has room for, however different their keys and however deep their stacks. */
size_t aggregation_room(const struct aggregation *aggregation);

/* Reads its tables, looks how full they are, empties them: see collection/table_reader.h. */
void aggregation_read(struct aggregation *aggregation, size_t most_keys, struct reading *reading);
unsigned int aggregation_fill(const struct aggregation *aggregation);
void aggregation_drain(struct aggregation *aggregation, size_t most_keys);
void aggregation_so_far(struct aggregation *aggregation, __u64 *samples, __u64 *lost);

#endif
