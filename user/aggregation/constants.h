/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The constants (const volatile) of a BPF object, which user space sets before the object is loaded. A
 * constant by_KEY switches the key KEY on.
 */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#include "aggregation/layout.h"
#include "base/refusal.h"

struct bpf_object;

/* Sets the constant of this name; returns false if there is none. */
bool constants_set(struct bpf_object *object, const char *name, __u64 value);

/* The same for a list: sets its first `size` bytes. */
void constants_copy(struct bpf_object *object, const char *name, const void *bytes, size_t size);

/*
 * Switches on the keys of `by` ("pid,ip"). Members of the layout's key that are off are marked as not shown,
 * and layout->by is filled in: the keys that are on, in the order of the members, then those that are no
 * member. Returns 0, or -1 with the refusal if there is no such key; it lists `others` too (NULL: none), as
 * keys that the caller makes of these.
 */
int constants_tell_apart(struct bpf_object *object, struct layout *layout, const char *by,
			 const char *const *others, struct refusal *refusal);
