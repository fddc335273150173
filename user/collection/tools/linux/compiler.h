/* SPDX-License-Identifier: GPL-2.0-only */
/* Stands in for the kernel tree's tools/include/linux/compiler.h; see refcount.h beside it. */
#pragma once

#define __pure	     __attribute__((pure))
#define __packed     __attribute__((packed))
#define __aligned(x) __attribute__((aligned(x)))
