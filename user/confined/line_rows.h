/* SPDX-License-Identifier: GPL-2.0-only */
/* How many rows a line table has, by its instructions, before anything is read of it. */
#pragma once

#include <stddef.h>

/* Counts the rows of the table of a unit (DWARF 5, 6.2) at these bytes of .debug_line, which begin with its
 * length. A table of a form that is not known (64-bit DWARF) may have a row for each byte. */
size_t line_rows(const void *table, size_t size);
