/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the counters of a CPU all together and on that CPU, by bpf/counters.bpf.c: one system call, and
 * one interrupt where it is another CPU, however many they are. The kernel does not let everybody.
 */
#ifndef NHMTAP_CPU_READER_H
#define NHMTAP_CPU_READER_H

#include <stddef.h>

#include "shared.h"

struct cpu_reader;

/* Makes a reader with room for so many counters. The caller owns *reader up to cpu_reader_close().
 * Returns 0, or -errno: -EPERM without CAP_BPF and CAP_PERFMON, others from kernels that can't. */
int cpu_reader_open(struct cpu_reader **reader, size_t nr);
void cpu_reader_close(struct cpu_reader *reader);

/* Takes an open counter in at a place; one that the kernel does not let in has an error there at each
 * reading. It stays open until it is taken out, or the reader closed, though fd be closed before. */
void cpu_reader_put(struct cpu_reader *reader, size_t place, int fd);
void cpu_reader_remove(struct cpu_reader *reader, size_t place);

/* Reads the counters of nr places from `first` on, which have to be those of this CPU. Returns 0, or
 * -errno with nothing read: -ENXIO of a CPU that is offline. */
int cpu_reader_read(struct cpu_reader *reader, int cpu, size_t first, size_t nr);

/* What was read last at a place. */
const struct counter_reading *cpu_reader_at(const struct cpu_reader *reader, size_t place);

#endif
