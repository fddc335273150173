// SPDX-License-Identifier: GPL-2.0-only
/*
 * bpfcalls MS [BUCKETS]: reads a BPF hash map in batches for MS milliseconds of CPU time. During
 * such a call the kernel runs no BPF program on this CPU (bpf_prog_active, kernel/bpf/hashtab.c).
 * This is most of the time, because there are many buckets and all are empty. With 2^21 buckets a
 * call takes longer than a tick, and the process is preempted inside of it if others want the CPU.
 */
#include <stdlib.h>

#include "bpf.h"

#define BUCKETS 65536

int main(int argc, char **argv)
{
	static char keys[4096], values[8192];
	union bpf_attr create = {.map_type = BPF_MAP_TYPE_HASH,
				 .map_flags = argc > 2 ? BPF_F_NO_PREALLOC : 0,
				 .key_size = 4,
				 .value_size = 8,
				 .max_entries = argc > 2 ? atol(argv[2]) : BUCKETS};
	long until = cpu_ms() + (argc > 1 ? atol(argv[1]) : 100);
	int map = bpf(BPF_MAP_CREATE, &create);

	if (map < 0)
		return 1;
	while (cpu_ms() < until) {
		char position[8] = "";
		union bpf_attr batch = {0};

		batch.batch.map_fd = map;
		batch.batch.out_batch = (__u64)position;
		batch.batch.keys = (__u64)keys;
		batch.batch.values = (__u64)values;
		batch.batch.count = 1024;
		bpf(BPF_MAP_LOOKUP_BATCH, &batch);
	}
	return 0;
}
