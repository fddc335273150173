/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Walks a user's stack by tables: the address leads to its mapping, the mapping to a file, the file to a row,
 * the row to a rule, and the rule gives the caller's registers. If there is no row, the frame pointer is
 * tried; it is accepted if it leads to a return address, and the frame is then marked as guessed. The
 * interrupted function may have no frame, though: then its return address is at rsp.
 *
 * Functions with a loop are not static: the kernel then verifies each once, by itself. Such functions are
 * verified even if nothing calls them, so each first checks whether there are tables: without tables the maps
 * do not exist.
 */
#pragma once

#include "task.bpf.h"
#include "words.bpf.h"
#include "unwind_maps.bpf.h"

/* Set by user space before loading. */
const volatile _Bool tables_walk; /* the user's stacks are walked by tables */
const volatile _Bool precise; /* samples are precise: their ip is that of the sampled instruction, not of the
				 interrupt, unlike the other registers */

/* A cache of rules that were looked up before: most samples come through the same calls. */
#define UNWIND_CACHED 1024 /* a power of two */

struct unwind_cached {
	__u64 at;
	__u64 tag; /* of the walk */
	__u64 rule;
};

/* Words of the user's stack that are copied at once: they usually hold several frames. */
#define UNWIND_COPIED 64 /* a power of two */
#define UNWIND_BELOW  6	 /* of these, words below the requested address: other saved registers are there */

struct unwind_walk {
	__u64 ip, sp;
	struct unwind_register {
		__u64 value;
		__u64 at; /* the address of the saved value, which is read only if it is needed (few frames
			     need it); 0: `value` is valid */
	} bp, bx;
	__u64 at;  /* where the row is looked up: not always ip, since a return address may lie behind its
		      function */
	__u64 tag; /* the list's serial and the files' epoch; UNWIND_NO_TAG if there is no list */
	/* The process's list: where it is, and how many mappings it has. */
	__u32 list, nr;
	/* The mapping that `at` lies in; the next frame often lies in the same. */
	__u64 begin, end, bias;
	__u32 file;
	__u32 listed;  /* the mapping was found in the list, not by the kernel's own records */
	__u32 guessed; /* guessed frames so far */
	/* The page of that file in which a row was looked up last: */
	__u64 page; /* its address; 1: none yet */
	__u64 rows; /* struct unwind_page */
	__u32 page_file;
	__u32 rules;
	__u64 mark;   /* of the frame that was found last: FRAME_GUESSED or FRAME_INTERRUPTED */
	__u64 copied; /* the address that the copy begins at; 0: there is no copy */
	/* The members above are set to zero when a walk begins. */
	__u64 copy[UNWIND_COPIED];
	struct unwind_cached cached[UNWIND_CACHED];
};

#define UNWIND_NO_TAG (~0ULL)

static __always_inline struct unwind_block *unwind_block_of(__u32 position)
{
	__u32 zero = 0, number = position >> UNWIND_WORD_BITS;
	void *map = bpf_map_lookup_elem(&unwind_blocks, &number);

	return map ? bpf_map_lookup_elem(map, &zero) : NULL;
}

static __always_inline __u64 unwind_two_words(const struct unwind_block *block, __u32 position)
{
	return *(const __u64 *)&block->words[position & (UNWIND_BLOCK_WORDS - 2)];
}

#define MAPPING_WORDS (sizeof(struct unwind_mapping) / 4)

/* Returns 1 if a <= b, else 0, for numbers below 2^63. Has no branch: the verifier would follow both ways
 * each time, and the CPU would often mispredict it. */
static __always_inline __u32 unwind_no_later(__u64 a, __u64 b)
{
	__u64 sign = (a - b - 1) >> 63;

	barrier_var(sign);
	return sign;
}

/* --- what the kernel knows ---------------------------------------------------------------------- */

/* lib/maple_tree.c, include/linux/maple_tree.h. */
#define MAPLE_HEIGHT_MAX 31
#define MAPLE_NODE_MASK	 255ULL
#define MAPLE_TYPE(node) ((node) >> 3 & 15)

__noinline __u64 kernel_word(__u64 address)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (const void *)address);
	return word;
}

