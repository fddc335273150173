// SPDX-License-Identifier: GPL-2.0-only
#include "naming/image.h"

#include <errno.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <elfutils/libdwelf.h>

#include "base/hex.h"
#include "base/memory.h"

bool image_read(const struct image *image, void *to, size_t size, __u64 offset)
{
	if (offset > image->size || size > image->size - offset)
		return false;
	if (image->memory) {
		memcpy(to, image->memory + offset, size);
		return true;
	}
	for (size_t done = 0; done < size;) {
		ssize_t got = pread(image->fd, (char *)to + done, size - done, offset + done);

		if (got <= 0 && !(got < 0 && errno == EINTR))
			return false;
		done += got > 0 ? got : 0;
	}
	return true;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* libelf allocates memory for as many sections as the header claims. */
#define SECTIONS_MOST 100000

/* The number of sections if it does not fit the header's field: it is then in the size of the first section
 * header. */
static __u64 further_sections(const struct image *image, const Elf64_Ehdr *header)
{
	Elf64_Shdr wide;
	Elf32_Shdr narrow;

	if (header->e_ident[EI_CLASS] == ELFCLASS64)
		return header->e_shoff && image_read(image, &wide, sizeof(wide), header->e_shoff)
			       ? wide.sh_size
			       : 0;
	return ((const Elf32_Ehdr *)header)->e_shoff && image_read(image, &narrow, sizeof(narrow),
								   ((const Elf32_Ehdr *)header)->e_shoff)
		       ? narrow.sh_size
		       : 0;
}

static const char *check_header(const struct image *image)
{
	Elf64_Ehdr header = {0};
	__u64 sections;

	if (!image_read(image, &header, sizeof(Elf32_Ehdr), 0) || memcmp(header.e_ident, ELFMAG, SELFMAG))
		return "the file is no ELF file";
	image_read(image, &header, sizeof(header), 0);
	if (header.e_ident[EI_DATA] != ELFDATA2LSB)
		return "the file is of another machine";
	sections = header.e_ident[EI_CLASS] == ELFCLASS64 ? header.e_shnum : ((Elf32_Ehdr *)&header)->e_shnum;
	if (!sections)
		sections = further_sections(image, &header);
	return sections > SECTIONS_MOST ? "the file has more sections than are read" : NULL;
}

static void find_code(struct image *image)
{
	size_t nr = 0, room = 0;
	struct span *spans;
	GElf_Shdr header;

	elf_getshdrnum(image->elf, &room);
	spans = xmalloc((room + 1) * sizeof(*spans));
	image->code_ends = xmalloc((room + 1) * sizeof(*image->code_ends));
	for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section)) && nr < room;)
		if (gelf_getshdr(section, &header) && header.sh_flags & SHF_EXECINSTR) {
			image->code_ends[nr] = header.sh_addr + header.sh_size;
			spans[nr] = (struct span){header.sh_addr, image->code_ends[nr], 0, nr};
			nr++;
		}
	spans_make(&image->code, spans, nr);
	free(spans);
}

static const char *begin_elf(struct image *image)
{
	const char *why = check_header(image);

	if (!why) {
		elf_version(EV_CURRENT);
		image->elf = image->memory ? elf_memory(image->memory, image->size)
					   : elf_begin(image->fd, ELF_C_READ, NULL);
		if (!image->elf || elf_kind(image->elf) != ELF_K_ELF)
			why = "the file is a broken ELF file";
	}
	if (why)
		image_close(image);
	else
		find_code(image);
	return why;
}

const char *image_from_file(struct image *image, int fd)
{
	struct stat stat;

	*image = (struct image){.fd = fd};
	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode)) {
		image->size = stat.st_size;
		image->owner = stat.st_uid;
		return begin_elf(image);
	}
	image_close(image);
	return "it is no regular file";
}

const char *image_from_memory(struct image *image, char *memory, size_t size)
{
	*image = (struct image){.fd = -1, .memory = memory, .size = size};
	return begin_elf(image);
}

