// SPDX-License-Identifier: GPL-2.0-only
#include "confined/disassemble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <capstone/capstone.h>

#include "base/late.h"
#include "base/array.h"
#include "base/memory.h"
#include "confined/instructions.h"

#define FUNCTIONS(X)                                                                                         \
	X(cs_open)                                                                                           \
	X(cs_option)                                                                                         \
	X(cs_disasm)                                                                                         \
	X(cs_free)                                                                                           \
	X(cs_close)                                                                                          \
	X(cs_malloc)                                                                                         \
	X(cs_disasm_iter)                                                                                    \
	X(cs_regs_access)                                                                                    \
	X(cs_insn_group)                                                                                     \
	X(cs_version)

static const char *libcapstone_version(void)
{
	static char text[32];
	int major, minor;

	cs_version(&major, &minor);
	snprintf(text, sizeof(text), "%d.%d", major, minor);
	return text;
}

DEFINE_LATE(libcapstone, LIBCAPSTONE_SONAME, "libcapstone4", FUNCTIONS, libcapstone_version);

const char *disassemble_load_library(void)
{
	return late_load(&libcapstone) ? CODE_LIBRARY : NULL;
}

static void take_instruction(const cs_insn *insn, struct told_instruction *told)
{
	size_t length;

	told->size = insn->size;
	snprintf(told->text, sizeof(told->text), "%.31s %.159s", insn->mnemonic, insn->op_str);
	length = strlen(told->text);
	if (length && told->text[length - 1] == ' ')
		told->text[length - 1] = '\0';
}

const char *disassemble(const __u8 *code, size_t size, __u64 address, bool wide,
			struct told_instruction **list, size_t *nr)
{
	cs_insn *found;
	csh handle;

	*list = NULL;
	*nr = 0;
	if (!libcapstone.loaded)
		return CODE_LIBRARY;
	if (cs_open(CS_ARCH_X86, wide ? CS_MODE_64 : CS_MODE_32, &handle) != CS_ERR_OK)
		return CODE_FAILED;
	cs_option(handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_ON);
	*nr = cs_disasm(handle, code, size, address, 0, &found);
	*list = xcalloc(*nr + 1, sizeof(**list));
	for (size_t i = 0; i < *nr; i++)
		take_instruction(&found[i], &(*list)[i]);
	if (*nr)
		cs_free(found, *nr);
	cs_close(&handle);
	return *nr ? NULL : CODE_FAILED;
}

/* --- where addresses come from ------------------------------------------------------------------ */

/* DWARF's numbers: System V ABI for x86-64, figure 3.36. The first is the whole register. */
static const struct {
	x86_reg names[5];
	int number;
} registers[] = {
	{{X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH}, 0},
	{{X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH}, 1},
	{{X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH}, 2},
	{{X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH}, 3},
	{{X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL}, 4},
	{{X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL}, 5},
	{{X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL}, 6},
	{{X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL}, REGISTER_STACK},
	{{X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B}, 8},
	{{X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B}, 9},
	{{X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B}, 10},
	{{X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B}, 11},
	{{X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B}, 12},
	{{X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B}, 13},
	{{X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B}, 14},
	{{X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B}, 15},
};

/* rax, rdx, rcx, rsi, rdi, r8 to r11. */
#define WRITTEN_BY_CALLS 0xf37U

static int register_number(unsigned int name, bool whole)
{
	for (size_t i = 0; i < ARRAY_SIZE(registers); i++)
		for (size_t n = 0; n < (whole ? 1 : ARRAY_SIZE(registers[i].names)); n++)
			if (name != X86_REG_INVALID && registers[i].names[n] == name)
				return registers[i].number;
	return -1;
}

static struct memory_operand memory_of(const cs_insn *insn, const x86_op_mem *mem)
{
	bool to_next = mem->base == X86_REG_RIP, segment = mem->segment != X86_REG_INVALID;
	struct memory_operand memory = {.base = register_number(mem->base, true),
					.index = register_number(mem->index, true),
					.scale = mem->scale,
					.offset = mem->disp};