/* Returns the entry of a maple tree's node for the address: another node, or in a leaf what is mapped there.
 * Follows lib/maple_tree.c, mtree_lookup_walk(). */
__noinline __u64 unwind_look_in_node(__u64 node, __u64 at)
{
	const struct unwind_kernel *kernel;
	const struct unwind_node *layout;
	__u32 zero = 0, slot;

	kernel = tables_walk ? bpf_map_lookup_elem(&unwind_kernels, &zero) : NULL;
	if (!kernel)
		return 0;
	layout = &kernel->nodes[MAPLE_TYPE(node) == kernel->gaps];
	node &= ~MAPLE_NODE_MASK;
#pragma clang loop unroll(disable)
	for (slot = 0; slot < 15 && slot < layout->nr_pivots; slot++) {
		__u64 pivot = kernel_word(node + layout->pivots + 8 * slot);

		if (pivot >= at || (slot && !pivot)) /* 0: no further pivot, so this is the last slot */
			break;
	}
	return kernel_word(node + layout->slots + 8 * slot);
}

/* Returns the kernel's vm_area_struct of the current process's mapping that contains the address; 0 if there
 * is none. The tree is read without its lock, so nothing that is read from it is trusted. */
static __always_inline __u64 unwind_find_area(const struct unwind_kernel *kernel, __u64 at)
{
	__u64 mm = kernel_word(bpf_get_current_task() + kernel->mm), entry = kernel_word(mm + kernel->root);
	__u32 leaf = 0;

	if (!mm || (entry & 3) != 2) /* a single mapping is stored in the root itself, without a node */
		return 0;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < MAPLE_HEIGHT_MAX && !leaf; i++) {
		leaf = MAPLE_TYPE(entry) <= kernel->leaf;
		entry = unwind_look_in_node(entry, at);
	}
	return kernel_word(entry + kernel->owner) == mm ? entry : 0;
}

/* Finds the mapping that contains walk->at in the kernel's own records; returns 0, or -1 if there is none. */
__noinline int unwind_find_vma(struct unwind_walk *walk)
{
	const struct unwind_kernel *kernel;
	const struct unwind_named *named;
	struct unwind_inode key = {};
	__u64 area, file, inode;
	__u32 zero = 0;

	if (!tables_walk || !walk)
		return -1;
	kernel = bpf_map_lookup_elem(&unwind_kernels, &zero);
	if (!kernel || !kernel->mm)
		return -1;
	area = unwind_find_area(kernel, walk->at);
	walk->begin = kernel_word(area + kernel->start);
	walk->end = kernel_word(area + kernel->end);
	if (!area || walk->at < walk->begin || walk->at >= walk->end) {
		walk->end = 0;
		return -1;
	}
	walk->bias = walk->begin;
	walk->file = UNWIND_NO_FILE;
	walk->listed = 0;
	file = kernel_word(area + kernel->file);
	if (file) {
		inode = kernel_word(file + kernel->inode);
		key.number = kernel_word(inode + kernel->number);
		key.size = kernel_word(inode + kernel->size);
		key.device = (__u32)kernel_word(kernel_word(inode + kernel->super) + kernel->device);
		walk->bias -= kernel_word(area + kernel->page) << 12;
	} else if (walk->begin !=
		   kernel_word(kernel_word(bpf_get_current_task() + kernel->mm) + kernel->vdso)) {
		return 0;
	}
	named = bpf_map_lookup_elem(&unwind_inodes, &key);
	if (named) {
		walk->file = named->file;
		walk->bias += named->bias;
	}
	return 0;
}

/* Finds the mapping that contains walk->at in the process's list; returns 0, or -1 if there is none. */
__noinline int unwind_find_mapping(struct unwind_walk *walk)
{
	const struct unwind_block *block;
	__u32 first, half;

	if (!tables_walk || !walk)
		return -1;
	block = walk->nr ? unwind_block_of(walk->list) : NULL;
	if (!block)
		return -1;
	first = walk->list + sizeof(struct unwind_list) / 4;
#pragma clang loop unroll(disable)
	for (__u32 i = 0, nr = walk->nr; i < 16 && nr > 1; i++, nr -= half) {
		__u64 begin;

		half = nr / 2;
		begin = unwind_two_words(block, first + half * MAPPING_WORDS);
		first += (half & -unwind_no_later(begin, walk->at)) * MAPPING_WORDS;
	}
	walk->begin = unwind_two_words(block, first);
	walk->end = unwind_two_words(block, first + 2);
	walk->bias = unwind_two_words(block, first + 4);
	walk->file = unwind_two_words(block, first + 6);
	walk->listed = 1;
	if (walk->at >= walk->begin && walk->at < walk->end)
		return 0;
	return -1;
}

