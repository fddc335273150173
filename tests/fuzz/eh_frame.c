// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the tables for unwinding stacks: an .eh_frame or .debug_frame of any bytes makes a consistent table,
 * with no more rows than its size allows.
 */
#include "confined/eh_frame.h"
#include "unwinding.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct frame_section section = {.bytes = data, .size = size, .address = 0x100000};
	struct unwind_rows rows;

	for (int debug = 0; debug < 2; debug++) {
		section.debug = debug;
		unwind_rows_begin(&rows, 0x1000, 0x180000);
		eh_frame_read(&rows, &section);
		finish_table(&rows, 3 * size + 2);
	}
	return 0;
}
