/*
 * String instructions of many lengths, with many overlaps, forwards and backwards, over the ends of pages, and into code
 * that is executed: what each leaves in memory and in registers is compared with a loop that does one element at a time.
 * Prints how many time-stamp counts each takes at the least. With an argument, a breakpoint is set in the processor, on a
 * word that nothing touches.
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

enum { ROOM = 6 * 4096, MIDDLE = 2 * 4096, TURNS = 5 };

struct state {
	unsigned char *di, *si;
	uint64_t left;
};

static unsigned char memory[ROOM] __attribute__((aligned(4096))), expected[ROOM];
static uint64_t untouched;
static int failures;

#define STRING(name)                                                                                                 \
	static void name(struct state *s, uint64_t value)                                                            \
	{                                                                                                            \
		__asm__ volatile("rep " #name : "+D"(s->di), "+S"(s->si), "+c"(s->left) : "a"(value) : "memory");    \
	}
STRING(stosb) STRING(stosl) STRING(stosq) STRING(movsb) STRING(movsl) STRING(movsq)

static const struct {
	const char *name;
	void (*execute)(struct state *s, uint64_t value);
	int size, copies;
} kinds[] = {
	{ "stosb", stosb, 1, 0 }, { "stosl", stosl, 4, 0 }, { "stosq", stosq, 8, 0 },
	{ "movsb", movsb, 1, 1 }, { "movsl", movsl, 4, 1 }, { "movsq", movsq, 8, 1 },
};

static void fill(unsigned char *at)
{
	for (int k = 0; k < ROOM; k++)
		at[k] = k * 7 + k / 256;
}

/* Returns how long it took. */
static uint64_t once(int kind, int to, int from, int n, int step)
{
	const int size = kinds[kind].size;
	struct state s = { memory + to, memory + from, n };
	uint64_t value = 0x0807060504030201, start;

	fill(memory);
	fill(expected);
	for (int k = 0, at = 0; k < n; k++, at += step * size) {
		unsigned char element[8];

		memcpy(element, kinds[kind].copies ? expected + from + at : (unsigned char *)&value, size);
		memcpy(expected + to + at, element, size);
	}
	if (step < 0)
		__asm__ volatile("std");
	start = __rdtsc();
	kinds[kind].execute(&s, value);
	start = __rdtsc() - start;
	__asm__ volatile("cld");
	if (memcmp(memory, expected, ROOM) || s.left || s.di != memory + to + n * step * size ||
	    s.si != memory + from + (kinds[kind].copies ? n * step * size : 0)) {
		printf("%s to %d from %d, %d times, step %d: wrong\n", kinds[kind].name, to, from, n, step);
		failures++;
	}
	return start;
}

static void try(int kind, int to, int from, int n, int step)
{
	uint64_t least = UINT64_MAX;

	for (int turn = 0; turn < TURNS; turn++) {
		const uint64_t took = once(kind, to, from, n, step);

		least = took < least ? took : least;
	}
	printf("%s %d %d %d %d: %lu\n", kinds[kind].name, to, from, n, step, least);
}

/* Writes functions over one another, each of which returns another number. */
static void write_code(void)
{
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int k = 0; k < 100; k++) {
		unsigned char code[64] = { 0xb8, k, 0, 0, 0, 0xc3 }; /* mov $k, %eax; ret */
		struct state s = { page + k % 3 * 8, code, sizeof code };
		int (*function)(void) = (int (*)(void))(page + k % 3 * 8);

		movsb(&s, 0);
		if (function() != k) {
			printf("code %d: wrong\n", k);
			failures++;
		}
	}
}

int main(int argc, char **argv)
{
	static const int counts[] = { 0, 1, 15, 16, 17, 30, 31, 32, 63, 100, 500 }, apart[] = { 1, 3, 8, 12, 64, 5000 };
	struct perf_event_attr attr = { .type = PERF_TYPE_BREAKPOINT, .size = sizeof attr, .bp_type = HW_BREAKPOINT_W,
					.bp_addr = (uint64_t)&untouched, .bp_len = HW_BREAKPOINT_LEN_8 };

	if (argc > 1 && syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0) {
		perror(argv[1]);
		return 1;
	}
	for (unsigned kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
		for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++) {
			try(kind, MIDDLE + 5, MIDDLE - 4096, counts[c], 1);
			try(kind, MIDDLE + 4000, MIDDLE - 4096, counts[c], 1);
			try(kind, MIDDLE + 4000, MIDDLE - 4096 + 700, counts[c], -1);
			for (unsigned d = 0; kinds[kind].copies && d < sizeof apart / sizeof *apart; d++) {
				try(kind, MIDDLE + apart[d], MIDDLE, counts[c], 1);
				try(kind, MIDDLE, MIDDLE + apart[d], counts[c], 1);
			}
		}
	write_code();
	return !!failures;
}