/* Finds the mapping that contains walk->at: in the list, or, if the list does not have it yet, in the
 * kernel's records. Returns 0, or -1 if there is none. */
static __always_inline int unwind_find(struct unwind_walk *walk)
{
	if (walk->at >= walk->begin && walk->at < walk->end)
		return 0;
	return unwind_find_mapping(walk) ? unwind_find_vma(walk) : 0;
}

/* Returns the number of the rule of the page's last row that begins at or before `low_bits`. */
__noinline __u32 unwind_search(__u32 position, __u32 nr, __u32 low_bits)
{
	const struct unwind_block *block;
	__u32 half;

	if (!tables_walk)
		return 0;
	block = unwind_block_of(position);
	if (!block)
		return 0;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < 17 && nr > 1; i++, nr -= half) {
		__u32 row;

		half = nr / 2;
		row = block->words[(position + half) & (UNWIND_BLOCK_WORDS - 1)] & UNWIND_PAGE_MASK;
		position += half & -unwind_no_later(row, low_bits);
	}
	return block->words[position & (UNWIND_BLOCK_WORDS - 1)] >> 16;
}

/* Makes the page of the file's table that has the address the walk's page. Returns -1, or the frame to use if
 * there is no such page: enum unwind_frame. */
__noinline int unwind_find_page(struct unwind_walk *walk, __u64 address)
{
	const struct unwind_block *block;
	struct unwind_files *files;
	struct unwind_file *file;
	__u32 zero = 0;
	__u64 page;

	if (!tables_walk || !walk)
		return FRAME_NO_TABLE;
	files = bpf_map_lookup_elem(&unwind_files, &zero);
	if (!files || walk->file == UNWIND_NO_FILE)
		return FRAME_NO_TABLE;
	file = &files->list[walk->file & (UNWIND_FILES - 1)];
	if (!file->used)
		file->used = 1;
	if (!*(volatile __u32 *)&file->nr_pages)
		return FRAME_NO_TABLE;
	page = (address - file->base) >> UNWIND_PAGE_SHIFT;
	if (address < file->base || page >= file->nr_pages)
		return FRAME_NONE;
	block = unwind_block_of(file->pages);
	if (!block)
		return FRAME_NO_TABLE;
	walk->rows = unwind_two_words(block, file->pages + 2 * (__u32)page);
	walk->rules = file->rules;
	walk->page = address & ~(__u64)UNWIND_PAGE_MASK;
	walk->page_file = walk->file;
	return -1;
}

/* Returns the rule (struct unwind_rule) at an address of the walk's file; its frame may be FRAME_NO_TABLE. */
static __always_inline __u64 unwind_rule_at(struct unwind_walk *walk, __u64 address)
{
	const struct unwind_block *block;
	__u32 rule;
	int none;

	if (walk->page != (address & ~(__u64)UNWIND_PAGE_MASK) || walk->page_file != walk->file) {
		none = unwind_find_page(walk, address);
		if (none >= 0)
			return none;
	}
	rule = unwind_search((__u32)walk->rows, walk->rows >> 32, address & UNWIND_PAGE_MASK);
	block = unwind_block_of(walk->rules);
	return block ? unwind_two_words(block, walk->rules + 2 * rule) : FRAME_NO_TABLE;
}

static __always_inline struct unwind_cached *unwind_cached_of(struct unwind_walk *walk)
{
	return &walk->cached[(walk->at * 0x9e3779b97f4a7c15ULL) >> 54 & (UNWIND_CACHED - 1)];
}

