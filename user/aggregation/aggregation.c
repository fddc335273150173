// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/aggregation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "aggregation/constants.h"
#include "aggregation/kernel_event.h"
#include "aggregation/kernel_types.h"
#include "aggregation/libbpf_words.h"
#include "aggregation/object.h"
#include "aggregation/own_pids.h"
#include "aggregation/unwind_memory.h"
#include "aggregation/wakes.h"
#include "base/array.h"
#include "base/list.h"
#include "base/memory.h"
#include "plan/denial.h"
#include "shared.h"

struct aggregation {
	struct bpf_object *object;
	struct layout layout;
	struct table_layout table;
	unsigned int stack_frames;	    /* the most frames of a stack */
	struct stack_areas *areas;	    /* NULL: there are no stacks */
	const struct unwind_memory *unwind; /* NULL: stacks are not walked by tables */
	struct table_reader *reader;
	bool counts; /* samples are weighed by what their events have counted */
	bool stream;
	struct ring_extras extras;
	struct ring_share share;
	struct rings *rings; /* NULL: there is no stream */
	struct attached {
		int fd, link; /* the event's descriptor, and the link's own */
	} * links;
	size_t nr_links;
};

/* --- opening ---------------------------------------------------------------------------------- */

/* The builds of an object, by the size of their tables. */
static const char *const sizes[] = {"", "-quarter", "-sixteenth"};

static int open_size(struct aggregation *aggregation, const char *name, const char *size)
{
	char file[64];

	snprintf(file, sizeof(file), "%s%s", name, size);
	aggregation->object = object_open(file);
	return aggregation->object ? layout_read(&aggregation->layout, &aggregation->table,
						 bpf_object__btf(aggregation->object))
				   : -1;
}

static size_t bytes_of_a_cpu(const struct aggregation *aggregation, bool stacks)
{
	return aggregation->table.size + (stacks ? stack_areas_bytes(aggregation->object) : 0);
}

static int open_fitting(struct aggregation *aggregation, const char *name, bool stacks, size_t most_of_a_cpu)
{
	for (size_t i = most_of_a_cpu ? 0 : ARRAY_SIZE(sizes) - 1;; i++) {
		int err = open_size(aggregation, name, sizes[i]);

		if (err || i + 1 == ARRAY_SIZE(sizes) || bytes_of_a_cpu(aggregation, stacks) <= most_of_a_cpu)
			return err;
		layout_release(&aggregation->layout);
		bpf_object__close(aggregation->object);
	}
}

int aggregation_open(struct aggregation **result, const char *name, const char *by, const char *const *others,
		     const struct host *host, size_t most, struct refusal *refusal)
{
	struct aggregation *aggregation = xcalloc(1, sizeof(*aggregation));
	struct libbpf_words words;
	int err;

	libbpf_words_begin(&words);
	err = open_fitting(aggregation, name, list_has(by, "stack"), most / (cpus_end(&host->possible) ?: 1));
	libbpf_words_end(&words);
	if (err) {
		refuse(refusal, STATUS_REFUSED, "the aggregation '%s'", name);
		because(refusal, "its BPF object can't be read: %s", words.last);
		aggregation_close(aggregation);
		return -1;
	}
	if (constants_tell_apart(aggregation->object, &aggregation->layout, by, others, refusal)) {
		aggregation_close(aggregation);
		return -1;
	}
	*result = aggregation;
	return 0;
}

/* --- what else is asked for -------------------------------------------------------------------- */

void aggregation_conceal(struct aggregation *aggregation, const char *name)
{
	struct layout *layout = &aggregation->layout;
	struct member *key = layout_key_named(layout, name);
	size_t kept = 0;

	if (key)
		key->shown = false;
	for (size_t i = 0; i < layout->nr_by; i++)
		if (strcmp(layout->by[i], name))
			layout->by[kept++] = layout->by[i];
	layout->nr_by = kept;
}

void aggregation_stream(struct aggregation *aggregation, const struct ring_extras *extras,
			const struct ring_share *share)
{
	aggregation->stream = true;
	aggregation->share = *share;
	aggregation->extras = *extras;
	aggregation->layout.nr_by = 0;
	for (size_t i = 0; i < aggregation->layout.nr_keys; i++) {
		struct member *member = &aggregation->layout.keys[i];

		member->streamed = member->shown;
		member->shown = !member->optional;
		if (member->shown)
			aggregation->layout.by[aggregation->layout.nr_by++] = member->name;
	}
	constants_set(aggregation->object, "stream", true);
	constants_set(aggregation->object, "stream_registers", extras->bytes[RING_EXTRA_REGISTERS] > 0);
	constants_set(aggregation->object, "stream_stacks", extras->bytes[RING_EXTRA_STACK] > 0);
	if (extras->bytes[RING_EXTRA_BRANCHES])
		constants_set(aggregation->object, "stream_branches",
			      extras->bytes[RING_EXTRA_BRANCHES] - offsetof(struct ring_branches, list));
}

