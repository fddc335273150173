// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs bpf/branch.bpf.c in user space: deep_branches NUMBER gives it one sample with a stack of
 * NUMBER branches, and prints the entries of its table, one per line: kind, from, to, count. Branch
 * i, where 0 is the newest, goes from 1000 - 2 i to 1001 - 2 i, so there is straight code between
 * each two branches.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Replaces bpf_helpers.h. */
#define __BPF_HELPERS__
#define SEC(name)
#define __uint(name, value)   int(*name)[value]
#define __type(name, value)   typeof(value) *name
#define __always_inline	      inline __attribute__((always_inline))
#define __noinline	      __attribute__((noinline))
#define barrier_var(variable) asm volatile("" : "+r"(variable))
#define barrier()	      asm volatile("" ::: "memory")

typedef unsigned long long u64;
static void *bpf_map_lookup_elem(void *map, const void *key);
static long bpf_read_branch_records(void *context, void *buffer, unsigned int size, u64 flags);

static unsigned int bpf_get_smp_processor_id(void)
{
	return 0;
}

static u64 bpf_get_current_pid_tgid(void)
{
	return 1ULL << 32 | 1;
}

/* Only needed for tasks in a pid namespace; there are none here. */
static void *bpf_get_current_task_btf(void)
{
	return NULL;
}

static long bpf_probe_read_kernel(void *buffer, unsigned int size, const void *from)
{
	return -1;
}

static long bpf_map_update_elem(void *map, const void *key, const void *value, u64 flags)
{
	return -1;
}

static long bpf_get_ns_current_pid_tgid(u64 device, u64 inode, void *numbers, unsigned int size)
{
	return -1;
}

static u64 bpf_get_current_cgroup_id(void)
{
	return 0;
}

static long bpf_get_current_comm(void *buffer, unsigned int size)
{
	memset(buffer, 0, size);
	return 0;
}

/* Only needed when a table is filling. */
static long bpf_ringbuf_output(void *ring, void *data, u64 size, u64 flags)
{
	return -1;
}

/* Only needed if the cost of samples is measured, which it is not here. */
static u64 bpf_ktime_get_ns(void)
{
	return 0;
}

/* User space sets the program's constants before it loads it. */
#define const
#include "branch.bpf.c"
#undef const

static struct table *the_table;
static struct stack the_stack;
static unsigned int given;

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	return map == (void *)&tables ? (void *)the_table : &the_stack;
}

/* Like the kernel, copies as many branches as fit. */
static long bpf_read_branch_records(void *context, void *buffer, unsigned int size, u64 flags)
{
	struct branch *branches = buffer;
	unsigned int i = 0;

	for (; i < given && (i + 1) * sizeof(*branches) <= size; i++)
		branches[i] = (struct branch){1000 - 2 * i, 1001 - 2 * i, 0};
	return i * sizeof(*branches);
}

int main(int argc, char **argv)
{
	struct bpf_perf_event_data context = {.sample_period = 1};

	the_table = calloc(1, sizeof(*the_table));
	given = argc > 1 ? atoi(argv[1]) : 0;
	by_edge = by_range = 1;
	on_sample(&context);
	for (size_t i = 0; i < the_table->generations[0].used; i++) {
		struct slot *slot = &the_table->slots[the_table->order[i]];

		printf("%u %llu %llu %llu\n", slot->key.kind, slot->key.from, slot->key.to,
		       slot->value.samples);
	}
	free(the_table);
	return 0;
}
