/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes the unwind table of a file from the sections that it has: .eh_frame, Go's .gopclntab, .debug_frame.
 */
#pragma once

#include "unwind/table.h"

struct image;

/* 64-bit files only. Returns NULL, or why there is no table: a constant sentence. The caller must call
 * unwind_table_release(). */
const char *unwind_table_of_image(struct unwind_table *table, const struct image *image);
