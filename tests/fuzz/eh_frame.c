// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the tables for unwinding stacks: an .eh_frame or .debug_frame of any bytes makes a consistent table,
 * with no more rows than its size allows. The ranges of its functions are those that are in it, too.
 */
#include <stdlib.h>
#include <string.h>

#include "confined/eh_frame.h"
#include "unwinding.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static bool read_data(const void *data, void *to, size_t size, __u64 offset)
{
	memcpy(to, (const char *)data + offset, size);
	return true;
}

static void count(void *of, __u64 begin, __u64 end)
{
	++*(size_t *)of;
	if (end < begin)
		abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct frame_source source = {.size = size, .address = 0x100000, .read = read_data, .of = data};
	size_t nr = 0;
	struct frame_section section = {.bytes = data, .size = size, .address = 0x100000};
	struct unwind_rows rows;

	eh_frame_functions(&source, 1 << 20, count, &nr);
	if (nr > size / 4)
		abort();
	for (int debug = 0; debug < 2; debug++) {
		section.debug = debug;
		unwind_rows_begin(&rows, 0x1000, 0x180000);
		eh_frame_read(&rows, &section);
		finish_table(&rows, 3 * size + 2);
	}
	return 0;
}