/* Returns the rule at walk->at, if the cache does not have it, and puts it there. */
__noinline __u64 unwind_look_up(struct unwind_walk *walk)
{
	struct unwind_cached *cached;
	__u32 frame;
	__u64 rule;

	if (!tables_walk || !walk || unwind_find(walk))
		return FRAME_NO_TABLE;
	rule = unwind_rule_at(walk, walk->at - walk->bias);
	/* In a system call, ip is behind the syscall instruction, which may be the last one of its
	 * function. */
	if ((rule & 15) == FRAME_NONE && walk->at == walk->ip)
		return unwind_rule_at(walk, walk->at - 1 - walk->bias);
	frame = rule & 15;
	if (frame != FRAME_NONE && frame != FRAME_NO_TABLE && walk->listed) {
		cached = unwind_cached_of(walk);
		cached->at = walk->at;
		cached->tag = walk->tag;
		cached->rule = rule;
	}
	return rule;
}

static __always_inline __u64 unwind_rule(struct unwind_walk *walk)
{
	const struct unwind_cached *cached = unwind_cached_of(walk);

	return likely(cached->at == walk->at && cached->tag == walk->tag) ? cached->rule
									  : unwind_look_up(walk);
}

/* --- the user's memory ---------------------------------------------------------------------------- */

/* Copies the user's stack so that the copy has the two words at the address. Returns their index in the copy,
 * or -1 if they can't be read. */
__noinline int unwind_copy(struct unwind_walk *walk, __u64 address)
{
	if (!tables_walk || !walk)
		return -1;
	walk->copied = address - 8 * UNWIND_BELOW;
	if (!bpf_probe_read_user(walk->copy, sizeof(walk->copy), (void *)walk->copied))
		return UNWIND_BELOW;
	/* This happens at the stack's end, or if a page was never touched: read just the two words. */
	walk->copied = 0;
	return bpf_probe_read_user(walk->copy, 2 * sizeof(walk->copy[0]), (void *)address) ? -1 : 0;
}

/* Reads two words. Returns 0, or -1 if they can't be read. */
static __always_inline int unwind_read(struct unwind_walk *walk, __u64 address, __u64 words[2])
{
	__u64 offset = address - walk->copied;
	int at = offset / 8;

	if (unlikely(!walk->copied || offset > 8 * (UNWIND_COPIED - 2) || offset & 7)) {
		at = unwind_copy(walk, address);
		if (at < 0)
			return -1;
	}
	words[0] = walk->copy[at & (UNWIND_COPIED - 1)];
	words[1] = walk->copy[(at + 1) & (UNWIND_COPIED - 1)];
	return 0;
}

/* Whether the instruction before the address is a call: opcode e8, or ff with /2. */
static __always_inline _Bool unwind_follows_call(__u64 address)
{
	__u8 code[8];

	if (bpf_probe_read_user(code, sizeof(code), (void *)(address - sizeof(code))))
		return 0;
#define CALL_AT(i) (code[8 - (i)] == 0xff && (code[9 - (i)] & 0x38) == 0x10)
	return code[3] == 0xe8 || CALL_AT(2) || CALL_AT(3) || CALL_AT(4) || CALL_AT(6) || CALL_AT(7);
#undef CALL_AT
}

#define UNWIND_FRAME_MOST (64UL << 20) /* larger frames are taken for errors */

/* Makes a register's value valid. Returns 0, or -1 if the memory where it was saved can't be read. */
static __always_inline int unwind_fetch(struct unwind_walk *walk, struct unwind_register *which)
{
	__u64 words[2];

	if (!which->at)
		return 0;
	if (unwind_read(walk, which->at, words))
		return -1;
	*which = (struct unwind_register){.value = words[0]};
	return 0;
}

/* Returns the target of the call before the address, if the instruction has it or has the place where it is;
 * else 0. */
__noinline __u64 unwind_called(__u64 address)
{
	__u64 target = 0;
	__u8 code[8];
	__s32 offset;

	if (bpf_probe_read_user(code, sizeof(code), (void *)(address - sizeof(code))))
		return 0;
	__builtin_memcpy(&offset, code + 4, sizeof(offset));
	if (code[3] == 0xe8)
		return address + offset;
	if (code[2] == 0xff && code[3] == 0x15)
		bpf_probe_read_user(&target, sizeof(target), (void *)(address + offset));
	return target;
}

