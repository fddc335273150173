/* SPDX-License-Identifier: GPL-2.0-only */
/* The DWARF of an image: its size, its alternate file, and libdw's handle. */
#pragma once

#include <stdbool.h>
#include <elfutils/libdw.h>
#include <linux/types.h>

#include "naming/image.h"

/* Whether the image has DWARF. */
bool dwarf_in(const struct image *image);

/* Whether some of its DWARF is compressed in a way that the installed libelf can't read: zstd before elfutils
 * 0.189. Uncompresses sections, so their size should be known before. */
bool dwarf_unreadable(const struct image *image);

/* The size of its DWARF, uncompressed. */
__u64 dwarf_size(const struct image *image);

/* Bytes of memory that libdw will use for its sections: libdw reads and uncompresses all of them at once. Of
 * a mapped image, these are the compressed ones. */
__u64 dwarf_bytes(const struct image *image);

/* Whether its sections take at most `most` bytes of memory. If they don't otherwise, the image becomes a
 * mapped one: see image_map(). */
bool dwarf_fits(struct image *image, __u64 most);

/* The name and build-id (hex) of the alternate file that the image refers to (.gnu_debugaltlink); NULL if
 * there is none. Valid as long as the image. */
const char *dwarf_alternate(const struct image *image, char build_id[2 * BUILD_ID_MAX + 1]);

/* Reads all DWARF, and closes the image's file, which is not needed any more. Returns NULL if libdw rejects
 * it. dwarf_end() must be called before image_close(). */
Dwarf *dwarf_open(struct image *image);
