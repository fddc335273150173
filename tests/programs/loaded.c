// SPDX-License-Identifier: GPL-2.0-only
/*
 * loaded ID: what the kernel made of a BPF program: prints how many instructions it has, how many of
 * them load from a map's memory at a known place, and how many bytes of stack its main function
 * uses.
 */
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static void get_info(int fd, struct bpf_prog_info *info)
{
	union bpf_attr get = {.info = {.bpf_fd = fd, .info_len = sizeof(*info), .info = (__u64)info}};

	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &get)) {
		perror("BPF_OBJ_GET_INFO_BY_FD");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	union bpf_attr open = {.prog_id = argc > 1 ? atol(argv[1]) : 0};
	struct bpf_prog_info info = {0}, again = {0};
	int fd = bpf(BPF_PROG_GET_FD_BY_ID, &open), loads = 0, depth = 0;
	struct bpf_func_info *functions;
	struct bpf_insn *insns;
	size_t nr, of_main;

	if (fd < 0) {
		perror("BPF_PROG_GET_FD_BY_ID");
		return 1;
	}
	get_info(fd, &info);
	nr = info.xlated_prog_len / sizeof(*insns);
	insns = calloc(nr, sizeof(*insns));
	functions = calloc(info.nr_func_info, info.func_info_rec_size);
	again.xlated_prog_len = info.xlated_prog_len;
	again.xlated_prog_insns = (__u64)insns;
	again.nr_func_info = info.nr_func_info;
	again.func_info_rec_size = sizeof(*functions);
	again.func_info = (__u64)functions;
	get_info(fd, &again);
	of_main = info.nr_func_info > 1 ? functions[1].insn_off : nr;
	for (size_t i = 0; i < nr; i++) {
		int class = BPF_CLASS(insns[i].code);

		if (i + 2 < nr && insns[i].code == (BPF_LD | BPF_IMM | BPF_DW) &&
		    insns[i].src_reg == BPF_PSEUDO_MAP_VALUE && BPF_CLASS(insns[i + 2].code) == BPF_LDX &&
		    insns[i + 2].src_reg == insns[i].dst_reg)
			loads++;
		if (i < of_main && (class == BPF_STX || class == BPF_ST) && insns[i].dst_reg == BPF_REG_10 &&
		    -insns[i].off > depth)
			depth = -insns[i].off;
	}
	printf("{\"instructions\": %zu, \"loads\": %d, \"stack\": %d}\n", nr, loads, depth);
	return 0;
}
