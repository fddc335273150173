// SPDX-License-Identifier: GPL-2.0-only
#include "confined/read_file.h"

#include <stdlib.h>

#include "base/memory.h"
#include "confined/dwarf_image.h"
#include "confined/eh_frame.h"
#include "confined/go_image.h"
#include "confined/linkage.h"
#include "confined/unwind_image.h"
#include "naming/order.h"

/* --- functions without names -------------------------------------------------------------------- */

/* The section .eh_frame, and the functions that are found in it. */
struct function_reader {
	const struct image *image;
	GElf_Shdr header;
	struct range {
		__u64 begin, end; /* the first is the sort key */
	} * list;
	size_t nr, room, most;
	bool left_out; /* some functions had no room */
};

static bool read_part(const void *of, void *to, size_t size, __u64 offset)
{
	const struct function_reader *reader = of;

	return image_read(reader->image, to, size, reader->header.sh_offset + offset);
}

/* A function that the linker has left out begins at 0. */
static void add_function(void *of, __u64 begin, __u64 end)
{
	struct function_reader *reader = of;

	if (!begin || end <= begin)
		return;
	if (reader->nr >= reader->most) {
		reader->left_out = true;
		return;
	}
	reader->list = xroom(reader->list, reader->nr, &reader->room, sizeof(*reader->list));
	reader->list[reader->nr++] = (struct range){begin, end};
}

/* Where two overlap, one ends where the next begins. */
static void take_functions(struct nameless *functions, const struct range *list, size_t nr)
{
	functions->list = xmalloc((nr + 1) * sizeof(*functions->list));
	for (size_t i = 0; i < nr; i++) {
		__u64 begin = list[i].begin, end = list[i].end;

		if (i + 1 < nr && list[i + 1].begin < end)
			end = list[i + 1].begin;
		if (end > begin)
			functions->list[functions->nr++] =
				(struct nameless_function){begin, end - begin < ~0U ? end - begin : ~0U};
	}
}

/* The ranges of the functions take half of what a section of so many times `most` bytes has. A file with
 * holes may claim gigabytes, which would take too long. */
#define FRAMES_OF_MOST 4

/* Finds the functions of a stripped file, by .eh_frame, which strip leaves because exceptions need it. */
static void load_functions(struct read_file *file, const struct image *image, size_t most)
{
	struct function_reader reader = {.image = image, .most = most / sizeof(*reader.list)};
	struct frame_source source = {.narrow = gelf_getclass(image->elf) == ELFCLASS32, .read = read_part};

	if (!image_section(image, ".eh_frame", &reader.header) || reader.header.sh_type == SHT_NOBITS ||
	    reader.header.sh_flags & SHF_COMPRESSED)
		return;
	if (reader.header.sh_size / FRAMES_OF_MOST > most) {
		file->left_out = true;
		return;
	}
	source.of = &reader;
	source.size = reader.header.sh_size;
	source.address = reader.header.sh_addr;
	file->left_out |= !eh_frame_functions(&source, most, add_function, &reader) || reader.left_out;
	order_by_address(reader.list, reader.nr, sizeof(*reader.list));
	take_functions(&file->functions, reader.list, reader.nr);
	free(reader.list);
}

/* --- symbols ------------------------------------------------------------------------------------ */

/* A table that names are searched in: of an image or its debug file. */
struct chosen_table {
	const struct image *image;
	__u32 kind;
};

static bool has_table(const struct image *image, __u32 kind)
{
	struct symbol_table table;

	return image && image_symbol_table(image, kind, true, &table);
}

static struct chosen_table choose_table(const struct image *image, const struct image *debug)
{
	if (has_table(image, SHT_SYMTAB))
		return (struct chosen_table){image, SHT_SYMTAB};
	if (has_table(debug, SHT_SYMTAB))
		return (struct chosen_table){debug, SHT_SYMTAB};
	return (struct chosen_table){image, SHT_DYNSYM};
}

/* Sizes in bytes: the largest part of a file that is read as a whole, and the largest symbol table that is
 * kept as a whole. */
struct read_sizes {
	size_t most, index_from;
};

/* Makes an index of a table that is too large to be kept as a whole. Returns whether there is one. */
static bool load_index(struct read_file *file, struct symbol_index **index, const struct chosen_table *table,
		       bool data, const struct read_sizes *sizes)
{
	if (!image_symbols_exceed(table->image, table->kind, sizes->index_from))
		return false;
	*index = symbol_index_open(table->image, table->kind, data, sizes->most);
	file->left_out |= !*index;
	return *index;
}

