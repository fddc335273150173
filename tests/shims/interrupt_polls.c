// SPDX-License-Identifier: GPL-2.0-only
/*
 * To be preloaded: all but every third poll() are interrupted, as by a signal that has come just then. The
 * kernel looks for signals in one that does not wait, too (do_poll(), fs/select.c). Programs that it starts
 * are not affected.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_uint calls;

__attribute__((constructor)) static void begin(void)
{
	unsetenv("LD_PRELOAD");
}

int poll(struct pollfd *list, nfds_t nr, int ms)
{
	static int (*unchanged)(struct pollfd *, nfds_t, int);

	if (!unchanged)
		unchanged = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
	if (++calls % 3) {
		errno = EINTR;
		return -1;
	}
	return unchanged(list, nr, ms);
}
