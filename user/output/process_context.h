/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The process context of OpenTelemetry (OTEP 4719, version 2): a process publishes the attributes of its
 * resource (service.name, service.instance.id, …) in a mapping of its own, where others find them.
 */
#pragma once

#include <stdbool.h>
#include <jansson.h>
#include <linux/types.h>
#include <sys/types.h>

/* The most bytes of attributes as JSON: they have to fit into a record. */
#define PROCESS_CONTEXT_MOST 4096

/*
 * Finds the context that a process has published. Returns the address of its header in the process, for
 * process_context_read(); 0: there is none, or the process's mappings may not be read. This reads
 * /proc/PID/maps and the memory of another process, which may wait for a file system without an end.
 */
__u64 process_context_find(pid_t pid);

/* Sets *published to when the context at this address was published, in ns of CLOCK_BOOTTIME or, as OTEP 4719
 * first had it, since 1970; 0: it is being changed. Returns whether it is there. */
bool process_context_published(pid_t pid, __u64 address, __u64 *published);

/* Reads the context at this address. Returns its attributes, {name: value}, which the caller owns, and sets
 * *published to when it was published; NULL: it can't be read now. Attributes that are neither text, numbers
 * nor booleans are left out, and those that exceed PROCESS_CONTEXT_MOST. */
json_t *process_context_read(pid_t pid, __u64 address, __u64 *published);

/* Parses the payload of a context. Returns as process_context_read(). Used by it, and by its fuzzer. */
json_t *process_context_parse(const void *payload, size_t size);
