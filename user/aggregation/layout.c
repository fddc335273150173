// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>

#include "base/memory.h"

static const struct btf_type *resolved_type(const struct btf *btf, __u32 id)
{
	return btf__type_by_id(btf, btf__resolve_type(btf, id));
}

static const struct btf_member *member_of(const struct btf *btf, const struct btf_type *type,
					  const char *name)
{
	const struct btf_member *members = btf_members(type);

	for (int i = 0; i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(btf, members[i].name_off), name))
			return &members[i];
	return NULL;
}

/* The type of an array member's elements. */
static const struct btf_type *element_of(const struct btf *btf, const struct btf_member *member)
{
	return resolved_type(btf, btf_array(resolved_type(btf, member->type))->type);
}

static size_t read_members(const struct btf *btf, const struct btf_type *type, struct member **result)
{
	struct member *list = xcalloc(btf_vlen(type), sizeof(*list));
	size_t count = 0;

	for (int i = 0; i < btf_vlen(type); i++) {
		const struct btf_member *member = &btf_members(type)[i];
		const struct btf_type *outer = btf__type_by_id(btf, member->type);
		const char *name = btf_is_typedef(outer) ? btf__name_by_offset(btf, outer->name_off) : "";

		if (!strcmp(name, "padding_t"))
			continue;
		list[count++] = (struct member){
			.name = btf__name_by_offset(btf, member->name_off),
			.type = name,
			.offset = member->offset / 8,
			.size = btf__resolve_size(btf, member->type),
			.shown = true,
			.maximum = !strcmp(name, "maximum_t"),
		};
	}
	*result = list;
	return count;
}

int layout_read(struct layout *layout, struct table_layout *table, const struct btf *btf)
{
	const struct btf_type *outer, *slot, *key, *value;
	const struct btf_member *slots;
	__s32 id = btf__find_by_name_kind(btf, "table", BTF_KIND_STRUCT);

	if (id < 0)
		return -EINVAL;
	outer = btf__type_by_id(btf, id);
	slots = member_of(btf, outer, "slots");
	slot = element_of(btf, slots);
	key = resolved_type(btf, member_of(btf, slot, "key")->type);
	value = resolved_type(btf, member_of(btf, slot, "value")->type);
	*table = (struct table_layout){
		.size = outer->size,
		.generations = member_of(btf, outer, "generations")->offset / 8,
		.order = member_of(btf, outer, "order")->offset / 8,
		.slots = slots->offset / 8,
		.nr_slots = btf_array(resolved_type(btf, slots->type))->nelems / 2,
		.slot_size = slot->size,
		.key = member_of(btf, slot, "key")->offset / 8,
		.value = member_of(btf, slot, "value")->offset / 8,
	};
	layout->key_size = key->size;
	layout->value_size = value->size;
	layout->nr_keys = read_members(btf, key, &layout->keys);
	layout->nr_values = read_members(btf, value, &layout->values);
	return 0;
}

void layout_release(struct layout *layout)
{
	free(layout->keys);
	free(layout->values);
	free(layout->by);
	*layout = (struct layout){0};
}

struct member *layout_key(const struct layout *layout, const char *name, size_t length)
{
	for (size_t i = 0; i < layout->nr_keys; i++)
		if (strlen(layout->keys[i].name) == length && !strncmp(layout->keys[i].name, name, length))
			return &layout->keys[i];
	return NULL;
}

struct member *layout_key_named(const struct layout *layout, const char *name)
{
	return layout_key(layout, name, strlen(name));
}

const struct member *layout_key_of_type(const struct layout *layout, const char *type)
{
	for (size_t i = 0; i < layout->nr_keys; i++)
		if (!strcmp(layout->keys[i].type, type))
			return &layout->keys[i];
	return NULL;
}
