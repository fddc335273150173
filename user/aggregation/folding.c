// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/folding.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "aggregation/kernel_types.h"
#include "base/memory.h"
#include "shared.h"

#define MAP_CONSTANTS BPF_F_RDONLY_PROG /* libbpf makes maps of constants so, and no other map */

/* The constants that the last load was from. */
struct folded_constants {
	int fd; /* -1: none yet */
	char *values;
	__u32 size; /* 0: the map has no constants */
};

static const struct bpf_insn nothing = {.code = BPF_JMP | BPF_JA};

static void read_constants(struct folded_constants *constants, int fd)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info), first = 0;

	free(constants->values);
	*constants = (struct folded_constants){.fd = fd};
	if (bpf_obj_get_info_by_fd(fd, &info, &size) || !(info.map_flags & MAP_CONSTANTS))
		return;
	constants->values = xmalloc(info.value_size);
	if (!bpf_map_lookup_elem(fd, &first, constants->values))
		constants->size = info.value_size;
}

static int bytes_of(const struct bpf_insn *load)
{
	switch (BPF_SIZE(load->code)) {
	case BPF_B:
		return 1;
	case BPF_H:
		return 2;
	case BPF_W:
		return 4;
	}
	return 8;
}

/* Marks the instructions that a jump or a call leads to: those before them need not have been executed. */
static void mark_targets(bool *targets, const struct bpf_insn *insns, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct bpf_insn *insn = &insns[i];
		int class = BPF_CLASS(insn->code), operation = BPF_OP(insn->code);
		size_t target = i + 1 + insn->off;

		if ((class != BPF_JMP && class != BPF_JMP32) || operation == BPF_EXIT)
			continue;
		if (operation == BPF_CALL && insn->src_reg != BPF_PSEUDO_CALL)
			continue; /* of a helper, by its number */
		if (operation == BPF_CALL)
			target = i + 1 + insn->imm;
		if (target < nr)
			targets[target] = true;
	}
}

/* Replaces the address of a constant (two instructions) and the load behind it by the constant's value.
 * Nothing is moved, so jumps stay right; the verifier removes instructions that do nothing. */
static void fold(struct bpf_insn *address, struct folded_constants *constants)
{
	struct bpf_insn *load = &address[2];
	__u64 offset = (__s64)address[1].imm + load->off, value = 0;

	if (address->imm != constants->fd)
		read_constants(constants, address->imm);
	if (offset + bytes_of(load) > constants->size)
		return;
	memcpy(&value, constants->values + offset, bytes_of(load)); /* little endian */
	if (value >> 32)
		return;
	if (load->dst_reg == address->dst_reg) /* the address is not used any more */
		address[0] = address[1] = nothing;
	*load = (struct bpf_insn){
		.code = BPF_ALU | BPF_MOV | BPF_K, .dst_reg = load->dst_reg, .imm = (__u32)value};
}

static bool loads_from_map(const struct bpf_insn *insns)
{
	return insns[0].code == (BPF_LD | BPF_IMM | BPF_DW) && insns[0].src_reg == BPF_PSEUDO_MAP_VALUE &&
	       BPF_CLASS(insns[2].code) == BPF_LDX && BPF_MODE(insns[2].code) == BPF_MEM &&
	       insns[2].src_reg == insns[0].dst_reg;
}

/* libbpf would resolve the call, too, but would parse all of the kernel's BTF for it. */
static void resolve_cast(struct bpf_insn *insn)
{
	if (insn->code != (BPF_JMP | BPF_CALL) || insn->src_reg || insn->imm != CAST_TO_KERNEL)
		return;
	insn->src_reg = BPF_PSEUDO_KFUNC_CALL;
	insn->imm = kernel_types_cast();
}

static int fold_program(struct bpf_program *program, struct bpf_prog_load_opts *options, long cookie)
{
	size_t nr = bpf_program__insn_cnt(program);
	struct bpf_insn *insns = xmalloc(nr * sizeof(*insns));
	bool *targets = xcalloc(nr, sizeof(*targets));
	struct folded_constants constants = {.fd = -1};
	int err;

	memcpy(insns, bpf_program__insns(program), nr * sizeof(*insns));
	mark_targets(targets, insns, nr);
	for (size_t i = 0; i + 2 < nr; i++)
		if (loads_from_map(&insns[i]) && !targets[i + 2])
			fold(&insns[i], &constants);
	for (size_t i = 0; i < nr; i++)
		resolve_cast(&insns[i]);
	err = bpf_program__set_insns(program, insns, nr);
	free(constants.values);
	free(targets);
	free(insns);
	return err;
}

int folding_begin(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, options, .prog_prepare_load_fn = fold_program);
	int handler = libbpf_register_prog_handler("perf_event", BPF_PROG_TYPE_PERF_EVENT, 0, &options);

	return handler < 0 ? handler : 0;
}