void aggregation_where(struct aggregation *aggregation, const struct where_term *terms, size_t nr)
{
	constants_copy(aggregation->object, "where", terms, nr * sizeof(*terms));
	constants_set(aggregation->object, "nr_where", nr);
}

void aggregation_stacks(struct aggregation *aggregation, bool kernel, bool user, unsigned int frames,
			bool chain)
{
	aggregation->stack_frames = frames;
	constants_set(aggregation->object, "kernel_stacks", kernel);
	constants_set(aggregation->object, "user_stacks", user);
	constants_set(aggregation->object, "max_stack", frames);
	constants_set(aggregation->object, "chain_marks", chain);
}

void aggregation_unwind(struct aggregation *aggregation, const struct unwind_memory *memory, bool precise)
{
	aggregation->unwind = memory;
	constants_set(aggregation->object, "tables_walk", true);
	constants_set(aggregation->object, "precise", precise);
}

void aggregation_distance(struct aggregation *aggregation, __u64 least, __u64 beyond)
{
	constants_set(aggregation->object, "period_least", least);
	constants_set(aggregation->object, "period_beyond", beyond);
}

void aggregation_see_throttling(struct aggregation *aggregation)
{
	struct kernel_event event;

	kernel_event_find(&event);
	constants_set(aggregation->object, "interrupts_offset", event.interrupts);
}

bool aggregation_weigh_by_count(struct aggregation *aggregation)
{
	struct kernel_event event;

	aggregation->counts = kernel_event_find(&event);
	constants_set(aggregation->object, "id_offset", event.id);
	constants_set(aggregation->object, "count_offset", event.count);
	return aggregation->counts;
}

void aggregation_pace(struct aggregation *aggregation)
{
	constants_set(aggregation->object, "paced", true);
	constants_set(aggregation->object, "timed", true);
}

void aggregation_weigh(struct aggregation *aggregation, __u64 opened, __u64 held)
{
	table_reader_weigh(aggregation->reader, opened, held);
}

void aggregation_carry(struct aggregation *aggregation, int cpu, __u64 count, __u64 most)
{
	table_reader_carry(aggregation->reader, cpu, count, most);
}

struct table_runs aggregation_runs(const struct aggregation *aggregation)
{
	return table_reader_runs(aggregation->reader);
}

bool aggregation_is_behind(const struct aggregation *aggregation)
{
	return rings_are_behind(aggregation->rings);
}

bool aggregation_next(struct aggregation *aggregation, __u64 before, struct streamed *sample,
		      struct ring_loss *loss)
{
	return rings_next(aggregation->rings, before, sample, loss);
}

/* --- loading, attaching ----------------------------------------------------------------------- */

/* An element of the kernel's hash map has 48 bytes besides key and value, and its bucket 16:
 * kernel/bpf/hashtab.c. */
#define COUNT_BYTES 80

size_t aggregation_bytes(const struct aggregation *aggregation, const struct host *host)
{
	size_t a_cpu = bytes_of_a_cpu(aggregation, aggregation->stack_frames),
	       nr_cpus = cpus_end(&host->possible);

	if (aggregation->stream)
		a_cpu += rings_bytes(nr_cpus, aggregation->layout.key_size, &aggregation->extras,
				     &aggregation->share);
	return a_cpu * nr_cpus + (aggregation->counts ? COUNTS_OF(nr_cpus) * COUNT_BYTES : 0);
}

static void prepare_counts(struct aggregation *aggregation, int nr_cpus)
{
	struct bpf_map *map = bpf_object__find_map_by_name(aggregation->object, "counts");

	bpf_map__set_autocreate(map, aggregation->counts);
	if (!aggregation->counts)
		return;
	bpf_map__set_max_entries(map, COUNTS_OF(nr_cpus));
	constants_set(aggregation->object, "counts_step", COUNTS_OF(nr_cpus) / 4);
}

static int map_memory(struct aggregation *aggregation, const struct host *host, struct refusal *refusal)
{
	int err = table_reader_map(aggregation->reader);

	if (err)
		return bpf_denied(refusal, host, "mapping the BPF program's tables", -err, "");
	err = aggregation->areas ? stack_areas_map(aggregation->areas) : 0;
	if (err)
		return bpf_denied(refusal, host, "mapping the BPF program's stacks", -err, "");
	err = aggregation->rings ? rings_map(aggregation->rings) : 0;
	return err ? bpf_denied(refusal, host, "mapping the BPF program's rings", -err, "") : 0;
}

