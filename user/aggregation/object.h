/* SPDX-License-Identifier: GPL-2.0-only */
/* The BPF objects that the build has embedded into the program. */
#pragma once

struct bpf_object;

/* Opens an object by its name: "profile" is compiled from bpf/profile.bpf.c. The caller owns it up to
 * bpf_object__close(). Returns NULL on failure, with errno. */
struct bpf_object *object_open(const char *name);

/* Loads the object. If the kernel refuses it, nothing is written to stderr, because the caller has an
 * alternative. Returns 0 or -errno. */
int object_load_quietly(struct bpf_object *object);
