/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads any number of counters of a CPU together, on that CPU, by bpf/counters.bpf.c: one system call, and
 * one interrupt if it is another CPU. Needs CAP_BPF and CAP_PERFMON.
 */
#pragma once

#include <stddef.h>

#include "shared.h"

struct cpu_reader;

/* Makes a reader with room for nr counters. The caller owns *reader up to cpu_reader_close(). Returns 0, or
 * -errno: -EPERM without CAP_BPF and CAP_PERFMON, others from kernels that lack a feature. */
int cpu_reader_open(struct cpu_reader **reader, size_t nr);
void cpu_reader_close(struct cpu_reader *reader);

/* Puts an open counter at a place. If the kernel refuses it, every reading there gives an error. The counter
 * stays open until it is removed or the reader is closed, even if fd is closed earlier. */
void cpu_reader_put(struct cpu_reader *reader, size_t place, int fd);
void cpu_reader_remove(struct cpu_reader *reader, size_t place);

/* Reads the counters of nr places from `first` on, which must belong to this CPU. Returns 0, or -errno with
 * nothing read: -ENXIO if the CPU is offline. */
int cpu_reader_read(struct cpu_reader *reader, int cpu, size_t first, size_t nr);

/* The last reading at a place. */
const struct counter_reading *cpu_reader_at(const struct cpu_reader *reader, size_t place);