int aggregation_load(struct aggregation *aggregation, const struct host *host, struct refusal *refusal)
{
	int err, nr_cpus = cpus_end(&host->possible);
	struct bpf_program *program;
	struct libbpf_words words;

	bpf_object__for_each_program(program, aggregation->object)
		bpf_program__set_type(program, BPF_PROG_TYPE_PERF_EVENT);
	if (aggregation->stream)
		aggregation->rings = rings_prepare(aggregation->object, nr_cpus, aggregation->layout.key_size,
						   &aggregation->extras, &aggregation->share);
	else
		rings_leave_out(aggregation->object);
	aggregation->areas = stack_areas_prepare(aggregation->object, nr_cpus, aggregation->stack_frames);
	aggregation->reader =
		table_reader_prepare(aggregation->object, nr_cpus, &aggregation->layout, &aggregation->table,
				     aggregation->areas, aggregation->stack_frames);
	prepare_counts(aggregation, nr_cpus);
	constants_set(aggregation->object, "casts", kernel_types_cast() > 0);
	own_pids_set(aggregation->object);
	unwind_memory_share(aggregation->unwind, aggregation->object);
	libbpf_words_begin(&words);
	err = bpf_object__load(aggregation->object);
	libbpf_words_end(&words);
	if (err)
		return bpf_denied(refusal, host, "loading the BPF program", -err, words.last);
	return map_memory(aggregation, host, refusal);
}

int aggregation_wake(struct aggregation *aggregation, struct wakes *wakes, bool *filling,
		     const struct host *host, struct refusal *refusal)
{
	struct libbpf_words words;
	int err;

	libbpf_words_begin(&words);
	err = wakes_add(wakes, aggregation->object, filling);
	libbpf_words_end(&words);
	if (!err || !strstr(words.last, "epoll"))
		return err ? bpf_denied(refusal, host, "mapping the BPF program's ring", -err, words.last)
			   : 0;
	refuse(refusal, STATUS_REFUSED, "waiting for the BPF program's ring");
	refusal->error = -err;
	because(refusal, "epoll_create1(2) or epoll_ctl(2) is refused: %s", strerror(-err));
	return instead(refusal, "allow both, in the seccomp profile or by fs.epoll.max_user_watches");
}

int aggregation_attach(struct aggregation *aggregation, int fd, const struct host *host,
		       struct refusal *refusal)
{
	const struct bpf_program *program = bpf_object__next_program(aggregation->object, NULL);
	/* Not bpf_program__attach_perf_event(): it enables the event at once, and its link closes the
	 * descriptor, which belongs to libperf. */
	int link = bpf_link_create(bpf_program__fd(program), fd, BPF_PERF_EVENT, NULL);

	if (link < 0)
		return bpf_denied(refusal, host, "attaching the BPF program", -link, "");
	*xappend(aggregation->links, aggregation->nr_links) = (struct attached){fd, link};
	return 0;
}

void aggregation_detach(struct aggregation *aggregation, int fd)
{
	size_t kept = 0;

	for (size_t i = 0; i < aggregation->nr_links; i++)
		if (aggregation->links[i].fd == fd)
			close(aggregation->links[i].link);
		else
			aggregation->links[kept++] = aggregation->links[i];
	aggregation->nr_links = kept;
}

void aggregation_close(struct aggregation *aggregation)
{
	if (!aggregation)
		return;
	for (size_t i = 0; i < aggregation->nr_links; i++)
		close(aggregation->links[i].link);
	rings_close(aggregation->rings);
	table_reader_close(aggregation->reader);
	stack_areas_close(aggregation->areas);
	bpf_object__close(aggregation->object);
	layout_release(&aggregation->layout);
	free(aggregation->links);
	free(aggregation);
}

const struct layout *aggregation_layout(const struct aggregation *aggregation)
{
	return &aggregation->layout;
}

void aggregation_filter(struct aggregation *aggregation, bool (*wanted)(void *context, __u64 cgroup),
			void *context)
{
	const struct member *cgroup = layout_key_of_type(&aggregation->layout, "cgroup_id_t");

	table_reader_filter(aggregation->reader, wanted, context, cgroup->shown);
}

void aggregation_read(struct aggregation *aggregation, size_t most_keys, struct reading *reading)
{
	table_reader_read(aggregation->reader, most_keys, reading);
}

void aggregation_drain(struct aggregation *aggregation, size_t most_keys)
{
	table_reader_drain(aggregation->reader, most_keys);
}

size_t aggregation_kept(const struct aggregation *aggregation)
{
	return table_reader_kept(aggregation->reader);
}

const struct stacks *aggregation_kept_stacks(const struct aggregation *aggregation)
{
	return table_reader_stacks(aggregation->reader);
}

void aggregation_take(struct aggregation *aggregation, bool (*take)(void *context, const struct entry *entry),
		      void *context)
{
	table_reader_take(aggregation->reader, take, context);
}

void aggregation_so_far(struct aggregation *aggregation, __u64 *samples, __u64 *lost)
{
	table_reader_so_far(aggregation->reader, samples, lost);
}
