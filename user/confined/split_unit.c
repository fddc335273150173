// SPDX-License-Identifier: GPL-2.0-only
#include "confined/split_unit.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "confined/dwarf_image.h"

/* Bytes in another image. */
struct slice {
	const char *bytes;
	size_t size;
};

/* The part of a slice from `at` on; at most `size` bytes of it. */
static struct slice part_of(struct slice slice, __u64 at, __u64 size)
{
	if (!slice.bytes || at > slice.size)
		return (struct slice){0};
	return (struct slice){slice.bytes + at, size < slice.size - at ? size : slice.size - at};
}

#define TO_THE_END (~0ULL)

static __u32 word_at(struct slice slice, __u64 at)
{
	struct slice part = part_of(slice, at, sizeof(__u32));
	__u32 word = 0;

	if (part.size == sizeof(word))
		memcpy(&word, part.bytes, sizeof(word));
	return word;
}

static __u64 long_at(struct slice slice, __u64 at)
{
	return word_at(slice, at) | (__u64)word_at(slice, at + 4) << 32;
}

static struct slice bytes_of(Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data;

	if (!section || header->sh_type == SHT_NOBITS)
		return (struct slice){0};
	if (header->sh_flags & SHF_COMPRESSED)
		elf_compress(section, 0, 0);
	data = elf_getdata(section, NULL);
	return data && data->d_buf ? (struct slice){data->d_buf, data->d_size} : (struct slice){0};
}

static struct slice section_of(const struct image *image, const char *name)
{
	GElf_Shdr header;
	Elf_Scn *section = image_section(image, name, &header);

	return bytes_of(section, &header);
}

/* All sections of this name, one behind the other. The caller frees the bytes. */
static struct slice sections_of(const struct image *image, const char *name)
{
	char *all = NULL;
	size_t size = 0;
	GElf_Shdr header;

	for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));) {
		struct slice own;

		if (!gelf_getshdr(section, &header) || strcmp(image_section_name(image, &header), name))
			continue;
		own = bytes_of(section, &header);
		if (!own.size)
			continue;
		all = xrealloc(all, size + own.size);
		memcpy(all + size, own.bytes, own.size);
		size += own.size;
	}
	return (struct slice){all, size};
}

/* --- what a unit is made of ------------------------------------------------------------------- */

/* The sections that a file of units has, with their numbers in a .dwp file's index: DWARF 5, 7.3.5.3. The
 * format before DWARF 5 has the same numbers for those that both have. */
static const struct {
	const char *name;
	__u32 number; /* 0: shared by all units */
} parts[] = {
	{".debug_info.dwo", 1},	       {".debug_types.dwo", 2},	   {".debug_abbrev.dwo", 3},
	{".debug_line.dwo", 4},	       {".debug_loclists.dwo", 5}, {".debug_loc.dwo", 5},
	{".debug_str_offsets.dwo", 6}, {".debug_rnglists.dwo", 8}, {".debug_str.dwo", 0},
};

/* Those that the program has for the unit. */
enum { ADDRESSES = ARRAY_SIZE(parts), RANGES, NR_PARTS };

#define INFO  0
#define TYPES 1

static const char *part_name(size_t i)
{
	return i == ADDRESSES ? ".debug_addr.dwo" : i == RANGES ? ".debug_ranges.dwo" : parts[i].name;
}

static bool number_of(Dwarf_Die *die, unsigned int name, unsigned int gnu_name, __u64 *number)
{
	Dwarf_Attribute attribute;
	Dwarf_Word word;

	if ((!dwarf_attr(die, name, &attribute) && !dwarf_attr(die, gnu_name, &attribute)) ||
	    dwarf_formudata(&attribute, &word))
		return false;
	*number = word;
	return true;
}

__u64 split_addresses(Dwarf_Die *skeleton)
{
	__u64 addresses = 0;

	number_of(skeleton, DW_AT_addr_base, DW_AT_GNU_addr_base, &addresses);
	return addresses;
}

/* The program's addresses and, before DWARF 5, ranges: what the unit's numbers count from is where its part
 * begins. */
static void add_own_parts(struct slice list[NR_PARTS], const struct image *of, Dwarf_Die *skeleton)
{
	__u64 addresses = split_addresses(skeleton), ranges = 0, size = TO_THE_END;

	list[ADDRESSES] = section_of(of, ".debug_addr");
	/* DWARF 5 has a header with the part's size, which counts what follows the size itself. */
	if (addresses >= 8 && dwarf_hasattr(skeleton, DW_AT_addr_base))
		size = word_at(list[ADDRESSES], addresses - 8) - 4ULL;
	list[ADDRESSES] = part_of(list[ADDRESSES], addresses, size);
	if (number_of(skeleton, DW_AT_GNU_ranges_base, DW_AT_GNU_ranges_base, &ranges))
		list[RANGES] = part_of(section_of(of, ".debug_ranges"), ranges, TO_THE_END);
}

