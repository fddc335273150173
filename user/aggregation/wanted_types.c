// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/wanted_types.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>
#include <linux/bpf.h>

#include "base/memory.h"

/* Precedes the flavour in the name of a type: libbpf's bpf_core_essential_name_len(). */
#define FLAVOUR "___"

/* The header of .BTF.ext: struct btf_ext_header, Documentation/bpf/btf.rst; the last two members are in
 * tools/lib/bpf/libbpf_internal.h. Offsets are from the header's end. */
struct ext_header {
	__u16 magic;
	__u8 version, flags;
	__u32 length;
	__u32 functions, functions_length;
	__u32 lines, lines_length;
	__u32 relocations, relocations_length;
};

/* The relocations of one section of the program; a record begins like struct bpf_core_relo, linux/bpf.h. */
struct ext_section {
	__u32 name, nr;
	char records[];
};

struct bytes {
	const char *at;
	size_t size;
};

static struct bytes section_of(const struct embedded *object, const char *name)
{
	const Elf64_Ehdr *elf = (const void *)object->data;
	const Elf64_Shdr *sections = (const void *)(object->data + elf->e_shoff);
	const char *names = object->data + sections[elf->e_shstrndx].sh_offset;

	for (size_t i = 0; i < elf->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, name))
			return (struct bytes){object->data + sections[i].sh_offset, sections[i].sh_size};
	return (struct bytes){0};
}

static struct bytes relocations_of(const struct embedded *object)
{
	struct bytes ext = section_of(object, ".BTF.ext");
	const struct ext_header *header = (const void *)ext.at;

	if (ext.size < sizeof(*header) || header->length < sizeof(*header))
		return (struct bytes){0};
	return (struct bytes){ext.at + header->length + header->relocations, header->relocations_length};
}

bool object_reads_kernel(const struct embedded *object)
{
	return relocations_of(object).size > sizeof(__u32);
}

static void add_name_of_type(struct map *names, const char *name, size_t length)
{
	char *copy = xasprintf("%.*s", (int)length, name);

	if (wanted_types_have(names, copy))
		free(copy);
	else
		map_put(names, map_key(copy, 0), copy);
}

static void add_type(struct wanted_types *wanted, const char *name)
{
	const char *flavour = strstr(name, FLAVOUR);

	add_name_of_type(&wanted->types, name, flavour ? (size_t)(flavour - name) : strlen(name));
}

static void add_members(struct wanted_types *wanted, const struct btf *btf)
{
	for (__u32 id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);

		for (int i = 0; btf_is_composite(type) && i < btf_vlen(type); i++) {
			const char *name = btf__name_by_offset(btf, btf_members(type)[i].name_off);

			add_name_of_type(&wanted->members, name, strlen(name));
		}
	}
}

void wanted_types_add(struct wanted_types *wanted, const struct embedded *object)
{
	struct bytes types = section_of(object, ".BTF"), relocations = relocations_of(object);
	struct btf *btf = btf__new(types.at, types.size);
	const char *at = relocations.at, *end = at + relocations.size;
	const struct ext_section *section;
	__u32 size; /* of a record */

	if (!btf)
		return;
	memcpy(&size, at, sizeof(size));
	for (at += sizeof(size); at < end; at = section->records + (size_t)section->nr * size) {
		section = (const void *)at;
		for (__u32 i = 0; i < section->nr; i++) {
			const struct bpf_core_relo *relocation =
				(const void *)(section->records + (size_t)i * size);
			const struct btf_type *type = btf__type_by_id(btf, relocation->type_id);

			add_type(wanted, btf__name_by_offset(btf, type->name_off));
		}
	}
	add_members(wanted, btf);
	btf__free(btf);
}

static void release_names(struct map *names)
{
	size_t at = 0;

	for (void *name; (name = map_next(names, &at));)
		free(name);
	map_release(names);
}

void wanted_types_release(struct wanted_types *wanted)
{
	release_names(&wanted->types);
	release_names(&wanted->members);
}

bool wanted_types_have(const struct map *names, const char *name)
{
	__u64 key = map_key(name, 0);
	size_t at = 0;

	for (const char *found; (found = map_find_next(names, key, &at));)
		if (!strcmp(found, name))
			return true;
	return false;
}
