/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the counters of a CPU all together and on that CPU, by bpf/counters.bpf.c: one system call, and one
 * interrupt if it is another CPU, whatever their number. It needs privileges.
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

/* Puts an open counter at a place. If the kernel refuses it, each reading gives an error there. The counter
 * stays open until it is removed or the reader is closed, even if fd is closed before. */
void cpu_reader_put(struct cpu_reader *reader, size_t place, int fd);
void cpu_reader_remove(struct cpu_reader *reader, size_t place);

/* Reads the counters of nr places from `first` on, which have to be those of this CPU. Returns 0, or
 * -errno with nothing read: -ENXIO of a CPU that is offline. */
int cpu_reader_read(struct cpu_reader *reader, int cpu, size_t first, size_t nr);

/* What was read last at a place. */
const struct counter_reading *cpu_reader_at(const struct cpu_reader *reader, size_t place);

#endif
