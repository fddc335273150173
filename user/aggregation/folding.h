/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constant folding. A BPF program's constants are set after it was compiled, so its code loads them from a
 * map (.rodata). The kernel's verifier knows their values and drops the code that they switch off, but it
 * leaves the loads. A sample often finds neither this code nor the map in the cache.
 */
#pragma once

/* From now on, has libbpf replace the loads of constants by their values when it loads a program for samples
 * (SEC("perf_event")). The values are those that the constants have then. Returns 0 or -errno; programs load
 * their constants then. */
int folding_begin(void);