	if (to_next)
		memory.offset += insn->address + insn->size;
	memory.thread = mem->segment == X86_REG_FS;
	memory.fixed = !segment && (to_next || mem->base == X86_REG_INVALID) && memory.index < 0;
	if (segment && !memory.thread) /* the address is not that of the registers alone */
		memory.base = memory.index = -1;
	return memory;
}

/* Multiplications by a number, and shifts. */
static void take_product(const cs_insn *insn, struct instruction *taken)
{
	const cs_x86 *x86 = &insn->detail->x86;
	int nr = x86->op_count;
	const cs_x86_op *from = &x86->operands[nr == 3], *by = &x86->operands[nr == 3 ? 2 : 1];

	if ((nr != 2 && nr != 3) || by->type != X86_OP_IMM || x86->operands[0].type != X86_OP_REG ||
	    register_number(x86->operands[0].reg, true) < 0)
		return;
	if (insn->id == X86_INS_IMUL)
		taken->factor = by->imm;
	else if (insn->id == X86_INS_SHL && by->imm < 64)
		taken->factor = 1ULL << by->imm;
	else
		return;
	taken->kind = INSTRUCTION_PRODUCT;
	taken->source = from->type == X86_OP_REG ? register_number(from->reg, true) : -1;
}

static void take_store(const cs_insn *insn, struct instruction *taken)
{
	const cs_x86_op *to = &insn->detail->x86.operands[0], *from = &insn->detail->x86.operands[1];

	taken->source = from->type == X86_OP_REG ? register_number(from->reg, false) : -1;
	if (insn->id == X86_INS_MOV && to->type == X86_OP_MEM &&
	    (from->type == X86_OP_IMM || taken->source >= 0))
		taken->kind = INSTRUCTION_STORE;
}

static bool is_choice(unsigned int id)
{
	static const unsigned int ids[] = {
		X86_INS_CMOVA,	X86_INS_CMOVAE, X86_INS_CMOVB,	X86_INS_CMOVBE,
		X86_INS_CMOVE,	X86_INS_CMOVG,	X86_INS_CMOVGE, X86_INS_CMOVL,
		X86_INS_CMOVLE, X86_INS_CMOVNE, X86_INS_CMOVNO, X86_INS_CMOVNP,
		X86_INS_CMOVNS, X86_INS_CMOVO,	X86_INS_CMOVP,	X86_INS_CMOVS,
	};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		if (ids[i] == id)
			return true;
	return false;
}

static void take_kind(const cs_insn *insn, struct instruction *taken)
{
	const cs_x86 *x86 = &insn->detail->x86;
	const cs_x86_op *to = &x86->operands[0], *from = &x86->operands[1];

	take_product(insn, taken);
	if (x86->op_count != 2)
		return;
	if (to->type == X86_OP_MEM) {
		take_store(insn, taken);
		return;
	}
	if (insn->id == X86_INS_MOV && from->type == X86_OP_MEM && register_number(to->reg, false) >= 0)
		taken->kind = INSTRUCTION_PART;
	/* Less than 32 bits leave the others as they are. */
	if (insn->id == X86_INS_XOR && from->type == X86_OP_REG && from->reg == to->reg && to->size >= 4)
		taken->kind = INSTRUCTION_NUMBER;
	if (insn->id == X86_INS_MOV && from->type == X86_OP_IMM && to->size == 4) {
		taken->kind = INSTRUCTION_NUMBER;
		taken->memory.offset = (__u32)from->imm;
	}
	if (register_number(to->reg, true) < 0)
		return;
	if (insn->id == X86_INS_LEA) {
		/* Linkers make this of what loaded the place of a thread's variable. */
		taken->kind = from->mem.base == X86_REG_INVALID && taken->memory.fixed ? INSTRUCTION_NUMBER
										       : INSTRUCTION_ADDRESS;
	} else if (insn->id == X86_INS_MOV && from->type == X86_OP_REG) {
		taken->kind = INSTRUCTION_COPY;
		taken->source = register_number(from->reg, true);
	} else if (is_choice(insn->id) && from->type == X86_OP_REG) {
		taken->kind = INSTRUCTION_CHOICE;
		taken->source = register_number(from->reg, true);
	} else if (insn->id == X86_INS_MOV && from->type == X86_OP_MEM) {
		taken->kind = INSTRUCTION_LOAD;
	} else if (from->type == X86_OP_IMM && (insn->id == X86_INS_MOV || insn->id == X86_INS_MOVABS)) {
		taken->kind = INSTRUCTION_NUMBER;
		taken->memory.offset = from->imm;
	} else if (insn->id == X86_INS_ADD && from->type != X86_OP_IMM) {
		taken->kind = INSTRUCTION_SUM;
		taken->source = from->type == X86_OP_REG ? register_number(from->reg, true) : -1;
	} else if ((insn->id == X86_INS_ADD || insn->id == X86_INS_SUB) && from->type == X86_OP_IMM) {
		taken->kind = INSTRUCTION_ADD;
		taken->memory.offset = insn->id == X86_INS_ADD ? from->imm : -from->imm;
	}
	if ((taken->kind == INSTRUCTION_COPY || taken->kind == INSTRUCTION_CHOICE) && taken->source < 0)
		taken->kind = INSTRUCTION_OTHER;
}

