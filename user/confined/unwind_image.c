// SPDX-License-Identifier: GPL-2.0-only
#include "confined/unwind_image.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "confined/eh_frame.h"
#include "confined/gopclntab.h"
#include "confined/unwind_rows.h"
#include "naming/image.h"

/* The largest section that is read. Usual ones are smaller, and a larger one would not be worth its memory.
 */
#define SECTION_MOST (64UL << 20)

static unsigned char *section_of(const struct image *image, const char *name, GElf_Shdr *header)
{
	return image_section(image, name, header) && !(header->sh_flags & SHF_COMPRESSED)
		       ? (unsigned char *)image_read_section(image, header, SECTION_MOST)
		       : NULL;
}

static void read_frames(struct unwind_rows *rows, const struct image *image, const char *name, bool debug)
{
	struct frame_section section = {.debug = debug};
	GElf_Shdr header;
	unsigned char *bytes = section_of(image, name, &header);

	if (!bytes)
		return;
	section.bytes = bytes;
	section.size = header.sh_size;
	section.address = header.sh_addr;
	unwind_rows_next_section(rows);
	eh_frame_read(rows, &section);
	free(bytes);
}

/* --- Go ----------------------------------------------------------------------------------------- */

/* Where moduledata, alone in this section since Go 1.26, has the beginning of Go's code:
 * src/runtime/symtab.go. */
#define MODULE		   ".go.module"
#define MODULE_HAS_TEXT_AT 176

/* What the dynamic linker writes at an address of a program that may lie anywhere; 0 if nothing. */
static __u64 relocated(const struct image *image, const char *name, __u64 address)
{
	GElf_Shdr header;
	Elf64_Rela *list = (Elf64_Rela *)section_of(image, name, &header);
	__u64 value = 0;

	for (size_t i = 0; list && i < header.sh_size / sizeof(*list) && !value; i++)
		if (list[i].r_offset == address && ELF64_R_TYPE(list[i].r_info) == R_X86_64_RELATIVE)
			value = list[i].r_addend;
	free(list);
	return value;
}

/* A word of a section, as the running program has it; 0 if there is none. */
static __u64 word_of(const struct image *image, const GElf_Shdr *header, const unsigned char *bytes,
		     size_t at)
{
	__u64 word = 0;

	if (at + sizeof(word) > header->sh_size)
		return 0;
	memcpy(&word, bytes + at, sizeof(word));
	word = word ? word : relocated(image, ".rela.dyn", header->sh_addr + at);
	return word ? word : relocated(image, ".rela", header->sh_addr + at);
}

static __u64 text_of_module(const struct image *image)
{
	GElf_Shdr header;
	unsigned char *bytes = section_of(image, MODULE, &header);
	__u64 text = bytes ? word_of(image, &header, bytes, MODULE_HAS_TEXT_AT) : 0;

	free(bytes);
	return text;
}

struct code {
	const struct image *image;
	struct segment *segments;
	size_t nr;
};

static size_t read_code(const void *context, __u64 address, unsigned char *bytes, size_t size)
{
	const struct code *code = context;

	for (size_t i = 0; i < code->nr; i++) {
		const struct segment *segment = &code->segments[i];
		__u64 at = address - segment->address;

		if (address >= segment->address && at < segment->size && size <= segment->size - at)
			return image_read(code->image, bytes, size, segment->offset + at) ? size : 0;
	}
	return 0;
}

/* Returns whether the section has Go's functions. */
static bool read_go_section(struct unwind_rows *rows, const struct code *code, const char *name)
{
	struct gopclntab table = {.code = read_code, .context = code};
	size_t before = rows->nr_functions, begin, at;
	GElf_Shdr header;
	unsigned char *bytes = section_of(code->image, name, &header);

	if (!bytes)
		return false;
	begin = gopclntab_find(bytes, header.sh_size);
	table.bytes = bytes + begin;
	table.size = header.sh_size - begin;
	at = gopclntab_text_at(table.bytes, table.size);
	table.text = at ? word_of(code->image, &header, bytes, begin + at) : 0;
	if (!table.text)
		table.text = text_of_module(code->image);
	unwind_rows_next_section(rows);
	gopclntab_read(rows, &table);
	free(bytes);
	return rows->nr_functions > before;
}

/* Returns whether the file has Go's functions. Up to Go 1.25, the table of a program that may lie anywhere is
 * in a section of its own only if Go's own linker has made the file. */
static bool read_go(struct unwind_rows *rows, const struct code *code)
{
	GElf_Shdr header;

	return read_go_section(rows, code, ".gopclntab") ||
	       read_go_section(rows, code, ".data.rel.ro.gopclntab") ||
	       (image_section(code->image, ".go.buildinfo", &header) &&
		read_go_section(rows, code, ".data.rel.ro"));
}

/* --- all of it ---------------------------------------------------------------------------------- */

static void find_range(const struct code *code, __u64 *low, __u64 *high)
{
	*low = *high = 0;
	for (size_t i = 0; i < code->nr; i++) {
		__u64 begin = code->segments[i].address, end = begin + code->segments[i].size;

		if (end <= begin)
			continue;
		if (!*high || begin < *low)
			*low = begin;
		*high = end > *high ? end : *high;
	}
}

const char *unwind_table_of_image(struct unwind_table *table, const struct image *image)
{
	struct code code = {.image = image};
	struct unwind_rows rows;
	__u64 low, high;
	GElf_Ehdr file;
	const char *why;

	*table = (struct unwind_table){0};
	if (!gelf_getehdr(image->elf, &file) || file.e_ident[EI_CLASS] != ELFCLASS64 ||
	    file.e_machine != EM_X86_64)
		return "the file is of another machine";
	code.segments = image_segments(image, &code.nr);
	find_range(&code, &low, &high);
	why = unwind_rows_begin(&rows, low, high);
	if (!why) {
		read_frames(&rows, image, ".eh_frame", false);
		/* Go's .debug_frame says no more than its .gopclntab. */
		if (!read_go(&rows, &code))
			read_frames(&rows, image, ".debug_frame", true);
		why = unwind_rows_finish(&rows, file.e_entry, table);
		unwind_rows_release(&rows);
	}
	free(code.segments);
	return why;
}
