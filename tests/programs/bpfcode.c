// SPDX-License-Identifier: GPL-2.0-only
/*
 * bpfcode NAME…: for each line from its input loads a BPF program with the next of the names and runs it for
 * 300 ms of CPU time; the program before is unloaded first. If the name is "again", that one is run instead.
 * Nearly all of that time is spent in the program's code, which the kernel compiles when it is loaded: in a
 * loop, so that programs that have the same place, one after the other, have all samples at the same
 * addresses.
 */
#include <stdio.h>
#include <string.h>

#include "bpf.h"

#define ROUNDS 50000

static int load(const char *name)
{
	static const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .imm = 1},
		{.code = BPF_JMP | BPF_JLT | BPF_K, .off = -2, .imm = ROUNDS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
			       .insns = (__u64)code,
			       .insn_cnt = sizeof(code) / sizeof(code[0]),
			       .license = (__u64) "GPL"};

	strncpy(attr.prog_name, name, sizeof(attr.prog_name) - 1);
	return bpf(BPF_PROG_LOAD, &attr);
}

static int run(int program, long ms)
{
	static char packet[64];
	long until = cpu_ms() + ms;

	while (cpu_ms() < until) {
		union bpf_attr attr = {0};

		attr.test.prog_fd = program;
		attr.test.data_in = (__u64)packet;
		attr.test.data_size_in = sizeof(packet);
		attr.test.repeat = 200;
		if (bpf(BPF_PROG_TEST_RUN, &attr))
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	char line[16];
	int program = -1;

	for (int i = 1; i < argc && fgets(line, sizeof(line), stdin); i++) {
		if (strcmp(argv[i], "again")) {
			close(program);
			program = load(argv[i]);
		}
		if (program < 0 || run(program, 300))
			return 1;
	}
	return 0;
}