static void take_flow(csh handle, const cs_insn *insn, struct instruction *taken)
{
	const cs_x86 *x86 = &insn->detail->x86;
	bool jump = cs_insn_group(handle, insn, X86_GRP_JUMP);

	if (cs_insn_group(handle, insn, X86_GRP_CALL)) {
		taken->writes |= WRITTEN_BY_CALLS;
		taken->kind = INSTRUCTION_CALL;
		taken->callee =
			x86->op_count == 1 && x86->operands[0].type == X86_OP_IMM ? x86->operands[0].imm : 0;
	}
	taken->ends = insn->id == X86_INS_JMP || insn->id == X86_INS_LJMP || insn->id == X86_INS_UD2 ||
		      insn->id == X86_INS_HLT || cs_insn_group(handle, insn, X86_GRP_RET);
	if (jump && x86->op_count == 1 && x86->operands[0].type == X86_OP_IMM)
		taken->jump = x86->operands[0].imm;
	else
		taken->jumps_anywhere = jump;
}

static void take_parts(csh handle, const cs_insn *insn, struct instruction *taken)
{
	const cs_x86 *x86 = &insn->detail->x86;
	cs_regs read, written;
	uint8_t nr_read, nr_written;
	int in_memory = 0;

	*taken = (struct instruction){.address = insn->address,
				      .memory = {.base = -1, .index = -1, .scale = 1}};
	for (int i = 0; i < x86->op_count; i++)
		if (x86->operands[i].type == X86_OP_MEM) {
			taken->memory = memory_of(insn, &x86->operands[i].mem);
			taken->width = x86->operands[i].size <= sizeof(__u64) ? x86->operands[i].size : 0;
			taken->stores = x86->operands[i].access & CS_AC_WRITE;
			in_memory++;
		}
	taken->accesses = in_memory == 1 && insn->id != X86_INS_LEA && insn->id != X86_INS_NOP;
	if (cs_regs_access(handle, insn, read, &nr_read, written, &nr_written) != CS_ERR_OK) {
		taken->writes = -1;
		nr_read = nr_written = 0;
	}
	for (int i = 0; i < nr_read; i++)
		taken->of_stack |= !in_memory && read[i] == X86_REG_RSP;
	for (int i = 0; i < nr_written; i++) {
		int number = register_number(written[i], false);

		taken->writes |= number < 0 ? 0 : 1U << number;
	}
	take_kind(insn, taken);
	take_flow(handle, insn, taken);
}

void instructions_read(const __u8 *code, size_t size, __u64 address, struct instruction **list, size_t *nr)
{
	size_t room = 0;
	uint64_t at = address;
	cs_insn *insn;
	csh handle;

	*list = NULL;
	*nr = 0;
	if (!libcapstone.loaded || cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(handle);
	while (insn && cs_disasm_iter(handle, &code, &size, &at, insn)) {
		*list = xroom(*list, *nr, &room, sizeof(**list));
		take_parts(handle, insn, &(*list)[(*nr)++]);
	}
	if (insn)
		cs_free(insn, 1);
	cs_close(&handle);
}