struct ending {
	const struct image *image;
	const struct nameless *functions;
};

/* A symbol without a size ends where a function begins, too, that has no name. */
static __u64 end_of_symbol(const void *of, const struct found_symbol *symbol)
{
	const struct ending *ending = of;
	const struct nameless *functions = ending->functions;
	size_t next = nameless_begun(functions, symbol->address);
	__u64 end = image_end_of_code(ending->image, symbol);

	return next < functions->nr && functions->list[next].begin < end ? functions->list[next].begin : end;
}

static void load_symbols(struct read_file *file, const struct image *image, const struct image *debug,
			 const struct read_sizes *sizes)
{
	size_t most = sizes->most;
	const struct chosen_table table = choose_table(image, debug);
	struct symbols *symbols = &file->symbols;
	struct dynamic_strings dynamic = {0};
	struct image mini;
	bool indexed = load_index(file, &file->function_index, &table, false, sizes);
	bool whole = (indexed && table.kind == SHT_SYMTAB) ||
		     image_add_symbols(image, SHT_SYMTAB, symbols, most) ||
		     (debug && image_add_symbols(debug, SHT_SYMTAB, symbols, most));

	if (!whole) {
		dynamic.base = symbols->strings_size;
		dynamic.there = !indexed && image_add_symbols(image, SHT_DYNSYM, symbols, most);
		if (image_mini(image, &mini, most)) {
			image_add_symbols(&mini, SHT_SYMTAB, symbols, most);
			image_close(&mini);
		}
		go_image_add_symbols(image, symbols, most);
	}
	linkage_add_symbols(image, symbols, &dynamic, most);
	if (!whole)
		load_functions(file, image, most);
	symbols_finish(symbols, end_of_symbol, &(struct ending){image, &file->functions});
}

static void load_objects(struct read_file *file, const struct image *image, const struct image *debug,
			 const struct read_sizes *sizes)
{
	size_t most = sizes->most;
	const struct chosen_table table = choose_table(image, debug);

	if (!load_index(file, &file->object_index, &table, true, sizes) &&
	    !image_add_objects(image, SHT_SYMTAB, &file->objects, most) &&
	    !(debug && image_add_objects(debug, SHT_SYMTAB, &file->objects, most)))
		image_add_objects(image, SHT_DYNSYM, &file->objects, most);
	symbols_finish(&file->objects, NULL, NULL);
}

static enum lines_lack lack_of(struct image *image, struct image *alternate, bool has_alternate, size_t most)
{
	if (!dwarf_fits(image, most / 2))
		return LINES_LARGE;
	if (dwarf_unreadable(image))
		return LINES_COMPRESSED;
	if (!has_alternate)
		return LINES_LACK_NOTHING;
	if (!alternate)
		return LINES_SHARED_ABSENT;
	if (!dwarf_fits(alternate, most / 2 - dwarf_bytes(image)))
		return LINES_SHARED_LARGE;
	return dwarf_unreadable(alternate) ? LINES_SHARED_COMPRESSED : LINES_LACK_NOTHING;
}

/* Takes ownership of the image with the DWARF, and clears it, so that closing it again does nothing. */
static struct lines *load_lines(struct image *image, const struct debug_folders *debug, size_t most,
				enum lines_lack *lack)
{
	char build_id[2 * BUILD_ID_MAX + 1];
	const char *name = dwarf_alternate(image, build_id);
	struct image alternate;
	bool shares =
		name && alternate_open(&alternate, name, build_id, debug->place, &debug->dirs, debug->open);
	struct lines *lines;
	bool no_room = false;

	*lack = lack_of(image, shares ? &alternate : NULL, name, most);
	if (*lack == LINES_SHARED_LARGE) {
		image_close(&alternate);
		shares = false;
	}
	lines = lines_open(image, shares ? &alternate : NULL, debug, most, &no_room);
	if (no_room && !*lack)
		*lack = LINES_LARGE;
	*image = (struct image){.fd = -1};
	if (lines && !*lack && lines_split(lines))
		*lack = LINES_SPLIT;
	return lines;
}

/* Lines get three quarters of what the symbols leave. If a source exceeded the limit alone, it would be
 * dropped and read again at each call. */
static size_t left_for_lines(const struct read_file *file, size_t memory)
{
	size_t taken = symbols_bytes(&file->symbols) + file->functions.nr * sizeof(*file->functions.list) +
		       symbol_index_bytes(file->function_index) + symbol_index_bytes(file->object_index);

	return taken < memory ? (memory - taken) / 4 * 3 : 0;
}