/* The parts in a .dwo file. */
static void add_file(struct slice list[NR_PARTS], const struct image *file)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		list[i] = section_of(file, parts[i].name);
}

/* --- .dwp files ------------------------------------------------------------------------------- */

/* The row of a unit in an index, counted from 1; 0 if it has none. */
static __u32 row_of(struct slice index, __u64 id, __u32 nr_slots)
{
	__u32 mask = nr_slots - 1, slot = id & mask, by = (id >> 32 & mask) | 1;

	if (!nr_slots || nr_slots & mask)
		return 0;
	for (__u32 tries = 0; tries < nr_slots; tries++, slot = (slot + by) & mask) {
		__u32 row = word_at(index, 16 + 8ULL * nr_slots + 4ULL * slot);

		if (!row || long_at(index, 16 + 8ULL * slot) == id)
			return row;
	}
	return 0;
}

/* The parts of a unit in a .dwp file. Returns whether it has the unit. */
static bool add_from_package(struct slice list[NR_PARTS], const struct image *package, __u64 id)
{
	struct slice index = section_of(package, ".debug_cu_index");
	__u32 nr_columns = word_at(index, 4), nr_units = word_at(index, 8), nr_slots = word_at(index, 12);
	__u32 row = row_of(index, id, nr_slots);
	__u64 numbers = 16 + 12ULL * nr_slots, places = numbers + 4ULL * nr_columns;
	__u64 sizes = places + 4ULL * nr_units * nr_columns;

	if (!row || row > nr_units || nr_columns > 8)
		return false;
	add_file(list, package);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		struct slice own = parts[i].number ? (struct slice){0} : list[i];

		for (__u32 column = 0; column < nr_columns; column++) {
			__u64 cell = 4 * ((row - 1ULL) * nr_columns + column);

			if (parts[i].number && word_at(index, numbers + 4ULL * column) == parts[i].number)
				own = part_of(list[i], word_at(index, places + cell),
					      word_at(index, sizes + cell));
		}
		list[i] = own;
	}
	return true;
}

/* --- an image of them ------------------------------------------------------------------------- */

static size_t aligned(size_t at)
{
	return (at + 7) & ~7UL;
}

/* An ELF file with these sections. The caller frees it. */
static char *make_image(const struct slice list[NR_PARTS], size_t *size)
{
	static const char names_name[] = ".shstrtab";
	Elf64_Shdr headers[NR_PARTS + 2] = {{0}};
	size_t at = sizeof(Elf64_Ehdr), nr = 1;
	char names[256] = "", *bytes;
	size_t used = 1;
	Elf64_Ehdr *file;

	for (size_t i = 0; i <= NR_PARTS; i++) {
		const char *name = i < NR_PARTS ? part_name(i) : names_name;
		size_t length = i < NR_PARTS ? list[i].size : sizeof(names);

		if (!length)
			continue;
		headers[nr++] = (Elf64_Shdr){.sh_name = used,
					     .sh_type = i < NR_PARTS ? SHT_PROGBITS : SHT_STRTAB,
					     .sh_offset = at,
					     .sh_size = length,
					     .sh_addralign = 1};
		strcpy(names + used, name);
		used += strlen(name) + 1;
		at = aligned(at + length);
	}
	*size = at + nr * sizeof(*headers);
	bytes = xcalloc(1, *size);
	file = (Elf64_Ehdr *)bytes;
	memcpy(file->e_ident, ELFMAG, SELFMAG);
	file->e_ident[EI_CLASS] = ELFCLASS64;
	file->e_ident[EI_DATA] = ELFDATA2LSB;
	file->e_ident[EI_VERSION] = file->e_version = EV_CURRENT;
	file->e_type = ET_REL;
	file->e_machine = EM_X86_64;
	file->e_ehsize = sizeof(*file);
	file->e_shoff = at;
	file->e_shentsize = sizeof(*headers);
	file->e_shnum = nr;
	file->e_shstrndx = nr - 1;
	memcpy(bytes + at, headers, nr * sizeof(*headers));
	memcpy(bytes + headers[nr - 1].sh_offset, names, sizeof(names));
	nr = 1;
	for (size_t i = 0; i < NR_PARTS; i++)
		if (list[i].size)
			memcpy(bytes + headers[nr++].sh_offset, list[i].bytes, list[i].size);
	return bytes;
}

static __u64 id_of(Dwarf_Die *die)
{
	uint64_t id = 0;

	return dwarf_cu_info(die->cu, NULL, NULL, NULL, NULL, &id, NULL, NULL) ? 0 : id;
}

