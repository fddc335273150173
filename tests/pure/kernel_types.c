// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints the named structures and unions of the kernel's BTF: of nhmtap's extract ("extract" on standard
 * input), or of all of it as libbpf reads it ("whole"). A line each: kind, name, bytes, and its members as
 * NAME:OFFSET:BITS:BYTES; offsets are in bits, and BITS is 0 but for bit-fields. A pointer has 8 bytes.
 */
#include <stdio.h>
#include <string.h>

#include <bpf/btf.h>

#include "aggregation/kernel_types.h"

int main(void)
{
	char word[16] = "";
	struct btf *whole = NULL;
	const struct btf *btf;

	if (scanf("%15s", word) != 1)
		return 1;
	if (!strcmp(word, "whole"))
		whole = btf__load_vmlinux_btf();
	btf = whole ? whole : kernel_types();
	for (__u32 id = 1; btf && id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);

		if (!btf_is_composite(type) || !type->name_off)
			continue;
		printf("%s %s %u", btf_is_union(type) ? "union" : "struct",
		       btf__name_by_offset(btf, type->name_off), type->size);
		for (__u32 i = 0; i < btf_vlen(type); i++)
			printf(" %s:%u:%u:%lld", btf__name_by_offset(btf, btf_members(type)[i].name_off),
			       btf_member_bit_offset(type, i), btf_member_bitfield_size(type, i),
			       (long long)btf__resolve_size(btf, btf_members(type)[i].type));
		puts("");
	}
	btf__free(whole);
	return 0;
}
