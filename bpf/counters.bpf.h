/* SPDX-License-Identifier: GPL-2.0-only */
/* The counters that a program reads with bpf_perf_event_read_value(). User space sets the map's size to the
 * number of counters. */
#pragma once

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} counters SEC(".maps");
