// SPDX-License-Identifier: GPL-2.0-only
#include "branch/program.h"

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "naming/foreign.h"
#include "record/record.h"

#define SEGMENTS_MOST 64 /* linkers write about a dozen, one of them with code */

static void put_segments(json_t *list, FILE *file)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (fread(&header, sizeof(header), 1, file) != 1 || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64)
		return;
	for (int i = 0; i < header.e_phnum && i < SEGMENTS_MOST; i++) {
		json_t *value;

		if (fseek(file, header.e_phoff + i * sizeof(segment), SEEK_SET) ||
		    fread(&segment, sizeof(segment), 1, file) != 1)
			return;
		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X))
			continue;
		value = json_object();
		json_object_set_new(value, "offset", value_hex(segment.p_offset));
		json_object_set_new(value, "size", json_integer(segment.p_filesz));
		json_object_set_new(value, "address", value_hex(segment.p_vaddr));
		json_array_append_new(list, value);
	}
}

json_t *program_value(const struct mapped_file *program)
{
	json_t *value = json_object(), *segments = json_array();
	char text[PATH_MAX];
	const char *path = mapped_file_path(program, text, sizeof(text));
	int fd = path ? foreign_open(path, FOREIGN_PATIENT_MS, NULL) : -1;
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (file) {
		put_segments(segments, file);
		fclose(file);
	}
	json_object_set_new(value, "path", value_text(program->path, strlen(program->path)));
	json_object_set_new(value, "code", segments);
	return value;
}
