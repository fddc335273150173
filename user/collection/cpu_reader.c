// SPDX-License-Identifier: GPL-2.0-only
#include "collection/cpu_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "aggregation/object.h"
#include "base/memory.h"

struct cpu_reader {
	struct bpf_object *object;
	int program, counters;		  /* descriptors, the object's */
	struct counter_reading *readings; /* mapped */
	size_t mapped;
};

int cpu_reader_open(struct cpu_reader **result, size_t nr)
{
	struct cpu_reader *reader = xcalloc(1, sizeof(*reader));
	struct bpf_map *counters, *readings;
	int err;

	reader->object = object_open("counters");
	if (!reader->object) {
		err = -errno;
		cpu_reader_close(reader);
		return err;
	}
	counters = bpf_object__find_map_by_name(reader->object, "counters");
	readings = bpf_object__find_map_by_name(reader->object, "readings");
	bpf_map__set_max_entries(counters, nr);
	bpf_map__set_max_entries(readings, nr);
	err = object_load_quietly(reader->object);
	if (!err) {
		reader->mapped = nr * sizeof(*reader->readings);
		reader->readings =
			mmap(NULL, reader->mapped, PROT_READ, MAP_SHARED, bpf_map__fd(readings), 0);
		if (reader->readings == MAP_FAILED) {
			reader->readings = NULL;
			err = -errno;
		}
	}
	if (err) {
		cpu_reader_close(reader);
		return err;
	}
	reader->counters = bpf_map__fd(counters);
	reader->program = bpf_program__fd(bpf_object__find_program_by_name(reader->object, "read_counters"));
	*result = reader;
	return 0;
}

void cpu_reader_close(struct cpu_reader *reader)
{
	if (!reader)
		return;
	if (reader->readings)
		munmap(reader->readings, reader->mapped);
	bpf_object__close(reader->object);
	free(reader);
}

void cpu_reader_put(struct cpu_reader *reader, size_t place, int fd)
{
	__u32 index = place;

	bpf_map_update_elem(reader->counters, &index, &fd, BPF_ANY);
}

void cpu_reader_remove(struct cpu_reader *reader, size_t place)
{
	__u32 index = place;

	bpf_map_delete_elem(reader->counters, &index);
}

int cpu_reader_read(struct cpu_reader *reader, int cpu, size_t first, size_t nr)
{
	__u64 arguments[] = {first, nr};
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = arguments, .ctx_size_in = sizeof(arguments),
		    .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);

	return bpf_prog_test_run_opts(reader->program, &run);
}

const struct counter_reading *cpu_reader_at(const struct cpu_reader *reader, size_t place)
{
	return &reader->readings[place];
}
