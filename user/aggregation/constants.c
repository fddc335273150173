// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/constants.h"

#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/alternatives.h"
#include "base/list.h"
#include "base/memory.h"

/* The prefix of the constants that switch a program's keys on. */
#define BY "by_"

/* The section of the constants, with a copy of their values. */
struct constants {
	const struct btf *btf;
	const struct btf_type *section;
	struct bpf_map *map;
	char *values;
	size_t size;
};

static struct constants constants_of(struct bpf_object *object)
{
	struct constants constants = {
		.btf = bpf_object__btf(object),
		.map = bpf_object__find_map_by_name(object, ".rodata"),
	};
	const void *initial = bpf_map__initial_value(constants.map, &constants.size);

	constants.section = btf__type_by_id(
		constants.btf, btf__find_by_name_kind(constants.btf, ".rodata", BTF_KIND_DATASEC));
	constants.values = memcpy(xmalloc(constants.size), initial, constants.size);
	return constants;
}

static void put_back(struct constants *constants)
{
	bpf_map__set_initial_value(constants->map, constants->values, constants->size);
	free(constants->values);
}

static const struct btf_var_secinfo *section_variable(const struct constants *constants, int i)
{
	return &btf_var_secinfos(constants->section)[i];
}

static const char *name_of(const struct constants *constants, int i)
{
	const struct btf_type *type = btf__type_by_id(constants->btf, section_variable(constants, i)->type);

	return btf__name_by_offset(constants->btf, type->name_off);
}

void constants_copy(struct bpf_object *object, const char *name, const void *bytes, size_t size)
{
	struct constants constants = constants_of(object);

	for (int i = 0; i < btf_vlen(constants.section); i++)
		if (!strcmp(name_of(&constants, i), name) && size <= section_variable(&constants, i)->size)
			memcpy(constants.values + section_variable(&constants, i)->offset, bytes, size);
	put_back(&constants);
}

bool constants_set(struct bpf_object *object, const char *name, __u64 value)
{
	struct constants constants = constants_of(object);
	bool found = false;

	for (int i = 0; i < btf_vlen(constants.section); i++) {
		if (strcmp(name_of(&constants, i), name))
			continue;
		memcpy(constants.values + section_variable(&constants, i)->offset, &value, /* little endian */
		       section_variable(&constants, i)->size);
		found = true;
	}
	put_back(&constants);
	return found;
}

/* --- what is told apart ----------------------------------------------------------------------- */

/* The key that the i-th constant switches on; NULL for other constants. */
static const char *choice(const struct constants *constants, int i)
{
	const char *name = name_of(constants, i);

	return strncmp(name, BY, strlen(BY)) ? NULL : name + strlen(BY);
}

/* The value of the constant that switches a key on; NULL if there is none. */
static bool *find_choice(const struct constants *constants, const char *name, size_t length)
{
	for (int i = 0; i < btf_vlen(constants->section); i++) {
		const char *found = choice(constants, i);

		if (found && strlen(found) == length && !strncmp(found, name, length))
			return (bool *)constants->values + section_variable(constants, i)->offset;
	}
	return NULL;
}

static int refuse_key(const struct constants *constants, const char *by, const char *const *others,
		      const char *name, int length, struct refusal *refusal)
{
	struct alternatives alternatives;

	alternatives_begin(&alternatives, name, length);
	for (int i = 0; i < btf_vlen(constants->section); i++)
		if (choice(constants, i))
			alternatives_offer(&alternatives, choice(constants, i));
	if (others)
		alternatives_offer_all(&alternatives, others);
	refuse(refusal, STATUS_USAGE, "option --by '%s'", by);
	because(refusal, "there is no key '%.*s'", length, name);
	return alternatives_end(&alternatives, refusal, "keys: %s", alternatives.all);
}

/* Whether entries are of one kind. If there are several, their keys differ, and a key without a constant
 * can't be named in `by`. */
static bool one_kind(const struct layout *layout)
{
	return !layout_key_of_type(layout, "entry_kind_t");
}

static int choose_keys(const struct constants *constants, const struct layout *layout, const char *by,
		       const char *const *others, struct refusal *refusal)
{
	size_t length;

	for (const char *at = NULL; (at = list_next(by, at, &length));) {
		bool *chosen = find_choice(constants, at, length);

		/* A key that is always on may also be named. */
		if (!chosen && !(one_kind(layout) && layout_key(layout, at, length)))
			return refuse_key(constants, by, others, at, length, refusal);
		if (chosen)
			*chosen = true;
	}
	return 0;
}

static void note_choices(const struct constants *constants, struct layout *layout)
{
	layout->by = xcalloc(btf_vlen(constants->section) + layout->nr_keys, sizeof(*layout->by));
	for (size_t i = 0; i < layout->nr_keys; i++) {
		struct member *member = &layout->keys[i];
		const bool *chosen = find_choice(constants, member->name, strlen(member->name));

		member->optional = chosen;
		member->shown = !chosen || *chosen;
		if (member->shown && (chosen || one_kind(layout)))
			layout->by[layout->nr_by++] = member->name;
	}
	for (int i = 0; i < btf_vlen(constants->section); i++) {
		const char *name = choice(constants, i);

		if (name && constants->values[section_variable(constants, i)->offset] &&
		    !layout_key_named(layout, name))
			layout->by[layout->nr_by++] = name;
	}
}

int constants_tell_apart(struct bpf_object *object, struct layout *layout, const char *by,
			 const char *const *others, struct refusal *refusal)
{
	struct constants constants = constants_of(object);
	int err = choose_keys(&constants, layout, by, others, refusal);

	if (!err)
		note_choices(&constants, layout);
	put_back(&constants);
	return err;
}
