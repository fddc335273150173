// SPDX-License-Identifier: GPL-2.0-only
#include "record/key.h"

#include <string.h>

#include "base/array.h"
#include "host/cgroups.h"
#include "record/source.h"
#include "shared.h"

static void cgroup(struct field *field, const struct host *host, const void *at)
{
	__u64 id = *(const __u64 *)at;
	const char *path = cgroups_path(host->cgroups, id);

	/* A cgroup whose path is not known is written as its number. Paths begin with '/', so these can't be
	 * confused. */
	if (path)
		field_set_text(field, path, strnlen(path, 1024));
	else
		field_set_value(field, json_sprintf("id:%llu", id));
}

static void source(struct field *field, const struct host *host, const void *at)
{
	source_name(field, host, *(const __u64 *)at);
}

static void tlb(struct field *field, const struct host *host, const void *at)
{
	field_set_string(field, source_tlb(*(const __u32 *)at));
}

static void lock(struct field *field, const struct host *host, const void *at)
{
	field_set_string(field, source_lock(*(const __u32 *)at));
}

/*
 * The node's number. Some samples say only which node it was not; on a machine with two nodes that is enough.
 */
static void put_node(struct field *field, const struct host *host, const void *at)
{
	__u32 value = *(const __u32 *)at, node = (value & ~NODE_OTHER) - NODE_IS(0);

	if (value == NODE_UNKNOWN)
		field_set_string(field, "unknown");
	else if (!(value & NODE_OTHER))
		field_set_number(field, node);
	else if (cpus_count(&host->nodes) != 2)
		field_set_string(field, "remote");
	else
		field_set_number(field, cpus_next(&host->nodes, 0) == (int)node
						? cpus_next(&host->nodes, node + 1)
						: cpus_next(&host->nodes, 0));
}

/* How each typedef of bpf/shared.h is written. */
static const struct member_form forms[] = {
	{"address_t", .kind = FIELD_HEX},
	{"number_t", .kind = FIELD_NUMBER},
	{"comm_t", .kind = FIELD_TEXT},
	{"cgroup_id_t", .set = cgroup},
	{"data_source_t", .set = source},
	{"tlb_t", .set = tlb},
	{"lock_t", .set = lock},
	{"node_t", .set = put_node},
	{"maximum_t", .kind = FIELD_NUMBER},
	{"log2_histogram_t", .kind = FIELD_HISTOGRAM},
	{"__u64", .kind = FIELD_NUMBER},
};

const struct member_form *member_form(const struct member *member)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(forms) - 1 && strcmp(forms[i].type, member->type))
		i++;
	return &forms[i];
}

void field_set_formed(struct field *field, const struct member_form *form, const struct host *host,
		      const void *at, size_t size)
{
	field->kind = form->kind;
	if (form->set)
		form->set(field, host, at);
	else if (form->kind == FIELD_TEXT)
		field_set_text(field, at, strnlen(at, size));
	else if (form->kind == FIELD_HISTOGRAM)
		field_set_histogram(field, at, size / sizeof(__u64));
}

json_t *member_value(const struct host *host, const struct member *member, const void *base)
{
	struct fields fields;
	json_t *value;

	fields_begin(&fields);
	add_key_member(&fields, host, member, base);
	value = field_json(&fields.list[0]);
	fields_clear(&fields);
	return value;
}

const char *key_comm(const struct layout *layout, const void *key)
{
	const struct member *member = layout_key_of_type(layout, "comm_t");
	const char *comm = member ? (const char *)key + member->offset : NULL;

	return comm && comm[0] ? comm : NULL;
}
