/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An extract of the running kernel's BTF: the types that the embedded BPF objects read, with the members that
 * they may read. libbpf would parse all of the kernel's 130,000 types and compare the name of each with every
 * type that a program reads, which took ten times as long as all else at the start.
 */
#pragma once

#include <linux/types.h>

struct btf;

/* Makes the extract at the first call. Returns NULL if the kernel has no BTF or if it can't be read. It lives
 * as long as the process. */
const struct btf *kernel_types(void);

/* Returns the path of a file with the extract, for libbpf's btf_custom_path; NULL if there is none: libbpf
 * then looks for the kernel's BTF by itself. */
const char *kernel_types_path(void);

/* Returns the number of the kernel's function bpf_cast_to_kern_ctx(), as instructions that call it have it.
 * 0: the kernel has no such function (before Linux 6.2), or no extract has been made yet. */
__u32 kernel_types_cast(void);
