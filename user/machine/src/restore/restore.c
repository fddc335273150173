// SPDX-License-Identifier: GPL-2.0-only
/*
 * restore IMAGE FILE,FILE,… CALLER
 *
 * Becomes the process that an image holds (src/nhm/nhm_snapshot.cc). IMAGE is the descriptor of the
 * image's file, FILE,… are descriptors in the order of NHM_STREAMS, CALLER is the process that the
 * emulator is not to outlive.
 *
 * It has no libc and is linked at an address that no other program uses, so that it can put all
 * memory where it was: memory is mapped from the file, privately, and read when it is used.
 *
 * If it fails, its status says where: see enum failed.
 */
#include <asm/prctl.h>
#include <asm/unistd.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <sys/mman.h>

#include "../nhm/nhm_image.h"

enum failed { NO_ARGUMENTS = 101, NO_IMAGE, NO_DESCRIPTORS, NO_MEMORY };
enum { NAMES = 16 };

static struct nhm_image image;
__attribute__((used, aligned(16))) static char stack[1 << 16];

static long call(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static _Noreturn void fail(enum failed where)
{
	for (;;)
		call(__NR_exit_group, where, 0, 0, 0, 0, 0);
}

static int parse(const char **at)
{
	int value = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++)
		value = value * 10 + (**at - '0');
	return value;
}

static int parse_list(const char *at, int *list)
{
	int nr = 0;

	while (nr < NAMES) {
		list[nr++] = parse(&at);
		if (*at++ != ',')
			break;
	}
	return nr;
}

/* --- descriptors ------------------------------------------------------------------------------ */

static int highest(const int *given, int nr, int highest)
{
	for (int k = 0; k < nr; k++)
		highest = given[k] > highest ? given[k] : highest;
	for (unsigned long k = 0; k < image.nr_descriptors; k++)
		highest = image.descriptors[k].fd > highest ? image.descriptors[k].fd : highest;
	return highest;
}

static int lift(int fd, int above)
{
	int lifted = call(__NR_fcntl, fd, F_DUPFD, above, 0, 0, 0);

	if (lifted < 0)
		fail(NO_DESCRIPTORS);
	call(__NR_close, fd, 0, 0, 0, 0, 0);
	return lifted;
}

/* Puts the given files under the old numbers; returns the image's new descriptor, above all of them. */
static int place_descriptors(int fd, int *given, int nr)
{
	int above = highest(given, nr, fd) + 1;
	int null = call(__NR_open, (long)"/dev/null", O_RDWR, 0, 0, 0, 0);

	if (null < 0)
		fail(NO_DESCRIPTORS);
	null = lift(null, above);
	fd = lift(fd, above);
	for (int k = 0; k < nr; k++)
		given[k] = lift(given[k], above);
	for (unsigned long k = 0; k < image.nr_descriptors; k++) {
		const struct nhm_descriptor *d = &image.descriptors[k];

		if (d->file >= nr || call(__NR_dup2, d->file < 0 ? null : given[d->file], d->fd, 0, 0, 0, 0) < 0)
			fail(NO_DESCRIPTORS);
	}
	for (int k = 0; k < nr; k++)
		call(__NR_close, given[k], 0, 0, 0, 0, 0);
	call(__NR_close, null, 0, 0, 0, 0, 0);
	return fd;
}

/* --- memory ----------------------------------------------------------------------------------- */

static void place_memory(int fd)
{
	for (unsigned long k = 0; k < image.nr_mappings; k++) {
		const struct nhm_mapping *m = &image.mappings[k];
		long flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE | (m->offset ? 0 : MAP_ANONYMOUS);

		if (call(__NR_mmap, m->start, m->length, m->protection, flags,
			 m->offset ? fd : -1, m->offset) != (long)m->start)
			fail(NO_MEMORY);
	}
	call(__NR_close, fd, 0, 0, 0, 0, 0);
}

/* Returns to where nhm_save_registers() was called, with the caller as its result. */
static _Noreturn void enter(long caller)
{
	call(__NR_arch_prctl, ARCH_SET_FS, image.fs, 0, 0, 0, 0);
	__asm__ volatile("mov (%0), %%rbx\n\t"
			 "mov 8(%0), %%rbp\n\t"
			 "mov 16(%0), %%r12\n\t"
			 "mov 24(%0), %%r13\n\t"
			 "mov 32(%0), %%r14\n\t"
			 "mov 40(%0), %%r15\n\t"
			 "mov 48(%0), %%rsp\n\t"
			 "jmp *56(%0)"
			 :
			 : "D"(&image.registers), "a"(caller)
			 : "memory");
	__builtin_unreachable();
}

__attribute__((used)) static _Noreturn void restore(unsigned long *arguments)
{
	const char **given = (const char **)(arguments + 1);
	int files[NAMES], fd, nr;
	long caller;

	if (arguments[0] != 4)
		fail(NO_ARGUMENTS);
	fd = parse(&given[1]);
	nr = parse_list(given[2], files);
	caller = parse(&given[3]);
	if (call(__NR_pread64, fd, (long)&image, sizeof(image), 0, 0, 0) != sizeof(image) ||
	    image.magic != NHM_IMAGE_MAGIC || image.nr_descriptors > NHM_IMAGE_FILES ||
	    image.nr_mappings > NHM_IMAGE_MAPS)
		fail(NO_IMAGE);
	fd = place_descriptors(fd, files, nr);
	place_memory(fd);
	enter(caller);
}

/* On a stack of its own: the one that the kernel gave it may be where memory goes. */
__asm__(".globl _start\n"
	"_start:\n\t"
	"mov %rsp, %rdi\n\t"
	"lea stack+65536(%rip), %rsp\n\t"
	"call restore\n");
