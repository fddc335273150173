// SPDX-License-Identifier: GPL-2.0-only
#pragma once

/* Ids of runs and profiles: 16 random bytes. They are unique, but not secret. */

#define UNIQUE_BYTES 16

/* Never fails: without random numbers, all bytes are 1. */
void unique_id(unsigned char id[UNIQUE_BYTES]);
