/* SPDX-License-Identifier: GPL-2.0-only */
/* Waits for BPF programs that wake user space because their memory is filling: see bpf/wake.bpf.h. */
#pragma once

#include <stdbool.h>

struct bpf_object;
struct ring_buffer;

/* Starts as {0}. */
struct wakes {
	struct ring_buffer *rings; /* of all objects */
};

/* Adds a loaded object: wakes_take() sets *filling if its program has asked for it. Returns 0 or -errno. */
int wakes_add(struct wakes *wakes, const struct bpf_object *object, bool *filling);

/* The descriptor that is readable when a program has asked; it belongs to the wakes. There must be an
 * object. */
int wakes_fd(const struct wakes *wakes);
void wakes_take(struct wakes *wakes);

void wakes_close(struct wakes *wakes);
