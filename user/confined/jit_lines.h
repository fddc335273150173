/* SPDX-License-Identifier: GPL-2.0-only */
/* Source lines of code that was made at run time, by the debug records of its jitdump file. */
#pragma once

#include "confined/lines.h"

struct jit_lines;

/* Reads the lines; the descriptor stays open. They take about `most` bytes at most; rows beyond that are left
 * out. Returns NULL if there are none. */
struct jit_lines *jit_lines_open(int fd, size_t most);
void jit_lines_close(struct jit_lines *lines);

/* Finds the line of an address, at most one. Returns the number found. The text is valid as long as `lines`.
 */
size_t jit_lines_find(const struct jit_lines *lines, __u64 address, struct source_place *place);

/* The memory in use, approximately. */
size_t jit_lines_bytes(const struct jit_lines *lines);
