// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/throttling.h"

#include <string.h>

#include <bpf/btf.h>

#include "aggregation/kernel_types.h"

/* Of struct bpf_perf_event_data_kern in bytes: CONTEXT_EVENT of bpf/table.bpf.h. */
#define CONTEXT_EVENT 16

/* The offset of a structure's member in bytes; -1: there is none. */
static int offset_of(const struct btf *btf, const char *type, const char *name)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_type *found = id < 0 ? NULL : btf__type_by_id(btf, id);

	for (unsigned int i = 0; found && i < btf_vlen(found); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(found)[i].name_off), name))
			return btf_member_bit_offset(found, i) / 8;
	return -1;
}

static __u32 find(const struct btf *btf)
{
	int hardware = offset_of(btf, "perf_event", "hw");
	int interrupts = offset_of(btf, "hw_perf_event", "interrupts");

	if (hardware < 0 || interrupts < 0 ||
	    offset_of(btf, "bpf_perf_event_data_kern", "event") != CONTEXT_EVENT)
		return 0;
	return hardware + interrupts;
}

__u32 throttling_offset(void)
{
	const struct btf *btf = kernel_types(); /* mem.bpf.c reads the same members */

	return btf ? find(btf) : 0;
}
