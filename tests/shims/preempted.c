// SPDX-License-Identifier: GPL-2.0-only
/* To be preloaded: a program that loses its CPU for 5 ms after each third reading of CLOCK_REALTIME. */
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*unchanged)(clockid_t, struct timespec *);
	static unsigned int readings;
	int err;

	if (!unchanged)
		unchanged = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	err = unchanged(clock, now);
	if (clock == CLOCK_REALTIME && __atomic_add_fetch(&readings, 1, __ATOMIC_RELAXED) % 3 == 0)
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	return err;
}