/* Finds the unit with the id. libdw is not to be asked for the type's other half: it would open a file. */
static bool find_unit(struct split_unit *unit, __u64 id)
{
	Dwarf_CU *cu = NULL;
	uint8_t type;

	while (!dwarf_get_units(unit->dwarf, cu, &cu, NULL, &type, &unit->die, NULL))
		if (type == DW_UT_split_compile && id_of(&unit->die) == id)
			return true;
	return false;
}

/* A line table in which libdw may use this many times its size. */
#define LINES_TIMES 100

static bool open_parts(struct split_unit *unit, struct slice list[NR_PARTS], const struct image *of,
		       Dwarf_Die *skeleton, struct split_place *where, size_t most)
{
	size_t size = 0;
	char *bytes;

	add_own_parts(list, of, skeleton);
	for (size_t i = 0; i < NR_PARTS; i++)
		size += !strcmp(part_name(i), ".debug_line.dwo") ? LINES_TIMES * list[i].size : list[i].size;
	if (list[INFO].size && size > most)
		where->lack = LINES_SPLIT_LARGE;
	if (!list[INFO].size || size > most)
		return false;
	*unit = (struct split_unit){0};
	bytes = make_image(list, &unit->bytes);
	if (image_from_memory(&unit->image, bytes, unit->bytes))
		return false;
	unit->dwarf = dwarf_open(&unit->image);
	if (unit->dwarf && find_unit(unit, id_of(skeleton)))
		return true;
	split_unit_close(unit);
	return false;
}

/* --- where they are --------------------------------------------------------------------------- */

static bool open_file(struct image *file, struct split_place *where, const char *path)
{
	int fd = where->open(!where->place.root[0], path);

	return fd >= 0 && !image_from_file(file, fd);
}

/* Whether the file can be read. If not, it is noted why. */
static bool is_readable(struct image *file, struct split_place *where, size_t most)
{
	enum lines_lack lack = !dwarf_fits(file, most)	? LINES_SPLIT_LARGE
			       : dwarf_unreadable(file) ? LINES_SPLIT_COMPRESSED
							: LINES_LACK_NOTHING;

	where->lack = lack ?: where->lack;
	return !lack;
}

static bool open_from_package(struct split_unit *unit, const struct image *of, Dwarf_Die *skeleton,
			      struct split_place *where, size_t most)
{
	struct slice list[NR_PARTS] = {{0}};
	char path[PATH_MAX + 8];

	if (!where->looked) {
		snprintf(path, sizeof(path), "%s.dwp", where->place.path);
		where->has_package = open_file(&where->package, where, path);
	}
	where->looked = true;
	return where->has_package && is_readable(&where->package, where, most) &&
	       add_from_package(list, &where->package, id_of(skeleton)) &&
	       open_parts(unit, list, of, skeleton, where, most);
}

static bool open_from_file(struct split_unit *unit, const struct image *of, Dwarf_Die *skeleton,
			   struct split_place *where, const char *path, size_t most)
{
	struct slice list[NR_PARTS] = {{0}}, info, types;
	struct image file;
	bool opened;

	if (!open_file(&file, where, path))
		return false;
	opened = is_readable(&file, where, most);
	if (opened) {
		add_file(list, &file);
		/* Each unit of a type is in a section of its own, as linkers take one of them (.dwo files are
		 * never linked). */
		list[INFO] = info = sections_of(&file, parts[INFO].name);
		list[TYPES] = types = sections_of(&file, parts[TYPES].name);
		opened = open_parts(unit, list, of, skeleton, where, most);
		free((char *)info.bytes);
		free((char *)types.bytes);
	}
	image_close(&file);
	return opened;
}

bool split_unit_open(struct split_unit *unit, const struct image *of, Dwarf_Die *skeleton,
		     const struct split_name *called, struct split_place *where, size_t most)
{
	const char *name = called->file, *folder = called->folder ?: "", *base;
	const char *slash = strrchr(where->place.path, '/');
	char path[2 * PATH_MAX];

	where->lack = LINES_SPLIT;
	if (!name || !id_of(skeleton))
		return false;
	if (open_from_package(unit, of, skeleton, where, most))
		return true;
	/* Where the compiler wrote it; otherwise beside the program, to which it was copied. */
	snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : folder, name[0] == '/' ? "" : "/", name);
	if (open_from_file(unit, of, skeleton, where, path, most))
		return true;
	base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash + 1 - where->place.path) : 0,
		 where->place.path, base);
	return open_from_file(unit, of, skeleton, where, path, most);
}

void split_unit_close(struct split_unit *unit)
{
	dwarf_end(unit->dwarf);
	image_close(&unit->image);
}

void split_place_release(struct split_place *where)
{
	if (where->has_package)
		image_close(&where->package);
}
