// SPDX-License-Identifier: GPL-2.0-only
#include "record/key.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "host/cgroups.h"
#include "record/record.h"
#include "record/source.h"
#include "shared.h"

static json_t *address(const struct host *host, const void *at, size_t size)
{
	return value_hex(*(const __u64 *)at);
}

static json_t *number(const struct host *host, const void *at, size_t size)
{
	return json_integer(*(const __u32 *)at);
}

static json_t *sum(const struct host *host, const void *at, size_t size)
{
	return json_integer(*(const __u64 *)at);
}

static json_t *text(const struct host *host, const void *at, size_t size)
{
	return value_text(at, size);
}

static json_t *cgroup(const struct host *host, const void *at, size_t size)
{
	__u64 id = *(const __u64 *)at;
	const char *path = cgroups_path(host->cgroups, id);

	/* A cgroup whose path is not known is written as its number. Paths begin with '/', so these can't be
	 * confused. */
	return path ? value_text(path, 1024) : json_sprintf("id:%llu", id);
}

static json_t *source(const struct host *host, const void *at, size_t size)
{
	return source_name(host, *(const __u64 *)at);
}

static json_t *tlb(const struct host *host, const void *at, size_t size)
{
	return json_string(source_tlb(*(const __u32 *)at));
}

static json_t *lock(const struct host *host, const void *at, size_t size)
{
	return json_string(source_lock(*(const __u32 *)at));
}

/*
 * The node's number. Some samples say only which node it was not; on a machine with two nodes that is enough.
 */
static json_t *node(const struct host *host, const void *at, size_t size)
{
	__u32 value = *(const __u32 *)at, node = (value & ~NODE_OTHER) - NODE_IS(0);

	if (value == NODE_UNKNOWN)
		return json_string("unknown");
	if (!(value & NODE_OTHER))
		return json_integer(node);
	if (cpus_count(&host->nodes) != 2)
		return json_string("remote");
	return json_integer(cpus_next(&host->nodes, 0) == (int)node ? cpus_next(&host->nodes, node + 1)
								    : cpus_next(&host->nodes, 0));
}

/* The histogram's buckets that are not empty: {lower bound: count}. */
static json_t *histogram(const struct host *host, const void *at, size_t size)
{
	const __u64 *buckets = at;
	json_t *value = json_object();
	char bound[24];

	for (size_t i = 0; i < size / sizeof(*buckets); i++) {
		if (!buckets[i])
			continue;
		snprintf(bound, sizeof(bound), "%llu", 1ULL << i);
		json_object_set_new(value, bound, json_integer(buckets[i]));
	}
	return value;
}

/* How each typedef of bpf/shared.h is written. */
static const struct {
	const char *type;
	json_t *(*value)(const struct host *host, const void *at, size_t size);
} types[] = {
	{"address_t", address},
	{"number_t", number},
	{"comm_t", text},
	{"cgroup_id_t", cgroup},
	{"data_source_t", source},
	{"tlb_t", tlb},
	{"lock_t", lock},
	{"node_t", node},
	{"maximum_t", sum},
	{"log2_histogram_t", histogram},
	{"__u64", sum},
};

json_t *member_value(const struct host *host, const struct member *member, const void *base)
{
	const void *at = (const char *)base + member->offset;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].type, member->type))
			return types[i].value(host, at, member->size);
	return json_null();
}

__u64 member_number(const struct member *member, const void *key)
{
	__u64 number = 0;

	/* Little endian: the lower bytes come first. */
	memcpy(&number, (const char *)key + member->offset, member->size);
	return number;
}

const char *key_comm(const struct layout *layout, const void *key)
{
	const struct member *member = layout_key_of_type(layout, "comm_t");
	const char *comm = member ? (const char *)key + member->offset : NULL;

	return comm && comm[0] ? comm : NULL;
}
