/* SPDX-License-Identifier: GPL-2.0-only */
/* The DWARF in an image: how much it is, where else it is, and libdw's handle of it. */
#ifndef NHMTAP_DWARF_IMAGE_H
#define NHMTAP_DWARF_IMAGE_H

#include <stdbool.h>
#include <elfutils/libdw.h>
#include <linux/types.h>

#include "naming/image.h"

/* Whether there is any. */
bool dwarf_in(const struct image *image);

/* Bytes that libdw will take for it, unpacked: it reads all of it at once. */
__u64 dwarf_size(const struct image *image);

/* The name and build-id (hex) of the image that it shares parts with (.gnu_debugaltlink); NULL if there is
 * none. Valid as long as the image. */
const char *dwarf_alternate(const struct image *image, char build_id[2 * BUILD_ID_MAX + 1]);

/* Reads all of it, and closes the image's file, which is not needed any more; dwarf_end() before
 * image_close(). NULL if libdw can't take it. */
Dwarf *dwarf_open(struct image *image);

#endif
