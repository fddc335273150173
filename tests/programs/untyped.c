// SPDX-License-Identifier: GPL-2.0-only
/*
 * untyped: a page that is touched for the first time in each of some functions. The type of what they access
 * there can't be told, for the reason that the function is named after.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE  4096
#define APART __attribute__((noinline))

struct opaque;

static char *next;

/* Memory of which no page was touched. */
static void *page(void)
{
	next += PAGE;
	return next;
}

APART void incomplete(struct opaque *to)
{
	asm volatile("movb $1, (%0)" ::"r"(to) : "memory");
}

/* Two operands are in memory. */
APART void no_operand(char *to, const char *from)
{
	asm volatile("movsb" : "+D"(to), "+S"(from)::"memory");
}

/* Four: each has its own page as the stack. */
APART void stack_operation(char *push, char *pop, char *call, char *leave)
{
	asm volatile("mov %%rsp, %%rbx\n\tmov %%rbp, %%r12\n\t"
		     "mov %0, %%rsp\n\tpush %%rax\n\t"
		     "mov %1, %%rsp\n\tpop %%rax\n\t"
		     "mov %2, %%rsp\n\tcall 1f\n1:\t"
		     "mov %3, %%rbp\n\tleave\n\t"
		     "mov %%r12, %%rbp\n\tmov %%rbx, %%rsp"
		     :
		     : "r"(push + PAGE), "r"(pop), "r"(call + PAGE), "r"(leave)
		     : "rax", "rbx", "r12", "memory");
}

/* Below all variables of the function. */
APART void stack(void)
{
	asm volatile("movb $1, -0x8000(%%rsp)" ::: "memory");
}

/* Nothing says that it is called with a pointer. */
APART void no_register(void)
{
	asm volatile("movb $1, (%%rdi)" ::: "memory");
}

APART void no_pointer(unsigned long number)
{
	asm volatile("movb $1, (%0)" ::"r"(number) : "memory");
}

/* More than is read of a function. */
APART void no_code(long *to)
{
	*(volatile long *)to = 1;
	asm volatile(".fill 40000, 1, 0x90");
}

/* A function without debug information. */
void undescribed(void *to);
asm(".text\n.type undescribed, @function\nundescribed: movb $1, (%rdi)\nret\n.size undescribed, . - "
    "undescribed");

/* Code that is in no file. */
APART void no_variable(void *to)
{
	static const unsigned char code[] = {0xc6, 0x07, 0x01, 0xc3}; /* movb $1, (%rdi); ret */
	void *copy = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(copy, code, sizeof(code));
	((void (*)(void *))copy)(to);
}

static sigjmp_buf back;

static void leave(int number)
{
	siglongjmp(back, number);
}

/* There is no address: it is zero. */
APART void unknown(volatile char *to)
{
	*to = 1;
}

int main(void)
{
	void (*volatile plain)(void) = no_register;
	volatile char touched = 1;

	next = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	incomplete(page());
	no_operand(page(), (const char *)&touched);
	stack_operation(page(), page(), page(), page());
	stack();
	((void (*)(void *))plain)(page());
	no_pointer((unsigned long)page());
	no_code(page());
	undescribed(page());
	no_variable(page());
	signal(SIGSEGV, leave);
	if (!sigsetjmp(back, 1))
		unknown(NULL);
	return 0;
}
