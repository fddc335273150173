// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/kernel_event.h"

#include <string.h>

#include <bpf/btf.h>

#include "aggregation/kernel_types.h"

/* Of struct bpf_perf_event_data_kern in bytes: CONTEXT_EVENT of bpf/table.bpf.h. */
#define CONTEXT_EVENT 16

/* The kernel's structure of this name; NULL: there is none. */
static const struct btf_type *structure(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	return id < 0 ? NULL : btf__type_by_id(btf, id);
}

/* The offset of a structure's member in bytes; -1: there is none. */
static int offset_of(const struct btf *btf, const struct btf_type *type, const char *name)
{
	for (unsigned int i = 0; type && i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(type)[i].name_off), name))
			return btf_member_bit_offset(type, i) / 8;
	return -1;
}

bool kernel_event_find(struct kernel_event *event)
{
	const struct btf *btf = kernel_types(); /* mem.bpf.c reads the same types */
	const struct btf_type *type = btf ? structure(btf, "perf_event") : NULL;
	int hardware, interrupts, id, count;

	*event = (struct kernel_event){0};
	if (!type || offset_of(btf, structure(btf, "bpf_perf_event_data_kern"), "event") != CONTEXT_EVENT)
		return false;
	hardware = offset_of(btf, type, "hw");
	interrupts = offset_of(btf, structure(btf, "hw_perf_event"), "interrupts");
	id = offset_of(btf, type, "id");
	count = offset_of(btf, type, "count");
	if (hardware < 0 || interrupts < 0 || id < 0 || count < 0)
		return false;
	*event = (struct kernel_event){hardware + interrupts, id, count};
	return true;
}
