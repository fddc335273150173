// SPDX-License-Identifier: GPL-2.0-only
#include "confined/relocations.h"

#include <stdlib.h>
#include <string.h>

#include "naming/image.h"

static bool is_wide(const struct image *image)
{
	return gelf_getclass(image->elf) == ELFCLASS64;
}

static size_t relocation_size(bool wide, __u32 kind)
{
	return wide ? sizeof(Elf64_Rela) : kind == SHT_RELA ? sizeof(Elf32_Rela) : sizeof(Elf32_Rel);
}

static struct relocation relocation_at(bool wide, __u32 kind, const char *bytes)
{
	Elf32_Rela narrow = {0};
	Elf64_Rela whole;

	if (wide) {
		memcpy(&whole, bytes, sizeof(whole));
		return (struct relocation){whole.r_offset, ELF64_R_SYM(whole.r_info),
					   ELF64_R_TYPE(whole.r_info), whole.r_addend};
	}
	memcpy(&narrow, bytes, relocation_size(wide, kind));
	return (struct relocation){narrow.r_offset, ELF32_R_SYM(narrow.r_info), ELF32_R_TYPE(narrow.r_info),
				   (__u32)narrow.r_addend};
}

/* Linkers write the relocations that need no symbol first, and say how many there are (DT_RELACOUNT). In a
 * large library they are most of all. */
static size_t nr_without_symbol(const struct image *image, __u32 kind, size_t most)
{
	GElf_Sxword count = kind == SHT_RELA ? DT_RELACOUNT : DT_RELCOUNT;
	bool wide = is_wide(image);
	size_t each = wide ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn), nr = 0;
	GElf_Shdr header;
	char *bytes = image_section_of_kind(image, SHT_DYNAMIC, &header)
			      ? image_read_section(image, &header, most)
			      : NULL;

	for (size_t i = 0; bytes && i < header.sh_size / each; i++) {
		const Elf32_Dyn *narrow = (const Elf32_Dyn *)bytes + i;
		const Elf64_Dyn *whole = (const Elf64_Dyn *)bytes + i;

		if ((wide ? whole->d_tag : narrow->d_tag) == count)
			nr = wide ? whole->d_un.d_val : narrow->d_un.d_val;
	}
	free(bytes);
	return nr;
}

void relocations_each(const struct image *image, const char *section, enum relocations_kind kind, size_t most,
		      relocation_visit *visit, void *context)
{
	bool wide = is_wide(image);
	size_t size, nr, first;
	GElf_Shdr header;
	char *table;

	if (!image_section(image, section, &header))
		return;
	size = relocation_size(wide, header.sh_type);
	nr = header.sh_size / size;
	first = kind == RELOCATIONS_DATA ? nr_without_symbol(image, header.sh_type, most) : 0;
	if (first >= nr)
		return;
	header.sh_offset += first * size;
	header.sh_size = (nr - first) * size;
	table = image_read_section(image, &header, most);
	for (size_t i = 0; table && i < nr - first; i++) {
		struct relocation relocation = relocation_at(wide, header.sh_type, table + i * size);

		visit(context, &relocation);
	}
	free(table);
}

void dynamic_read(struct dynamic *dynamic, const struct image *image, size_t most)
{
	GElf_Shdr table;

	*dynamic = (struct dynamic){.wide = is_wide(image)};
	if (!image_section_of_kind(image, SHT_DYNSYM, &table) ||
	    !gelf_getshdr(elf_getscn(image->elf, table.sh_link), &dynamic->strings))
		return;
	dynamic->table = image_read_section(image, &table, most);
	if (dynamic->table)
		dynamic->nr = table.sh_size / (dynamic->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
}

void dynamic_release(struct dynamic *dynamic)
{
	free(dynamic->table);
	*dynamic = (struct dynamic){0};
}

bool dynamic_symbol(const struct dynamic *dynamic, __u64 number, GElf_Sym *symbol)
{
	if (!number || number >= dynamic->nr)
		return false;
	if (dynamic->wide) {
		*symbol = ((const Elf64_Sym *)dynamic->table)[number];
	} else {
		const Elf32_Sym *narrow = (const Elf32_Sym *)dynamic->table + number;

		*symbol = (GElf_Sym){narrow->st_name,  narrow->st_info,	 narrow->st_other,
				     narrow->st_shndx, narrow->st_value, narrow->st_size};
	}
	return true;
}
