// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/wakes.h"

#include <errno.h>
#include <stddef.h>

#include <bpf/libbpf.h>

static int on_wake(void *filling, void *record, size_t size)
{
	*(bool *)filling = true;
	return 0;
}

int wakes_add(struct wakes *wakes, const struct bpf_object *object, bool *filling)
{
	int ring = bpf_object__find_map_fd_by_name(object, "wakes");

	if (wakes->rings)
		return ring_buffer__add(wakes->rings, ring, on_wake, filling);
	wakes->rings = ring_buffer__new(ring, on_wake, filling, NULL);
	return wakes->rings ? 0 : -errno;
}

int wakes_fd(const struct wakes *wakes)
{
	return ring_buffer__epoll_fd(wakes->rings);
}

void wakes_take(struct wakes *wakes)
{
	ring_buffer__consume(wakes->rings);
}

void wakes_close(struct wakes *wakes)
{
	ring_buffer__free(wakes->rings);
}
