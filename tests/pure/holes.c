// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints the layout of the maps of BPF objects according to BTF. For each file named on standard
 * input:
 *
 *     member OBJECT MAP key|value STRUCT MEMBER OFFSET SIZE
 *     hole OBJECT MAP key|value STRUCT MEMBER-BEFORE OFFSET SIZE
 *
 * A hole is a range of bytes of a struct that belongs to no member. Offsets are from the beginning
 * of the struct, and sizes are in bytes. A nested struct is printed once for each place.
 */
#include <stdio.h>
#include <string.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

struct place {
	const struct btf *btf;
	const char *object, *map, *part;
};

static void say(const struct place *place, const char *what, const struct btf_type *type, const char *member,
		__u32 offset, __u32 size)
{
	const char *name = btf__name_by_offset(place->btf, type->name_off);

	printf("%s %s %s %s %s %s %u %u\n", what, place->object, place->map, place->part, *name ? name : "-",
	       *member ? member : "-", offset, size);
}

static const struct btf_type *walk(const struct place *place, __u32 id);

static void walk_struct(const struct place *place, const struct btf_type *type)
{
	const struct btf_member *members = btf_members(type);
	const char *before = "";
	__u32 end = 0;

	for (__u32 i = 0; i < btf_vlen(type); i++) {
		const char *name = btf__name_by_offset(place->btf, members[i].name_off);
		__u32 bits = btf_member_bitfield_size(type, i), offset = btf_member_bit_offset(type, i) / 8,
		      size;

		walk(place, members[i].type);
		size = bits ? (btf_member_bit_offset(type, i) + bits + 7) / 8 - offset
			    : btf__resolve_size(place->btf, members[i].type);
		if (btf_is_struct(type) && offset > end)
			say(place, "hole", type, before, end, offset - end);
		say(place, "member", type, name, offset, size);
		end = offset + size > end ? offset + size : end;
		before = name;
	}
	if (type->size > end)
		say(place, "hole", type, before, end, type->size - end);
}

static const struct btf_type *walk(const struct place *place, __u32 id)
{
	const struct btf_type *type = btf__type_by_id(place->btf, id);

	while (btf_is_mod(type) || btf_is_typedef(type) || btf_is_array(type))
		type = btf__type_by_id(place->btf, btf_is_array(type) ? btf_array(type)->type : type->type);
	if (btf_is_composite(type))
		walk_struct(place, type);
	return type;
}

/* Walks the type, or the type of each variable if it is a section of variables. */
static void walk_value(const struct place *place, __u32 id)
{
	const struct btf_type *type = btf__type_by_id(place->btf, id);

	if (!btf_is_datasec(type)) {
		walk(place, id);
		return;
	}
	for (__u32 i = 0; i < btf_vlen(type); i++)
		walk(place, btf__type_by_id(place->btf, btf_var_secinfos(type)[i].type)->type);
}

static int show(const char *path)
{
	struct bpf_object *object = bpf_object__open(path);
	struct bpf_map *map;

	if (!object)
		return 1;
	bpf_object__for_each_map(map, object) {
		struct place place = {bpf_object__btf(object), bpf_object__name(object), bpf_map__name(map),
				      "key"};

		if (bpf_map__btf_key_type_id(map))
			walk(&place, bpf_map__btf_key_type_id(map));
		place.part = "value";
		if (bpf_map__btf_value_type_id(map))
			walk_value(&place, bpf_map__btf_value_type_id(map));
	}
	bpf_object__close(object);
	return 0;
}

int main(void)
{
	char path[4096];

	while (fgets(path, sizeof(path), stdin)) {
		path[strcspn(path, "\n")] = '\0';
		if (show(path))
			return 1;
	}
	return 0;
}
