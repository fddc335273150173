/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An aggregation of bpf/ in use: a BPF program that is loaded once for each event and attached to its
 * descriptors. Its tables are mapped, and read by a table reader.
 */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#include "aggregation/layout.h"
#include "aggregation/rings.h"
#include "aggregation/table_reader.h"
#include "base/refusal.h"
#include "host/host.h"
#include "shared.h"

struct aggregation;
struct unwind_memory;
struct wakes;

/*
 * Opens the aggregation of this name (that of its file: "profile"). Its keys are those of `by` ("pid,ip"),
 * and those that it always has, for which it has no constant by_NAME. Its tables are the largest of which
 * those of all possible CPUs take no more than `most` bytes, or the smallest. Nothing is loaded yet. Returns
 * 0, or -1 with the refusal, which lists `others` too (ends with NULL; NULL: none) if there is no such key.
 * The caller owns *aggregation up to aggregation_close().
 */
int aggregation_open(struct aggregation **aggregation, const char *name, const char *by,
		     const char *const *others, const struct host *host, size_t most,
		     struct refusal *refusal);

/* What the tables of an activity take at most in the kernel, unless it may use more. With whole tables, those
 * of a profile with stacks take that for 17 CPUs. */
#define AGGREGATION_BYTES (64UL << 20)

void aggregation_close(struct aggregation *aggregation);

/* The bytes that its tables will take in the kernel, once loaded. */
size_t aggregation_bytes(const struct aggregation *aggregation, const struct host *host);

/* Loads the program into the kernel and maps its tables, one for each possible CPU. Returns 0, or -1 with the
 * refusal. */
int aggregation_load(struct aggregation *aggregation, const struct host *host, struct refusal *refusal);

/* Has the loaded program wake `wakes` when its tables should be emptied, and its stream be read. wakes_take()
 * sets *filling then. Returns 0, or -1 with the refusal. */
int aggregation_wake(struct aggregation *aggregation, struct wakes *wakes, bool *filling,
		     const struct host *host, struct refusal *refusal);

/* Attaches the program to a descriptor of perf_event_open(2), which stays the caller's. Returns 0, or -1 with
 * the refusal. */
int aggregation_attach(struct aggregation *aggregation, int fd, const struct host *host,
		       struct refusal *refusal);

/* Detaches the program. Must be called before the descriptor is closed: an attached program keeps its event
 * alive. */
void aggregation_detach(struct aggregation *aggregation, int fd);

/* Has each sample also written into a ring, with the keys of `by`; the tables then have only the keys that
 * they always have. Must be called before loading. `extras`: what they have besides; if that is a stack,
 * stacks must be a key. `share`: of the rings of all events. */
void aggregation_stream(struct aggregation *aggregation, const struct ring_extras *extras,
			const struct ring_share *share);

/* Selects the stacks' sides (kernel, user) and the most frames of both together, if stacks are among the
 * keys. `chain`: the kernel takes the call chain of each sample itself (PERF_SAMPLE_CALLCHAIN); its first
 * word then says which side's frames follow (PERF_CONTEXT_KERNEL, …). Must be called before loading. */
void aggregation_stacks(struct aggregation *aggregation, bool kernel, bool user, unsigned int frames,
			bool chain);

/* Has the user's stacks walked by the tables in this memory, which must outlive the aggregation. `precise`:
 * the samples are, so their registers are not all of one moment. Must be called before loading. */
void aggregation_unwind(struct aggregation *aggregation, const struct unwind_memory *memory, bool precise);

/*
 * Says what samples stand for if that is not the period that they tell: the driver has raised a shorter
 * period to `least`, and each sample takes `beyond` events more than its period. Must be called before
 * loading. See event/event.h.
 */
void aggregation_distance(struct aggregation *aggregation, __u64 least, __u64 beyond);

/* Has the program count how often the kernel throttles its event, if this kernel lets it (mem's program
 * always does). Must be called before loading. */
void aggregation_see_throttling(struct aggregation *aggregation);

/* Has each sample stand for what its event has counted since the sample before, whatever period it tells: see
 * event_tells_next_period(). Returns false, and changes nothing, if the kernel's BTF doesn't say where the
 * counts are. Must be called before loading. */
bool aggregation_weigh_by_count(struct aggregation *aggregation);

/* Has the program time some of its runs, and count samples with the periods given by aggregation_weigh().
 * Must be called before loading. */
void aggregation_pace(struct aggregation *aggregation);

/* See aggregation/table_reader.h. */
void aggregation_weigh(struct aggregation *aggregation, __u64 opened, __u64 held);
void aggregation_carry(struct aggregation *aggregation, int cpu, __u64 count, __u64 most);
struct table_runs aggregation_runs(const struct aggregation *aggregation);

/* Keeps a key of `by` in the tables, but does not show it in records. */
void aggregation_conceal(struct aggregation *aggregation, const char *name);

/* Leaves out the samples that do not meet this condition. Must be called before aggregation_load(). */
void aggregation_where(struct aggregation *aggregation, const struct where_term *terms, size_t nr);

/* See rings_are_behind(). */
bool aggregation_is_behind(const struct aggregation *aggregation);

/* Gives the next sample of the stream: see rings_next(). */
bool aggregation_next(struct aggregation *aggregation, __u64 before, struct streamed *sample,
		      struct ring_loss *loss);

const struct layout *aggregation_layout(const struct aggregation *aggregation);

/* Must be called after loading: see aggregation/table_reader.h. The program must have the key `cgroup`. */
void aggregation_filter(struct aggregation *aggregation, bool (*wanted)(void *context, __u64 cgroup),
			void *context);

/* Read the tables, empty them: see aggregation/table_reader.h. */
void aggregation_read(struct aggregation *aggregation, size_t most_keys, struct reading *reading);
void aggregation_drain(struct aggregation *aggregation, size_t most_keys);
size_t aggregation_kept(const struct aggregation *aggregation);
const struct stacks *aggregation_kept_stacks(const struct aggregation *aggregation);
void aggregation_take(struct aggregation *aggregation, bool (*take)(void *context, const struct entry *entry),
		      void *context);
void aggregation_so_far(struct aggregation *aggregation, __u64 *samples, __u64 *lost);