/* The section headers are the last part of the vdso, so its size is where they end. */
const char *image_from_vdso(struct image *image)
{
	const char *begin = (const char *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = (const void *)begin;
	size_t size;

	if (!begin)
		return "this machine has no vdso";
	size = header->e_shoff + header->e_shnum * sizeof(Elf64_Shdr);
	return image_from_memory(image, memcpy(xmalloc(size), begin, size), size);
}

bool image_map(struct image *image)
{
	Elf *elf;

	if (image->mapped)
		return true;
	elf = image->fd >= 0 ? elf_begin(image->fd, ELF_C_READ_MMAP, NULL) : NULL;
	if (!elf)
		return false;
	elf_end(image->elf);
	image->elf = elf;
	image->mapped = true;
	return true;
}

void image_rest(const struct image *image)
{
	size_t size;
	char *mapping = image->mapped ? elf_rawfile(image->elf, &size) : NULL;

	if (mapping)
		madvise(mapping, size, MADV_DONTNEED);
}

void image_close(struct image *image)
{
	elf_end(image->elf);
	if (image->fd >= 0)
		close(image->fd);
	free(image->memory);
	spans_release(&image->code);
	free(image->code_ends);
	*image = (struct image){.fd = -1};
}

/* --- its parts -------------------------------------------------------------------------------- */

void image_build_id(const struct image *image, char text[2 * BUILD_ID_MAX + 1])
{
	const void *id = NULL;
	ssize_t size = dwelf_elf_gnu_build_id(image->elf, &id);

	hex_text(text, id, size > 0 && size <= BUILD_ID_MAX ? size : 0);
}

const char *image_section_name(const struct image *image, const GElf_Shdr *header)
{
	size_t names;
	const char *name =
		elf_getshdrstrndx(image->elf, &names) ? NULL : elf_strptr(image->elf, names, header->sh_name);

	return name ? name : "";
}

Elf_Scn *image_section(const struct image *image, const char *name, GElf_Shdr *header)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));)
		if (gelf_getshdr(section, header) && !strcmp(image_section_name(image, header), name))
			return section;
	return NULL;
}

Elf_Scn *image_section_of_kind(const struct image *image, __u32 kind, GElf_Shdr *header)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));)
		if (gelf_getshdr(section, header) && header->sh_type == kind)
			return section;
	return NULL;
}

char *image_read_section(const struct image *image, const GElf_Shdr *header, size_t most)
{
	char *bytes;

	if (header->sh_type == SHT_NOBITS || !header->sh_size || header->sh_size > most ||
	    header->sh_size > image->size)
		return NULL;
	bytes = xmalloc(header->sh_size);
	if (image_read(image, bytes, header->sh_size, header->sh_offset))
		return bytes;
	free(bytes);
	return NULL;
}

static struct segment *segments_of(const struct image *image, bool all, size_t *nr)
{
	struct segment *segments = NULL;
	GElf_Phdr header;
	size_t count = 0;

	*nr = 0;
	if (elf_getphdrnum(image->elf, &count) || count > SECTIONS_MOST)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(image->elf, i, &header) || header.p_type != PT_LOAD ||
		    !(all || header.p_flags & PF_X))
			continue;
		*xappend(segments, *nr) = (struct segment){
			header.p_offset, all ? header.p_memsz : header.p_filesz, header.p_vaddr};
	}
	return segments;
}

struct segment *image_segments(const struct image *image, size_t *nr)
{
	return segments_of(image, false, nr);
}

struct segment *image_loaded(const struct image *image, size_t *nr)
{
	return segments_of(image, true, nr);
}

__u64 image_end_of_code(const void *of, const struct found_symbol *symbol)
{
	const struct image *image = of;
	__u32 section = spans_find(&image->code, symbol->address);

	return section == SPANS_NONE ? symbol->address : image->code_ends[section];
}

/* --- symbols ---------------------------------------------------------------------------------- */

static GElf_Sym symbol_at(const char *table, bool wide, size_t i)
{
	const Elf64_Sym *symbol = (const Elf64_Sym *)table + i;
	const Elf32_Sym *narrow = (const Elf32_Sym *)table + i;

	if (wide)
		return *symbol;
	return (GElf_Sym){narrow->st_name,  narrow->st_info,  narrow->st_other,
			  narrow->st_shndx, narrow->st_value, narrow->st_size};
}

/* Returns whether each section has code, by its number; xmalloc()ed. */
static bool *code_sections(const struct image *image, size_t *nr)
{
	GElf_Shdr header;
	bool *code;

	if (elf_getshdrnum(image->elf, nr))
		*nr = 0;
	code = xcalloc(*nr + 1, sizeof(*code));
	for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));)
		if (elf_ndxscn(section) < *nr && gelf_getshdr(section, &header))
			code[elf_ndxscn(section)] = header.sh_flags & SHF_EXECINSTR;
	return code;
}

static bool is_code(const GElf_Sym *symbol, const bool *code, size_t nr_code)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || !symbol->st_name)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && symbol->st_shndx < nr_code && code[symbol->st_shndx];
}

/* Those without a size would get the bytes of what follows, which may have no symbol. */
static bool is_data(const GElf_Sym *symbol)
{
	return symbol->st_shndx != SHN_UNDEF && symbol->st_name && symbol->st_size &&
	       GELF_ST_TYPE(symbol->st_info) == STT_OBJECT;
}

bool symbol_in_table(const struct symbol_table *table, const char *bytes, size_t i,
		     struct found_symbol *found)
{
	GElf_Sym symbol = symbol_at(bytes, table->each == sizeof(Elf64_Sym), i);

