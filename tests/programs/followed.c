// SPDX-License-Identifier: GPL-2.0-only
/*
 * followed: a store, or a load, in each of some functions to a page that is touched for the first time. To
 * know what is there, the code before must be followed, over what is easily left out on the way. The names of
 * functions say that.
 */
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	 4096
#define APART	 __attribute__((noinline, noipa))
#define CLOBBERS "rax", "rcx", "memory"
/* A frame with slots that no variable describes. A large one begins on a page of its own. */
#define FRAME(size)	"sub $" size ", %%rsp\n.cfi_adjust_cfa_offset " size "\n"
#define FRAME_END(size) "add $" size ", %%rsp\n.cfi_adjust_cfa_offset -" size "\n"

struct wide {
	char first[PAGE];
	long second;
	char rest[PAGE - sizeof(long)];
};

struct pair {
	long low, high;
};

struct table {
	long wide;
	unsigned int offset;
	int difference, narrow;
};

static char *next;

static void *page(void)
{
	next += 2 * PAGE;
	return next;
}

APART void one_of_two_variables(long which)
{
	struct wide one, other;

	asm volatile("lea %[one], %%rax\nlea %[other], %%rcx\ntest %[which], %[which]\ncmovne %%rcx, %%rax\n"
		     "movq $1, 4096(%%rax)"
		     : [one] "=m"(one), [other] "=m"(other)
		     : [which] "r"(which)
		     : CLOBBERS);
}

APART void one_of_two_kept(long which)
{
	struct wide one, other;

	asm volatile(
		"lea %[one], %%rax\nlea %[other], %%rcx\n" FRAME(
			"256") "test %[which], %[which]\nje 1f\n"
			       "mov %%rax, 8(%%rsp)\njmp 2f\n1: mov %%rcx, 8(%%rsp)\n2: mov 8(%%rsp), %%rcx\n"
			       "movq $1, 4096(%%rcx)\n" FRAME_END("256")
		: [one] "=m"(one), [other] "=m"(other)
		: [which] "r"(which)
		: CLOBBERS);
}

static __thread long own __attribute__((used, aligned(PAGE))), other_own __attribute__((used, aligned(PAGE)));

APART void one_of_two_of_threads(long which)
{
	asm volatile("mov %%fs:0, %%rax\nlea other_own@tpoff(%%rax), %%rcx\nlea own@tpoff(%%rax), %%rax\n"
		     "test %0, %0\ncmovne %%rcx, %%rax\nmovq $1, (%%rax)" ::"r"(which)
		     : CLOBBERS);
}

APART void number_and_index(struct pair *pair, long index)
{
	asm volatile("mov $8, %%rax\nadd %1, %%rax\nadd %0, %%rax\nmovq $1, (%%rax)" ::"r"(pair), "r"(index)
		     : CLOBBERS);
}

APART void one_of_two_numbers(struct pair *pair, long which)
{
	asm volatile("mov $8, %%rcx\nxor %%eax, %%eax\ntest %1, %1\ncmovne %%rcx, %%rax\nadd %0, %%rax\n"
		     "movq $1, (%%rax)" ::"r"(pair),
		     "r"(which)
		     : CLOBBERS);
}

APART void byte_is_zero(struct pair *pair, const struct table *table)
{
	asm volatile("mov (%1), %%rcx\nxor %%cl, %%cl\nadd %0, %%rcx\nmovq $1, (%%rcx)" ::"r"(pair),
		     "r"(table)
		     : CLOBBERS);
}

APART long offset_of_32_bits(struct pair *pair, const struct table *table)
{
	return *(long *)((char *)pair + table->offset);
}

APART long offset_with_sign(struct pair *pair, const struct table *table)
{
	return *(long *)((char *)pair + table->difference);
}

APART void kept_and_changed(struct pair *pair)
{
	asm volatile(FRAME("24") "mov %0, 8(%%rsp)\naddq $8, 8(%%rsp)\nmov 8(%%rsp), %%rax\n"
				 "movq $1, (%%rax)\n" FRAME_END("24")::"r"(pair)
		     : CLOBBERS);
}

APART void kept_and_written_over(struct pair *pair)
{
	asm volatile(FRAME("24") "mov %0, 8(%%rsp)\nlea 8(%0), %%rcx\nmov %%ecx, 8(%%rsp)\n"
				 "mov 8(%%rsp), %%rax\nmovq $1, (%%rax)\n" FRAME_END("24")::"r"(pair)
		     : CLOBBERS);
}

/* What is stored to the variable is a part of it. */
APART void kept_is_wider(struct table *table)
{
	asm volatile("imul $3, (%0), %%rax\nmov %%eax, 16(%0)\n" FRAME(
			     "0x40000") "mov %%rax, 8(%%rsp)\n" FRAME_END("0x40000")::"r"(table)
		     : CLOBBERS);
}

APART void kept_is_a_part(struct table *table)
{
	asm volatile(
		"mov (%0), %%rax\n" FRAME("0x60000") "mov %%eax, 8(%%rsp)\n" FRAME_END("0x60000")::"r"(table)
		: CLOBBERS);
}

/* Calls a function whose frame is on pages of its own. */
static void further(void (*function)(long), size_t pages)
{
	char space[pages * PAGE];

	asm volatile("" ::"r"(space));
	function(1);
	asm volatile("" ::"r"(space));
}

int main(void)
{
	struct table table = {8, 8, 8, 8};

	next = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	further(one_of_two_variables, 16);
	further(one_of_two_kept, 32);
	/* The C library has touched the variables of threads; a child has them anew. */
	if (!fork()) {
		one_of_two_of_threads(1);
		_exit(0);
	}
	wait(NULL);
	number_and_index(page(), 0);
	one_of_two_numbers(page(), 1);
	byte_is_zero(page(), &table);
	offset_of_32_bits(page(), &table);
	offset_with_sign(page(), &table);
	kept_and_changed(page());
	kept_and_written_over(page());
	kept_is_wider(&table);
	kept_is_a_part(&table);
	return 0;
}
