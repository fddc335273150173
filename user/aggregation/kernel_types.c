// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/kernel_types.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/btf.h>

#include "aggregation/wanted_types.h"
#include "base/array.h"
#include "base/embedded.h"
#include "base/memory.h"

#define KERNELS "/sys/kernel/btf/vmlinux"
#define CAST	"bpf_cast_to_kern_ctx"
#define OBJECT	".bpf.o"

/* --- the kernel's ----------------------------------------------------------------------------- */

/* What is read of it: Documentation/bpf/btf.rst. */
struct kernel_btf {
	char *data;
	const char *types, *strings;
	__u32 types_length;
	__u32 *places; /* of each type by its number, from `types` on */
	__u32 nr;
};

static char *read_whole(size_t *size)
{
	int fd = open(KERNELS, O_RDONLY | O_CLOEXEC);
	struct stat status;
	char *data = NULL;
	ssize_t got = 1;

	*size = 0;
	if (fd >= 0 && !fstat(fd, &status) && status.st_size > 0) {
		data = xmalloc(status.st_size + 1);
		while (*size < (size_t)status.st_size && got > 0) {
			got = read(fd, data + *size, status.st_size - *size);
			*size += got > 0 ? got : 0;
		}
		data[*size] = 0; /* ends the last name in any case */
	}
	if (fd >= 0)
		close(fd);
	return data;
}

static bool is_consistent(const struct btf_header *header, size_t size)
{
	return size >= sizeof(*header) && header->magic == BTF_MAGIC && header->hdr_len <= size &&
	       (__u64)header->hdr_len + header->type_off + header->type_len <= size &&
	       (__u64)header->hdr_len + header->str_off + header->str_len <= size;
}

/* Bytes behind a type's head, by its kind: in all, and for each of its parts. */
static const struct {
	__u8 in_all, a_part;
	bool known;
} tails[] = {
	[BTF_KIND_INT] = {4, 0, true},
	[BTF_KIND_PTR] = {.known = true},
	[BTF_KIND_ARRAY] = {sizeof(struct btf_array), 0, true},
	[BTF_KIND_STRUCT] = {0, sizeof(struct btf_member), true},
	[BTF_KIND_UNION] = {0, sizeof(struct btf_member), true},
	[BTF_KIND_ENUM] = {0, sizeof(struct btf_enum), true},
	[BTF_KIND_FWD] = {.known = true},
	[BTF_KIND_TYPEDEF] = {.known = true},
	[BTF_KIND_VOLATILE] = {.known = true},
	[BTF_KIND_CONST] = {.known = true},
	[BTF_KIND_RESTRICT] = {.known = true},
	[BTF_KIND_FUNC] = {.known = true},
	[BTF_KIND_FUNC_PROTO] = {0, sizeof(struct btf_param), true},
	[BTF_KIND_VAR] = {sizeof(struct btf_var), 0, true},
	[BTF_KIND_DATASEC] = {0, sizeof(struct btf_var_secinfo), true},
	[BTF_KIND_FLOAT] = {.known = true},
	[BTF_KIND_DECL_TAG] = {sizeof(struct btf_decl_tag), 0, true},
	[BTF_KIND_TYPE_TAG] = {.known = true},
	[BTF_KIND_ENUM64] = {0, sizeof(struct btf_enum64), true},
};

/* Finds where each type is. Returns whether all are of known kinds. */
static bool place_types(struct kernel_btf *whole)
{
	__u32 at = 0;

	whole->places = xmalloc((whole->types_length / sizeof(struct btf_type) + 1) * sizeof(*whole->places));
	whole->nr = 1; /* number 0 is void */
	while (at + sizeof(struct btf_type) <= whole->types_length) {
		const struct btf_type *type = (const void *)(whole->types + at);
		unsigned int kind = btf_kind(type);

		if (kind >= ARRAY_SIZE(tails) || !tails[kind].known)
			return false;
		whole->places[whole->nr++] = at;
		at += sizeof(*type) + tails[kind].in_all + tails[kind].a_part * btf_vlen(type);
	}
	return at == whole->types_length;
}

static bool whole_open(struct kernel_btf *whole)
{
	const struct btf_header *header;
	size_t size;

	*whole = (struct kernel_btf){.data = read_whole(&size)};
	header = (const void *)whole->data;
	if (!whole->data || !is_consistent(header, size))
		return false;
	whole->types = whole->data + header->hdr_len + header->type_off;
	whole->types_length = header->type_len;
	whole->strings = whole->data + header->hdr_len + header->str_off;
	return place_types(whole);
}

static void whole_close(struct kernel_btf *whole)
{
	free(whole->places);
	free(whole->data);
}

static const struct btf_type *type_at(const struct kernel_btf *whole, __u32 id)
{
	return (const void *)(whole->types + whole->places[id]);
}

static const char *name_of(const struct kernel_btf *whole, __u32 name)
{
	return whole->strings + name;
}

/* --- copying ---------------------------------------------------------------------------------- */

struct copying {
	const struct kernel_btf *whole;
	const struct wanted_types *wanted;
	struct btf *extract;
	struct copied {
		__u32 id;
		int copy;
	} * copied;
	size_t nr;
};

static int copy_type(struct copying *copying, __u32 id);

static int copy_enum(struct copying *copying, const struct btf_type *type)
{
	int copy = btf__add_enum(copying->extract, name_of(copying->whole, type->name_off), type->size);

	for (int i = 0; i < btf_vlen(type); i++)
		btf__add_enum_value(copying->extract, name_of(copying->whole, btf_enum(type)[i].name_off),
				    btf_enum(type)[i].val);
	return copy;
}