/* Reads the code, up to `most` bytes of it. */
static void load_code(struct code_bytes *code, const struct image *image, size_t most)
{
	size_t nr;
	struct segment *segments = image_segments(image, &nr);

	for (size_t i = 0; i < nr && gelf_getclass(image->elf) == ELFCLASS64; i++) {
		struct code_part part = {segments[i].address, segments[i].size, NULL};

		if (part.size > most - code->size || part.size > image->size)
			continue;
		part.bytes = xmalloc(part.size + 1);
		if (!image_read(image, part.bytes, part.size, segments[i].offset)) {
			free(part.bytes);
			continue;
		}
		code->size += part.size;
		*xappend(code->list, code->nr) = part;
	}
	free(segments);
}

/* Threads' copies of the program's own variables end where the thread pointer points: x86-64's variant II of
 * "ELF Handling For Thread-Local Storage". */
static __u64 thread_size_of(const struct image *image)
{
	GElf_Phdr header;
	size_t nr;

	if (elf_getphdrnum(image->elf, &nr))
		return 0;
	for (size_t i = 0; i < nr && gelf_getphdr(image->elf, i, &header); i++)
		if (header.p_type == PT_TLS && header.p_align && header.p_memsz <= 1 << 30 &&
		    header.p_align <= 1 << 30)
			return (header.p_memsz + header.p_align - 1) / header.p_align * header.p_align;
	return 0;
}

static void load_frames(struct code_bytes *code, const struct image *image, size_t most)
{
	size_t size;

	if (unwind_table_of_image(&code->frames, image))
		return;
	size = code->frames.nr_pages * sizeof(*code->frames.pages) +
	       code->frames.nr_rows * sizeof(*code->frames.rows) +
	       code->frames.nr_rules * sizeof(*code->frames.rules);
	if (size > most)
		unwind_table_release(&code->frames);
	else
		code->size += size;
}

void code_bytes_release(struct code_bytes *code)
{
	unwind_table_release(&code->frames);
	thread_slots_release(&code->slots);
	for (size_t i = 0; i < code->nr; i++)
		free(code->list[i].bytes);
	free(code->list);
	*code = (struct code_bytes){0};
}

static void load_accesses(struct code_bytes *code, const struct image *image, size_t most)
{
	load_code(code, image, most);
	load_frames(code, image, most - code->size);
	code->thread_size = thread_size_of(image);
	if (code->thread_size)
		thread_slots_read(&code->slots, image, most - code->size);
	code->size += code->slots.nr * sizeof(*code->slots.list);
}

void read_file(struct read_file *file, struct image *image, const struct read_what *what, size_t most,
	       const struct debug_folders *folders)
{
	const struct read_sizes sizes = {most / 4, what->few ? most / 16 : most / 4};
	size_t lines_most = what->lines_most < most ? what->lines_most : most;
	struct image debug = {.fd = -1};
	bool lines = what->lines, own_lines = dwarf_in(image), other;
	GElf_Shdr header;

	*file = (struct read_file){0};
	other = (!image_section(image, ".symtab", &header) || (lines && !own_lines)) &&
		debug_file_open(&debug, image, folders->place, &folders->dirs, folders->open);
	file->segments = image_segments(image, &file->nr_segments);
	load_symbols(file, image, other ? &debug : NULL, &sizes);
	if (what->data) {
		file->loaded = image_loaded(image, &file->nr_loaded);
		load_objects(file, image, other ? &debug : NULL, &sizes);
	}
	if (what->types && (own_lines || (other && dwarf_in(&debug))))
		load_accesses(&file->code, image, most / 4);
	if (lines && own_lines)
		file->lines = load_lines(image, folders, left_for_lines(file, lines_most), &file->lines_lack);
	else if (lines && other && dwarf_in(&debug))
		file->lines =
			load_lines(&debug, folders, left_for_lines(file, lines_most), &file->lines_lack);
	/* Debug information has what is inlined, too. */
	if (lines && !own_lines && !file->lines)
		file->go_lines = go_lines_open(image, left_for_lines(file, lines_most));
	if (file->go_lines)
		file->lines_lack = LINES_GO;
	image_close(image);
	image_close(&debug);
}

void read_file_release(struct read_file *file)
{
	symbols_release(&file->symbols);
	symbols_release(&file->objects);
	free(file->functions.list);
	free(file->segments);
	free(file->loaded);
	lines_close(file->lines);
	code_bytes_release(&file->code);
	go_lines_close(file->go_lines);
	symbol_index_close(file->function_index);
	symbol_index_close(file->object_index);
	*file = (struct read_file){0};
}
