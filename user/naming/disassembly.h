/* SPDX-License-Identifier: GPL-2.0-only */
/* Instructions of a file's code as text. A worker of its own reads the file: see worker.h. */
#pragma once

#include <stddef.h>
#include <linux/types.h>

#include "naming/message.h"
#include "naming/worker.h"

struct disassembly {
	const struct told_instruction *list; /* texts end within their arrays */
	size_t nr;
	const char *why; /* why there are none: a constant sentence; NULL if there are */
	struct sealed sealed;
};

/* No more code is read at once. */
#define CODE_MOST (1 << 16)

struct worker *disassembly_worker(void);

/* Reads the code at this offset of the file, up to the end of its segment or CODE_MOST bytes. `path` is how
 * this process can open the file: see naming_file(). The caller calls disassembly_release() in any case. */
void disassembly_read(struct disassembly *disassembly, struct worker *worker, const char *path, __u64 offset);
void disassembly_release(struct disassembly *disassembly);
