/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses of symbols in the known-answer program. */
#pragma once

#include <linux/types.h>

struct landmarks;

/* Reads an ELF file that is loaded at its link address. Returns NULL if it can't be read; then all symbols
 * have address 0. The caller releases the result. */
struct landmarks *landmarks_read(const char *path);
void landmarks_release(struct landmarks *landmarks);

/* The address of a symbol, and its offset in the file; 0 if there is no such symbol. */
__u64 landmark_address(const struct landmarks *landmarks, const char *name);
__u64 landmark_offset(const struct landmarks *landmarks, const char *name);