static int copy_array(struct copying *copying, const struct btf_type *type)
{
	int index = copy_type(copying, btf_array(type)->index_type),
	    element = copy_type(copying, btf_array(type)->type);

	return index < 0 || element < 0
		       ? -1
		       : btf__add_array(copying->extract, index, element, btf_array(type)->nelems);
}

/* The members that may be read. Those of an unnamed structure or union are as the outer one's own. The types
 * of all members come before the structure, to which only the next members can be added. */
static int copy_composite(struct copying *copying, const struct btf_type *type)
{
	int nr = btf_vlen(type), copy, *types = xcalloc(nr + 1, sizeof(*types));
	const char *name = name_of(copying->whole, type->name_off);

	for (int i = 0; i < nr; i++) {
		const struct btf_member *member = &btf_members(type)[i];

		types[i] = !member->name_off || wanted_types_have(&copying->wanted->members,
								  name_of(copying->whole, member->name_off))
				   ? copy_type(copying, member->type)
				   : -1;
	}
	copy = btf_is_union(type) ? btf__add_union(copying->extract, name, type->size)
				  : btf__add_struct(copying->extract, name, type->size);
	for (int i = 0; i < nr; i++)
		if (types[i] >= 0)
			btf__add_field(copying->extract,
				       name_of(copying->whole, btf_members(type)[i].name_off), types[i],
				       btf_member_bit_offset(type, i), btf_member_bitfield_size(type, i));
	free(types);
	return copy;
}

/* Returns the type's number in the extract; -1: relocations don't depend on such a type. A pointer's target
 * is not copied: libbpf compares no targets. */
static int copy_anew(struct copying *copying, const struct btf_type *type)
{
	switch (btf_kind(type)) {
	case BTF_KIND_INT:
		return btf__add_int(copying->extract, name_of(copying->whole, type->name_off), type->size,
				    btf_int_encoding(type));
	case BTF_KIND_PTR:
		return btf__add_ptr(copying->extract, 0);
	case BTF_KIND_ENUM:
		return copy_enum(copying, type);
	case BTF_KIND_ARRAY:
		return copy_array(copying, type);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return copy_composite(copying, type);
	}
	return btf_is_mod(type) || btf_is_typedef(type) ? copy_type(copying, type->type) : -1;
}

static int copy_type(struct copying *copying, __u32 id)
{
	int copy;

	if (!id || id >= copying->whole->nr)
		return -1;
	for (size_t i = 0; i < copying->nr; i++)
		if (copying->copied[i].id == id)
			return copying->copied[i].copy;
	copy = copy_anew(copying, type_at(copying->whole, id));
	*xappend(copying->copied, copying->nr) = (struct copied){id, copy};
	return copy;
}

/* --- looking for names ------------------------------------------------------------------------ */

static __u32 cast;

/* What most names in the kernel's BTF can be told by from those that are wanted: their first two bytes. */
#define BEGINNINGS 4096

static unsigned int beginning(const char *name)
{
	return name[0] ? (((unsigned char)name[0] << 5) ^ (unsigned char)name[1]) & (BEGINNINGS - 1) : 0;
}

static void copy_wanted(struct copying *copying)
{
	const struct kernel_btf *whole = copying->whole;
	bool begins[BEGINNINGS] = {0};
	const char *name;
	size_t at = 0;

	while ((name = map_next(&copying->wanted->types, &at)))
		begins[beginning(name)] = true;
	for (__u32 id = 1; id < whole->nr; id++) {
		const struct btf_type *type = type_at(whole, id);

		switch (btf_kind(type)) {
		case BTF_KIND_STRUCT:
		case BTF_KIND_UNION:
		case BTF_KIND_ENUM:
			name = name_of(whole, type->name_off);
			if (begins[beginning(name)] && wanted_types_have(&copying->wanted->types, name))
				copy_type(copying, id);
			break;
		case BTF_KIND_FUNC:
			if (!strcmp(name_of(whole, type->name_off), CAST))
				cast = id;
			break;
		}
	}
}

static void add_wanted(struct wanted_types *wanted)
{
	struct embedded object;

	for (size_t i = 0; (object = embedded_at(i)).name; i++)
		if (strstr(object.name, OBJECT) && !strchr(object.name, '-') && object_reads_kernel(&object))
			wanted_types_add(wanted, &object);
}

static struct btf *make_extract(void)
{
	struct wanted_types wanted = {0};
	struct kernel_btf whole;
	struct copying copying = {.whole = &whole, .wanted = &wanted};

	if (whole_open(&whole)) {
		copying.extract = had(btf__new_empty());
		add_wanted(&wanted);
		copy_wanted(&copying);
		free(copying.copied);
		wanted_types_release(&wanted);
	}
	whole_close(&whole);
	return copying.extract;
}

/* --- what is made once ------------------------------------------------------------------------ */

const struct btf *kernel_types(void)
{
	static struct btf *extract;
	static bool tried;

	if (!tried)
		extract = make_extract();
	tried = true;
	return extract;
}

__u32 kernel_types_cast(void)
{
	return cast;
}

/* Returns whether the file can be opened by its path: without /proc it can't. */
static bool write_file(char *path, size_t room, const struct btf *extract)
{
	__u32 size;
	const void *data = btf__raw_data(extract, &size);
	int fd = memfd_create("kernel_types", MFD_CLOEXEC), again = -1;

	if (fd < 0)
		return false;
	snprintf(path, room, "/proc/self/fd/%d", fd);
	if (data && write(fd, data, size) == (ssize_t)size)
		again = open(path, O_RDONLY | O_CLOEXEC);
	close(again < 0 ? fd : again);
	return again >= 0;
}

const char *kernel_types_path(void)
{
	static char path[40];
	static bool tried, written;

	if (!tried && kernel_types())
		written = write_file(path, sizeof(path), kernel_types());
	tried = true;
	return written ? path : NULL;
}