	if (symbol.st_name >= table->strings_size ||
	    !(table->code ? is_code(&symbol, table->code, table->nr_code) : is_data(&symbol)))
		return false;
	if (symbol.st_size > -1ULL - symbol.st_value)
		symbol.st_size = 0;
	*found = (struct found_symbol){symbol.st_value,
				       symbol.st_value + symbol.st_size,
				       symbol.st_name,
				       0,
				       .weak = GELF_ST_BIND(symbol.st_info) == STB_WEAK,
				       .local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL,
				       .label = GELF_ST_TYPE(symbol.st_info) == STT_NOTYPE,
				       .indirect = GELF_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC};
	return true;
}

bool image_symbol_table(const struct image *image, __u32 kind, bool data, struct symbol_table *table)
{
	GElf_Shdr header, strings;

	*table = (struct symbol_table){0};
	if (!image_section_of_kind(image, kind, &header) || header.sh_type == SHT_NOBITS ||
	    !gelf_getshdr(elf_getscn(image->elf, header.sh_link), &strings) || strings.sh_type == SHT_NOBITS)
		return false;
	table->each = gelf_getclass(image->elf) == ELFCLASS64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	table->offset = header.sh_offset;
	table->nr = header.sh_size / table->each;
	table->strings = strings.sh_offset;
	table->strings_size = strings.sh_size;
	table->code = data ? NULL : code_sections(image, &table->nr_code);
	return true;
}

void symbol_table_release(struct symbol_table *table)
{
	free(table->code);
	*table = (struct symbol_table){0};
}

/* Reads strings straight to where they are kept, since they are most of a table. Returns where they begin, or
 * -1. */
static long long add_strings(const struct image *image, struct symbols *symbols,
			     const struct symbol_table *table, size_t most)
{
	size_t size = table->strings_size;
	char *room = size && size <= most && size <= image->size ? symbols_room(symbols, size) : NULL;

	return room && image_read(image, room, size, table->strings) ? symbols_take_room(symbols, size) : -1;
}

#define SYMBOLS_AT_ONCE 1024

static bool add_table(const struct image *image, __u32 kind, struct symbols *symbols, size_t most, bool data)
{
	char bytes[SYMBOLS_AT_ONCE * sizeof(Elf64_Sym)] __attribute__((aligned(8)));
	struct symbol_table table;
	struct found_symbol found;
	long long base = -1;

	if (!image_symbol_table(image, kind, data, &table))
		return false;
	if (table.nr && table.nr * table.each <= most)
		base = add_strings(image, symbols, &table, most);
	if (base >= 0)
		symbols_expect(symbols, table.nr);
	for (size_t at = 0, nr; at < table.nr && base >= 0; at += nr) {
		nr = table.nr - at < SYMBOLS_AT_ONCE ? table.nr - at : SYMBOLS_AT_ONCE;
		if (!image_read(image, bytes, nr * table.each, table.offset + at * table.each))
			break;
		for (size_t i = 0; i < nr; i++)
			if (symbol_in_table(&table, bytes, i, &found)) {
				found.name += base;
				symbols_add(symbols, &found);
			}
	}
	symbol_table_release(&table);
	return base >= 0;
}

bool image_add_symbols(const struct image *image, __u32 kind, struct symbols *symbols, size_t most)
{
	return add_table(image, kind, symbols, most, false);
}

bool image_add_objects(const struct image *image, __u32 kind, struct symbols *objects, size_t most)
{
	return add_table(image, kind, objects, most, true);
}

bool image_symbols_exceed(const struct image *image, __u32 kind, size_t most)
{
	struct symbol_table table;
	bool there = image_symbol_table(image, kind, true, &table);

	return there && (table.nr * table.each > most || table.strings_size > most);
}

/* --- .gnu_debugdata --------------------------------------------------------------------------- */

bool image_mini(const struct image *image, struct image *mini, size_t most)
{
	size_t in = 0, out = 0, room = 1 << 20;
	uint64_t memory = most;
	lzma_ret result;
	GElf_Shdr header;
	char *packed, *bytes;

	if (!image_section(image, ".gnu_debugdata", &header))
		return false;
	packed = image_read_section(image, &header, most);
	if (!packed)
		return false;
	for (;;) {
		bytes = xmalloc(room);
		in = out = 0;
		result = lzma_stream_buffer_decode(&memory, 0, NULL, (uint8_t *)packed, &in, header.sh_size,
						   (uint8_t *)bytes, &out, room);
		if (result != LZMA_BUF_ERROR || room >= most)
			break;
		free(bytes);
		room *= 4;
	}
	free(packed);
	if (result == LZMA_OK)
		return !image_from_memory(mini, bytes, out);
	free(bytes);
	return false;
}
