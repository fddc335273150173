/* SPDX-License-Identifier: GPL-2.0-only */
/* The BPF objects that the build puts into the program. */
#ifndef NHMTAP_OBJECT_H
#define NHMTAP_OBJECT_H

struct bpf_object;

/* Opens an object by its name: "profile" is what bpf/profile.bpf.c was compiled to. The caller owns it, up to
 * bpf_object__close(). Returns NULL on failure, with errno. */
struct bpf_object *object_open(const char *name);

/* Loads it. A refusal by the kernel is not reported on stderr, because the caller has another way. Returns 0,
 * or -errno. */
int object_load_quietly(struct bpf_object *object);

#endif
