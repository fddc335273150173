// SPDX-License-Identifier: GPL-2.0-only
/*
 * doings WHAT N: does a thing N times, at most 4000, so that the difference of two runs is the cost of the
 * things alone.
 *
 *   faults   the first touch of a page, each by a function of another name
 *   maps     a mapping of the program's own file as code, which then goes
 *   threads  a thread that stays until the end; the program then sleeps for half a second
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <pthread.h>

/* Function f<K> touches the page at its argument. Each takes 16 bytes. */
asm(".text\n"
    ".balign 16\n"
    "first:\n"
    ".altmacro\n"
    ".macro define k\n"
    ".type f\\k, @function\n"
    "f\\k: movb $1, (%rdi)\n"
    "ret\n"
    ".balign 16\n"
    ".size f\\k, . - f\\k\n"
    ".endm\n"
    ".set k, 0\n"
    ".rept 4000\n"
    "define %k\n"
    ".set k, k + 1\n"
    ".endr\n");
extern char first[];

static void *rest(void *none)
{
	pause();
	return none;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0, size = (n + 1) * 4096;
	char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int own = open("/proc/self/exe", O_RDONLY);
	pthread_t thread;

	if (pages == MAP_FAILED || own < 0 || n > 4000)
		return 1;
	madvise(pages, size, MADV_NOHUGEPAGE);
	for (long i = 0; i < n; i++) {
		if (!strcmp(argv[1], "faults"))
			((void (*)(char *))(first + 16 * i))(pages + 4096 * i);
		else if (!strcmp(argv[1], "maps"))
			munmap(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, own, 0), 4096);
		else if (pthread_create(&thread, NULL, rest, NULL))
			return 1;
	}
	if (!strcmp(argv[1], "threads"))
		usleep(500000);
	return 0;
}
