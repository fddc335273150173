/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The constants of a BPF object (const volatile), which user space sets before the object is loaded. Those
 * named by_KEY switch a key on.
 */
#ifndef NHMTAP_CONSTANTS_H
#define NHMTAP_CONSTANTS_H

#include <stdbool.h>
#include <linux/types.h>

#include "collection/layout.h"
#include "refusal.h"

struct bpf_object;

/* Sets the constant of this name; returns false if there is none. */
bool constants_set(struct bpf_object *object, const char *name, __u64 value);

/*
 * Has the program tell the keys of `by` ("pid,ip") apart. Members of the layout's key that it does not
 * tell apart are no longer shown, and layout->by is filled in: what was asked for, in the order of the
 * key, then what stands for no member of it. Returns 0, or -1 with the refusal: there is no such key.
 */
int constants_tell_apart(struct bpf_object *object, struct layout *layout, const char *by,
			 struct refusal *refusal);

#endif
