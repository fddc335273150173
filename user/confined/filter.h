/* SPDX-License-Identifier: GPL-2.0-only */
/* The system calls that are left to the worker process, by seccomp. */
#pragma once

#include <sys/mman.h>

#define MEMORY_FLAGS (MFD_CLOEXEC | MFD_ALLOW_SEALING) /* for memory that is passed to nhmtap */

/* Loads libseccomp, which needs system calls that are not left. Returns NULL, or why there is none: one of
 * the texts NEVER_… of naming/message.h. */
const char *filter_load_library(void);

/* From now on other system calls fail. Returns 0, or an error. */
int filter_system_calls(void);