#define ENDBR64 0xfa1e0ff3U

/* Returns the first 8 bytes of a function's code behind endbr64, at which *at points then; 0 if they can't be
 * read. */
static __always_inline __u64 unwind_entry(__u64 *at)
{
	__u64 code = 0;

	bpf_probe_read_user(&code, sizeof(code), (void *)*at);
	if ((__u32)code == ENDBR64) {
		*at += 4;
		bpf_probe_read_user(&code, sizeof(code), (void *)*at);
	}
	return code;
}

#define UNWIND_LEAF_MOST 65536 /* bytes of a function without a frame */

/* Whether a function at this address, or the one that the PLT's entry there leads to, may contain ip and does
 * not begin by saving rbp. */
__noinline int unwind_is_frameless(__u64 function, __u64 ip)
{
	__u64 at = function, code = unwind_entry(&at);
	__u32 bnd = (__u8)code == 0xf2;

	if ((code >> 8 * bnd & 0xffff) == 0x25ff) { /* jmp *…(%rip) */
		at += bnd + 6 + (__s32)(code >> 8 * (bnd + 2));
		if (bpf_probe_read_user(&function, sizeof(function), (void *)at))
			return 0;
		at = function;
		code = unwind_entry(&at);
	}
	return code && function <= ip && ip - function < UNWIND_LEAF_MOST && (__u8)code != 0x55;
}

/* Whether rbp, which leads to `beyond` as a return address, is of the function that contains `caller`, not of
 * the one with walk->ip: whose entry is nearer to what was called there. */
static __always_inline _Bool unwind_is_callers(const struct unwind_walk *walk, __u64 caller, __u64 beyond)
{
	__u64 called = unwind_called(beyond);

	return called && caller >= called && (walk->ip < called || caller < walk->ip);
}

/* mov %rsp, %rbp, in both of its encodings */
static __always_inline _Bool unwind_sets_frame(__u64 code)
{
	return (code & 0xffffff) == 0xe58948 || (code & 0xffffff) == 0xec8b48;
}

/* How far above rsp the return address is at an instruction before which a function has no frame yet, or none
 * any more: 0 or 8 bytes; -1: another instruction. `code`: what is there; `before`: the byte before it. */
static __always_inline int unwind_above(__u64 code, __u8 before)
{
	__u8 first = code;

	if (first == 0xc3 || first == 0xc2 || (code & 0xffff) == 0xc3f3) /* ret */
		return 0;
	if ((code & 0xffff) == 0x25ff || (code & 0xffffff) == 0x25fff2) /* jmp *…(%rip), as in the PLT */
		return 0;
	if ((__u32)code == ENDBR64 || (first == 0x55 /* push %rbp */ && unwind_sets_frame(code >> 8)))
		return 0;
	return before == 0x55 && unwind_sets_frame(code) ? 8 : -1;
}

/* Goes from the function that was interrupted to its caller, if it has no frame: it has not set it up yet,
 * has left it, or never has one. Returns 0, or -1 if it seems to have one. */
__noinline int unwind_guess_frameless(struct unwind_walk *walk)
{
	__u64 saved[2], frame[2], called;
	__u64 code[2];
	int above;

	if (!tables_walk || !walk || walk->at != walk->ip ||
	    bpf_probe_read_user(code, sizeof(code), (void *)(walk->ip - 8)))
		return -1;
	above = unwind_above(code[1], code[0] >> 56);
	if (unwind_read(walk, walk->sp + (above > 0 ? 8 : 0), saved) || saved[0] < 4096 ||
	    !unwind_follows_call(saved[0]))
		return -1;
	if (above < 0) {
		called = unwind_called(saved[0]);
		if (!(called && unwind_is_frameless(called, walk->ip)) &&
		    (unwind_read(walk, walk->bp.value, frame) ||
		     !unwind_is_callers(walk, saved[0], frame[1])))
			return -1;
	}
	walk->at = saved[0] - 1;
	if (unwind_find(walk)) {
		walk->at = walk->ip;
		return -1;
	}
	walk->sp += above > 0 ? 16 : 8;
	walk->bx = (struct unwind_register){0};
	walk->ip = saved[0];
	walk->guessed++;
	walk->mark = FRAME_GUESSED;
	return 0;
}

