// SPDX-License-Identifier: GPL-2.0-only
#include "record/key.h"

#include <string.h>

#include "record/cgroup.h"
#include "record/record.h"

static json_t *address(const void *at, size_t size)
{
	return value_hex(*(const __u64 *)at);
}

static json_t *number(const void *at, size_t size)
{
	return json_integer(*(const __u32 *)at);
}

static json_t *text(const void *at, size_t size)
{
	return value_text(at, size);
}

static json_t *cgroup(const void *at, size_t size)
{
	__u64 id = *(const __u64 *)at;
	const char *path = cgroup_path(id);

	/* A cgroup that has gone keeps its number; paths begin with '/', so the two can't be mixed up. */
	return path ? value_text(path, 1024) : json_sprintf("id:%llu", id);
}

/* The typedefs of bpf/shared.h. */
static const struct {
	const char *type;
	json_t *(*value)(const void *at, size_t size);
} types[] = {
	{"address_t", address},
	{"number_t", number},
	{"comm_t", text},
	{"cgroup_id_t", cgroup},
};

json_t *key_value(const struct member *member, const void *key)
{
	const void *at = (const char *)key + member->offset;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].type, member->type))
			return types[i].value(at, member->size);
	return json_null();
}
