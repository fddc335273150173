/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses in the known-answer program. */
#ifndef NHMTAP_SELFTEST_LANDMARKS_H
#define NHMTAP_SELFTEST_LANDMARKS_H

#include <linux/types.h>

struct landmarks;

/* Reads an ELF file that is loaded where it was linked to. The caller releases it; NULL if it can't be read,
 * of which every symbol is at 0. */
struct landmarks *landmarks_read(const char *path);
void landmarks_release(struct landmarks *landmarks);

/* A symbol's address, and its offset in the file; 0 if there is none of this name. */
__u64 landmark_address(const struct landmarks *landmarks, const char *name);
__u64 landmark_offset(const struct landmarks *landmarks, const char *name);

#endif