/* Goes to the caller by the frame pointer. Returns 0, or `why`, the reason why tables could not be used, if
 * the frame pointer does not lead to a return address. */
__noinline int unwind_guess(struct unwind_walk *walk, int why)
{
	__u64 saved[2], bp;

	if (!tables_walk || !walk)
		return STACK_NO_TABLE;
	if (unwind_fetch(walk, &walk->bp))
		return why;
	bp = walk->bp.value;
	if (bp < walk->sp || bp - walk->sp > UNWIND_FRAME_MOST || bp & 7 || unwind_read(walk, bp, saved))
		return why;
	walk->at = saved[1] - 1;
	if (unwind_find(walk) || !unwind_follows_call(saved[1]))
		return why;
	walk->sp = bp + sizeof(saved);
	walk->bp.value = saved[0];
	walk->bx = (struct unwind_register){0};
	walk->ip = saved[1];
	walk->guessed++;
	walk->mark = FRAME_GUESSED;
	return 0;
}

/* Offsets of the registers that the kernel has saved before it called a signal's handler, from the stack
 * pointer at the address that the handler returns to: struct ucontext,
 * arch/x86/include/uapi/asm/{ucontext,sigcontext}.h. */
#define SIGNAL_BP 120
#define SIGNAL_BX 128
#define SIGNAL_SP 160

static __always_inline int unwind_signal(struct unwind_walk *walk)
{
	__u64 registers[2]; /* rsp, rip */

	if (bpf_probe_read_user(registers, sizeof(registers), (void *)(walk->sp + SIGNAL_SP)))
		return STACK_UNREADABLE;
	walk->bp.at = walk->sp + SIGNAL_BP;
	walk->bx.at = walk->sp + SIGNAL_BX;
	walk->sp = registers[0];
	walk->ip = walk->at = registers[1];
	walk->mark = FRAME_INTERRUPTED;
	return 0;
}

/* Goes from a frame to its caller. Returns 0, or the reason why there is no caller: enum stack_end. STUCK is
 * added if the tables have no usable rule, so that the frame pointer may be tried. */
#define STUCK 0x100
static __always_inline int unwind_step(struct unwind_walk *walk)
{
	struct unwind_rule rule;
	__u64 word, frame, saved[2];

	walk->mark = 0;
	word = unwind_rule(walk);
	__builtin_memcpy(&rule, &word, sizeof(rule));
	if ((rule.frame == FRAME_BP || rule.frame == FRAME_AT_BP || rule.frame == FRAME_SWITCH ||
	     rule.bp == BP_AT_BP) &&
	    unwind_fetch(walk, &walk->bp))
		return STACK_UNREADABLE;
	switch (rule.frame) {
	case FRAME_END:
		return STACK_WHOLE;
	case FRAME_SIGNAL:
		return unwind_signal(walk);
	case FRAME_SP:
		frame = walk->sp + rule.offset;
		break;
	case FRAME_BP:
	case FRAME_SWITCH:
		frame = walk->bp.value + rule.offset;
		break;
	case FRAME_BX:
		if (unwind_fetch(walk, &walk->bx))
			return STACK_UNREADABLE;
		frame = walk->bx.value + rule.offset;
		break;
	case FRAME_PLT:
		frame = walk->sp + 8 + ((walk->at & 15) >= (__u32)rule.offset ? 8 : 0);
		break;
	case FRAME_AT_SP:
	case FRAME_AT_BP:
		frame = (rule.frame == FRAME_AT_SP ? walk->sp : walk->bp.value) + rule.offset;
		if (unwind_read(walk, frame, saved))
			return STACK_UNREADABLE;
		frame = saved[0];
		break;
	default:
		return STUCK | (rule.frame == FRAME_NO_TABLE ? STACK_NO_TABLE : STACK_NO_ROW);
	}
	if (((frame <= walk->sp || frame - walk->sp > UNWIND_FRAME_MOST) && rule.frame != FRAME_SWITCH) ||
	    unwind_read(walk, frame - sizeof(saved), saved))
		return STACK_UNREADABLE;
	/* A saved frame pointer next to the return address was read together with it. */
	if (rule.bp == BP_AT_FRAME && rule.bp_offset == -16)
		walk->bp = (struct unwind_register){.value = saved[0]};
	else if (rule.bp == BP_AT_FRAME)
		walk->bp.at = frame + rule.bp_offset;
	else if (rule.bp == BP_AT_BP)
		walk->bp.at = walk->bp.value + rule.bp_offset;
	else if (rule.bp == BP_LOST)
		walk->bp = (struct unwind_register){0};
	if (rule.bx < 0)
		walk->bx.at = frame + 8 * rule.bx;
	else if (rule.bx == BX_LOST)
		walk->bx = (struct unwind_register){0};
	walk->sp = frame;
	walk->ip = saved[1];
	walk->at = saved[1] - 1;
	return saved[1] ? 0 : STACK_WHOLE; /* the kernel starts threads with 0 in place of a return address */
}

