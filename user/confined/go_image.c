// SPDX-License-Identifier: GPL-2.0-only
#include "confined/go_image.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "confined/gopclntab.h"
#include "confined/lines.h"
#include "naming/image.h"
#include "naming/symbols.h"

/* The largest section that is read to find where Go's code begins. */
#define SECTION_MOST (64UL << 20)

static unsigned char *section_of(const struct image *image, const char *name, GElf_Shdr *header)
{
	return image_section(image, name, header) && !(header->sh_flags & SHF_COMPRESSED)
		       ? (unsigned char *)image_read_section(image, header, SECTION_MOST)
		       : NULL;
}

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

struct go_search {
	const struct image *image;
	size_t most;
	bool (*each)(void *context, struct gopclntab *table);
	void *context;
};

static bool try_section(const struct go_search *search, const char *name)
{
	struct gopclntab table = {0};
	size_t begin, at;
	GElf_Shdr header;
	unsigned char *bytes = section_of(search->image, name, &header);
	bool taken = false;

	if (bytes && header.sh_size <= search->most) {
		begin = gopclntab_find(bytes, header.sh_size);
		table.bytes = bytes + begin;
		table.size = header.sh_size - begin;
		at = gopclntab_text_at(table.bytes, table.size);
		table.text = at ? word_of(search->image, &header, bytes, begin + at) : 0;
		if (!table.text)
			table.text = text_of_module(search->image);
		taken = search->each(search->context, &table);
	}
	free(bytes);
	return taken;
}

bool go_image_tables(const struct image *image, size_t most,
		     bool (*each)(void *context, struct gopclntab *table), void *context)
{
	const struct go_search search = {image, most, each, context};
	GElf_Shdr header;

	/* Up to Go 1.25, the table of a program that may lie anywhere is in a section of its own only if
	 * Go's own linker has made the file. */
	return try_section(&search, ".gopclntab") || try_section(&search, ".data.rel.ro.gopclntab") ||
	       (image_section(image, ".go.buildinfo", &header) && try_section(&search, ".data.rel.ro"));
}

/* --- names -------------------------------------------------------------------------------------- */

struct namer {
	struct symbols *symbols;
	size_t names_size;
	__u32 base;
};

static void add_symbol(void *context, __u64 begin, __u64 end, size_t name)
{
	const struct namer *namer = context;

	if (name < namer->names_size)
		symbols_add(namer->symbols,
			    &(struct found_symbol){begin, end, namer->base + name, .order = 0});
}

static bool add_symbols(void *context, struct gopclntab *table)
{
	struct namer namer = {.symbols = context};
	const char *names = gopclntab_names(table, &namer.names_size);
	long long base = namer.names_size ? symbols_add_strings(context, names, namer.names_size) : -1;

	namer.base = base;
	if (base >= 0)
		gopclntab_functions(table, add_symbol, &namer);
	return base >= 0;
}

void go_image_add_symbols(const struct image *image, struct symbols *symbols, size_t most)
{
	go_image_tables(image, most, add_symbols, symbols);
}

/* --- lines -------------------------------------------------------------------------------------- */

struct go_lines {
	struct gopclntab table;
	unsigned char *bytes;
};

static bool keep_table(void *context, struct gopclntab *table)
{
	struct go_lines **lines = context;
	size_t names;

	gopclntab_names(table, &names);
	if (!names)
		return false;
	*lines = xcalloc(1, sizeof(**lines));
	(*lines)->bytes = memcpy(xmalloc(table->size), table->bytes, table->size);
	(*lines)->table =
		(struct gopclntab){.bytes = (*lines)->bytes, .size = table->size, .text = table->text};
	return true;
}

struct go_lines *go_lines_open(const struct image *image, size_t most)
{
	struct go_lines *lines = NULL;

	go_image_tables(image, most, keep_table, &lines);
	return lines;
}

void go_lines_close(struct go_lines *lines)
{
	if (lines)
		free(lines->bytes);
	free(lines);
}

size_t go_lines_bytes(const struct go_lines *lines)
{
	return sizeof(*lines) + lines->table.size;
}

bool go_lines_find(const struct go_lines *lines, __u64 address, struct source_place *place)
{
	struct go_line line;

	*place = (struct source_place){0};
	if (!gopclntab_line(&lines->table, address, &line))
		return false;
	place->file = line.file;
	place->line = line.line;
	return true;
}
