// SPDX-License-Identifier: GPL-2.0-only
#include "confined/unwind_image.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "confined/eh_frame.h"
#include "confined/go_image.h"
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

struct mapped_code {
	const struct image *image;
	struct segment *segments;
	size_t nr;
};

static size_t read_code(const void *context, __u64 address, unsigned char *bytes, size_t size)
{
	const struct mapped_code *code = context;

	for (size_t i = 0; i < code->nr; i++) {
		const struct segment *segment = &code->segments[i];
		__u64 at = address - segment->address;

		if (address >= segment->address && at < segment->size && size <= segment->size - at)
			return image_read(code->image, bytes, size, segment->offset + at) ? size : 0;
	}
	return 0;
}

struct go_reader {
	struct unwind_rows *rows;
	const struct mapped_code *code;
};

static bool read_go_table(void *context, struct gopclntab *table)
{
	struct go_reader *reader = context;
	size_t before = reader->rows->nr_functions;

	table->code = read_code;
	table->context = reader->code;
	unwind_rows_next_section(reader->rows);
	gopclntab_read(reader->rows, table);
	return reader->rows->nr_functions > before;
}

/* Returns whether the file has Go's functions. */
static bool read_go(struct unwind_rows *rows, const struct mapped_code *code)
{
	struct go_reader reader = {rows, code};

	return go_image_tables(code->image, SECTION_MOST, read_go_table, &reader);
}

/* --- all of it ---------------------------------------------------------------------------------- */

static void find_range(const struct mapped_code *code, __u64 *low, __u64 *high)
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
	struct mapped_code code = {.image = image};
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