#define USER_CS_64 0x33 /* arch/x86/include/asm/segment.h, __USER_CS */

/* Takes the user's registers: those of the sample, or those that the kernel has saved at its entry. Returns
 * whether they belong to 64-bit code. */
static __always_inline _Bool unwind_registers(struct bpf_perf_event_data *ctx, struct unwind_walk *walk)
{
	const struct pt_regs *regs;
	__u64 cs = ctx->regs.cs, ip;

	walk->sp = ctx->regs.rsp;
	/* In a precise sample the code may be the user's while the other registers are already the
	 * kernel's. */
	if ((cs & 3) == 3 && (__s64)walk->sp >= 0) {
		walk->ip = ctx->regs.rip;
		walk->bp.value = ctx->regs.rbp;
		walk->bx.value = ctx->regs.rbx;
		/* ip is that of the sampled instruction; the kernel's call chain begins at that of the
		 * interrupt, which the other registers belong to. 1 skips PERF_CONTEXT_USER. */
		if (precise &&
		    bpf_get_stack(ctx, &ip, sizeof(ip), BPF_F_USER_STACK | 1 /* skip mark */) == sizeof(ip))
			walk->ip = ip;
	} else {
		regs = (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
		if (bpf_probe_read_kernel(&walk->ip, sizeof(__u64), &regs->rip) ||
		    bpf_probe_read_kernel(&walk->sp, sizeof(__u64), &regs->rsp) ||
		    bpf_probe_read_kernel(&walk->bp.value, sizeof(__u64), &regs->rbp) ||
		    bpf_probe_read_kernel(&walk->bx.value, sizeof(__u64), &regs->rbx) ||
		    bpf_probe_read_kernel(&cs, sizeof(cs), &regs->cs))
			return 0;
	}
	walk->at = walk->ip;
	return (cs & 0xffff) == USER_CS_64;
}

/* Prepares to walk the current process's stack. Returns false if it can't be walked by tables. */
static __always_inline _Bool unwind_begin(struct bpf_perf_event_data *ctx, struct unwind_walk *walk)
{
	__u32 pid = current_ids() >> 32;
	const struct unwind_process *process = bpf_map_lookup_elem(&unwind_processes, &pid);
	const struct unwind_kernel *kernel;
	const struct unwind_files *files;
	const struct unwind_block *block;
	__u32 serial, zero = 0;
	__u64 head;

	__builtin_memset(walk, 0, offsetof(struct unwind_walk, copy));
	walk->page = 1;
	walk->tag = UNWIND_NO_TAG;
	if (process && process->list) {
		walk->list = process->list;
		serial = process->serial;
		block = unwind_block_of(walk->list);
		head = block ? unwind_two_words(block, walk->list) : 0;
		files = bpf_map_lookup_elem(&unwind_files, &zero);
		if ((__u32)head == serial && files) {
			walk->nr = head >> 32;
			walk->tag = (__u64)serial << 32 | files->epoch;
		}
	}
	/* Without a list, mappings are looked up in the kernel's records, if their layout is known. */
	if (!walk->nr) {
		kernel = bpf_map_lookup_elem(&unwind_kernels, &zero);
		if (!kernel || !kernel->mm)
			return 0;
	}
	return unwind_registers(ctx, walk);
}
