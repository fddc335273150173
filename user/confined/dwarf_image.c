// SPDX-License-Identifier: GPL-2.0-only
#include "confined/dwarf_image.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/memory.h"

static bool is_debug(const char *name)
{
	return !strncmp(name, ".debug_", 7) || !strncmp(name, ".zdebug_", 8);
}

static bool is_old_packed(const char *name)
{
	return !strncmp(name, ".zdebug_", 8);
}

/* Uncompressed size of a section in GNU's older form of compression: "ZLIB", the size as a big-endian number,
 * the data. */
static __u64 size_of_old_packed(Elf_Scn *section, const char *name)
{
	Elf_Data *data = is_old_packed(name) ? elf_rawdata(section, NULL) : NULL;
	__u64 size;

	if (!data || !data->d_buf || data->d_size < 4 + sizeof(size) || memcmp(data->d_buf, "ZLIB", 4))
		return 0;
	memcpy(&size, (char *)data->d_buf + 4, sizeof(size));
	return be64toh(size);
}

static __u64 sections_size(const struct image *image, bool whole)
{
	__u64 size = 0;
	GElf_Shdr header;
	GElf_Chdr packed;

	for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));) {
		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS ||
		    !is_debug(image_section_name(image, &header)))
			continue;
		size += whole ? header.sh_size : 0;
		if (header.sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &packed))
			size += packed.ch_size;
		size += size_of_old_packed(section, image_section_name(image, &header));
		if (size > 1ULL << 40)
			return size;
	}
	return size;
}

__u64 dwarf_size(const struct image *image)
{
	return sections_size(image, true);
}

__u64 dwarf_bytes(const struct image *image)
{
	return sections_size(image, !image->mapped);
}

bool dwarf_fits(struct image *image, __u64 most)
{
	return dwarf_bytes(image) <= most || (image_map(image) && dwarf_bytes(image) <= most);
}

bool dwarf_in(const struct image *image)
{
	GElf_Shdr header;

	return (image_section(image, ".debug_info", &header) && header.sh_type != SHT_NOBITS) ||
	       image_section(image, ".zdebug_info", &header);
}

/* ELFCOMPRESS_ZSTD, which elf.h has since glibc 2.37: the gABI's number. */
#define COMPRESSED_BY_ZSTD 2

bool dwarf_unreadable(const struct image *image)
{
	GElf_Shdr header;
	GElf_Chdr packed;

	for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));)
		if (gelf_getshdr(section, &header) && header.sh_type != SHT_NOBITS &&
		    header.sh_flags & SHF_COMPRESSED && is_debug(image_section_name(image, &header)) &&
		    gelf_getchdr(section, &packed) && packed.ch_type == COMPRESSED_BY_ZSTD &&
		    elf_compress(section, 0, 0) < 0)
			return true;
	return false;
}

const char *dwarf_alternate(const struct image *image, char build_id[2 * BUILD_ID_MAX + 1])
{
	Elf_Data *data = NULL;
	Elf_Scn *section;
	GElf_Shdr header;
	size_t length;

	section = image_section(image, ".gnu_debugaltlink", &header);
	if (section && header.sh_size <= 1 << 16 && header.sh_type != SHT_NOBITS)
		data = elf_rawdata(section, NULL);
	length = data && data->d_buf ? strnlen(data->d_buf, data->d_size) : 0;
	if (!data || length == data->d_size || !length || data->d_size - length - 1 > BUILD_ID_MAX)
		return NULL;
	hex_text(build_id, (const char *)data->d_buf + length + 1, data->d_size - length - 1);
	return data->d_buf;
}

/* libdw 0.188 reads beyond the end of .debug_line_str if its last string has no zero byte; so one is written
 * at the end of each string section. Returns false where that can't be done, in a mapping. */
static bool end_texts(struct image *image)
{
	GElf_Shdr header;

	for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));) {
		const char *name = gelf_getshdr(section, &header) ? image_section_name(image, &header) : "";
		Elf_Data *data;

		if (!is_debug(name) || header.sh_type == SHT_NOBITS || !strstr(name, "str") ||
		    strstr(name, "str_offsets"))
			continue;
		if (header.sh_flags & SHF_COMPRESSED)
			elf_compress(section, 0, 0);
		else if (is_old_packed(name))
			elf_compress_gnu(section, 0, 0);
		data = elf_getdata(section, NULL);
		if (!data || !data->d_buf || !data->d_size || !((char *)data->d_buf)[data->d_size - 1])
			continue;
		if (image->mapped && !(header.sh_flags & SHF_COMPRESSED) && !is_old_packed(name))
			return false;
		((char *)data->d_buf)[data->d_size - 1] = '\0';
	}
	return true;
}

/* Called by libdw if memory runs out. By default it would print a message and call exit(1). */
static void __attribute__((noreturn)) no_memory(void)
{
	memory_is_out();
}

Dwarf *dwarf_open(struct image *image)
{
	Dwarf *dwarf;

	if (!end_texts(image))
		return NULL;
	dwarf = dwarf_begin_elf(image->elf, DWARF_C_READ, NULL);
	if (dwarf)
		dwarf_new_oom_handler(dwarf, no_memory);
	if (dwarf && image->fd >= 0) {
		elf_cntl(image->elf, ELF_C_FDDONE);
		close(image->fd);
		image->fd = -1;
	}
	return dwarf;
}
