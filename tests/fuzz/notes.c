// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the mappings that are made from the kernel's notes about processes: every eight bytes are
 * a note, or a question about an address or a process. No crash, no leak, and no file without a
 * path.
 */
#include <stdlib.h>

#include "naming/mappings.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* No process has these pids, so nothing is looked up in /proc. */
#define PID(byte) (0x7f000000 + ((byte) % 7))
#define PAGE	  4096

static const char *const paths[] = {
	"/nonexistent/a", "/nonexistent/b (deleted)", "//anon", "[vdso]", "/memfd:x", "[heap]", "",
	"/nonexistent/a"};
static const char *const comms[] = {"a", "b", "fifteen letters", ""};

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct mappings *mappings = mappings_new();
	__u64 time = 1000;

	for (; size >= 8; data += 8, size -= 8) {
		struct sideband_note note = {.kind = data[0] % SIDEBAND_CGROUP,
					     .pid = PID(data[1]),
					     .parent = PID(data[2]),
					     .begin = (data[3] + 1ULL) * PAGE,
					     .size = (__u64)data[4] * PAGE,
					     .offset = (__u64)data[5] * PAGE,
					     .path = paths[data[6] % 8],
					     .comm = comms[data[2] % 4],
					     .build_id = {data[7] & 3},
					     .build_id_size = data[7] & 4 ? MAPPED_BUILD_ID_MAX : 0,
					     .device = 1,
					     .inode = data[7] >> 4};
		struct spot spot;
		struct map_writer writer;
		char text[64];

		note.time = time += data[7] & 8 ? 1 : 0;
		if (data[0] < 128) {
			mappings_take(mappings, &note);
		} else if (data[0] < 192) {
			spot = mappings_find(mappings, note.pid, data[5] & 1 ? note.comm : NULL, note.begin,
					     time > 2 ? time - 2 : 0);
			if (spot.file && !spot.file->path)
				abort();
			mappings_jit(mappings, note.pid, spot.life, note.parent & 7, &writer, text,
				     sizeof(text));
			mappings_jitdump(mappings, note.pid, spot.life, note.parent & 7, &writer, text,
					 sizeof(text));
			mappings_program(mappings, note.pid);
		} else if (data[0] < 224) {
			mappings_forget(mappings, time - data[1] % 4);
		} else {
			mappings_expect(mappings, note.pid);
		}
	}
	mappings_release(mappings);
	return 0;
}
