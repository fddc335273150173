// SPDX-License-Identifier: GPL-2.0-only
#include "output/process_context.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/array.h"
#include "base/memory.h"
#include "otlp_profiles.pb-c.h"
#include "record/compact.h"

/* --- the header: OTEP 4719, "Header Structure" ---------------------------------------------------- */

#define SIGNATURE "OTEL_CTX"
#define VERSION	  2

struct context_header {
	char signature[8];
	__u32 version, payload_size;
	__u64 published_ns; /* `monotonic_published_at_ns`; 0: the context is being changed */
	__u64 payload;	    /* its address in the process */
};

/* Payloads are small: the attributes of one resource. A larger one is not read. */
#define PAYLOAD_MOST (1UL << 16)

/* How often a context that changes meanwhile is read again. */
#define TRIES 3

static bool read_memory(pid_t pid, __u64 address, void *to, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)(uintptr_t)address, size};

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static bool read_header(pid_t pid, __u64 address, struct context_header *header)
{
	return read_memory(pid, address, header, sizeof(*header)) &&
	       !memcmp(header->signature, SIGNATURE, sizeof(header->signature)) && header->version == VERSION;
}

/* Whether a mapping may be a context, by its name in /proc/PID/maps. Anonymous mappings have names where the
 * kernel has CONFIG_ANON_VMA_NAME. */
static bool is_named_so(char *name)
{
	static const char *const names[] = {"/memfd:" SIGNATURE, "/memfd:" SIGNATURE " (deleted)",
					    "[anon_shmem:" SIGNATURE "]", "[anon:" SIGNATURE "]"};

	name[strcspn(name, "\n")] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

__u64 process_context_find(pid_t pid)
{
	__u64 address, found = 0;
	struct context_header header;
	char path[32], *line = NULL;
	size_t room = 0;
	FILE *maps;
	int name;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps && !found && getline(&line, &room, maps) > 0) {
		name = 0;
		if (sscanf(line, "%" SCNx64 "-%*x %*s %*x %*s %*u %n", (uint64_t *)&address, &name) == 1 &&
		    name && is_named_so(line + name) && read_header(pid, address, &header))
			found = address;
	}
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

bool process_context_published(pid_t pid, __u64 address, __u64 *published)
{
	struct context_header header;

	if (!read_header(pid, address, &header))
		return false;
	*published = header.published_ns;
	return true;
}

/* --- the payload ---------------------------------------------------------------------------------- */

static json_t *value_of(const Otlp__AnyValue *value)
{
	switch (value ? value->value_case : OTLP__ANY_VALUE__VALUE__NOT_SET) {
	case OTLP__ANY_VALUE__VALUE_STRING_VALUE:
		return json_string(value->string_value);
	case OTLP__ANY_VALUE__VALUE_BOOL_VALUE:
		return json_boolean(value->bool_value);
	case OTLP__ANY_VALUE__VALUE_INT_VALUE:
		return json_integer(value->int_value);
	case OTLP__ANY_VALUE__VALUE_DOUBLE_VALUE:
		return json_real(value->double_value);
	default:
		return NULL;
	}
}

/* Adds attributes as far as there is room. The first one of a name counts. */
static void add_attributes(json_t *attributes, Otlp__KeyValue *const *list, size_t nr)
{
	size_t used = compact_bytes(attributes);

	for (size_t i = 0; i < nr; i++) {
		json_t *value = value_of(list[i]->value), *name = json_string(list[i]->key);
		/* ':' and ',' come with each. */
		size_t more = value && name ? compact_bytes(name) + compact_bytes(value) + 2 : 0;

		if (more && *list[i]->key && used + more <= PROCESS_CONTEXT_MOST &&
		    !json_object_get(attributes, list[i]->key)) {
			json_object_set(attributes, list[i]->key, value);
			used += more;
		}
		json_decref(name);
		json_decref(value);
	}
}

json_t *process_context_parse(const void *payload, size_t size)
{
	Otlp__ProcessContext *context = otlp__process_context__unpack(NULL, size, payload);
	/* The text of OTEP 4719 has the resource itself as the payload; its first publishers followed that.
	 */
	Otlp__Resource *bare = context ? NULL : otlp__resource__unpack(NULL, size, payload);
	const Otlp__Resource *resource = context ? context->resource : bare;
	json_t *attributes = context || bare ? json_object() : NULL;

	if (resource)
		add_attributes(attributes, resource->attributes, resource->n_attributes);
	if (context) {
		add_attributes(attributes, context->attributes, context->n_attributes);
		otlp__process_context__free_unpacked(context, NULL);
	}
	if (bare)
		otlp__resource__free_unpacked(bare, NULL);
	return attributes;
}

json_t *process_context_read(pid_t pid, __u64 address, __u64 *published)
{
	json_t *attributes = NULL;

	for (int i = 0; i < TRIES && !attributes; i++) {
		struct context_header header;
		void *payload;
		__u64 after;

		if (!read_header(pid, address, &header) || header.payload_size > PAYLOAD_MOST)
			return NULL;
		*published = header.published_ns;
		payload = xmalloc(header.payload_size + 1);
		if (*published && read_memory(pid, header.payload, payload, header.payload_size) &&
		    process_context_published(pid, address, &after) && after == *published)
			attributes = process_context_parse(payload, header.payload_size);
		free(payload);
	}
	return attributes;
}
