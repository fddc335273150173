// SPDX-License-Identifier: GPL-2.0-only
#include "selftest/landmarks.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

struct landmarks {
	int fd;
	Elf *elf;
	Elf_Data *data;
	size_t strings; /* index of the section with the symbols' names */
};

struct landmarks *landmarks_read(const char *path)
{
	struct landmarks *landmarks = xcalloc(1, sizeof(*landmarks));
	GElf_Shdr header;

	elf_version(EV_CURRENT);
	landmarks->fd = open(path, O_RDONLY | O_CLOEXEC);
	landmarks->elf = elf_begin(landmarks->fd, ELF_C_READ, NULL);
	for (Elf_Scn *section = NULL; (section = elf_nextscn(landmarks->elf, section));)
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB) {
			landmarks->data = elf_getdata(section, NULL);
			landmarks->strings = header.sh_link;
		}
	if (landmarks->data)
		return landmarks;
	landmarks_release(landmarks);
	return NULL;
}

void landmarks_release(struct landmarks *landmarks)
{
	if (!landmarks)
		return;
	elf_end(landmarks->elf);
	if (landmarks->fd >= 0)
		close(landmarks->fd);
	free(landmarks);
}

__u64 landmark_address(const struct landmarks *landmarks, const char *name)
{
	GElf_Sym symbol;

	for (int i = 0; landmarks && gelf_getsym(landmarks->data, i, &symbol); i++)
		if (!strcmp(elf_strptr(landmarks->elf, landmarks->strings, symbol.st_name), name))
			return symbol.st_value;
	return 0;
}

__u64 landmark_offset(const struct landmarks *landmarks, const char *name)
{
	__u64 address = landmark_address(landmarks, name);
	GElf_Phdr segment;

	for (int i = 0; landmarks && gelf_getphdr(landmarks->elf, i, &segment); i++)
		if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
		    address < segment.p_vaddr + segment.p_filesz)
			return address - segment.p_vaddr + segment.p_offset;
	return 0;
}
