// SPDX-License-Identifier: GPL-2.0-only
#include "unwind/needed.h"

#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/path.h"
#include "naming/foreign.h"

/* The most files that are read: a command has some tens of libraries. */
#define FILES_MOST 256
/* The most words of a command that are examined: the arguments of programs that execute others begin with the
 * other program. */
#define ARGUMENTS_MOST 16

struct search {
	void (*each)(void *context, const struct stat *stat, int fd);
	void *context;
	char *seen[FILES_MOST]; /* paths of files that were read already */
	size_t nr_seen;
	char *cache; /* the dynamic linker's cache; NULL: there is none */
	size_t cache_size;
};

/* --- the dynamic linker's cache --------------------------------------------------------------- */

#define CACHE	   "/etc/ld.so.cache"
#define CACHE_MOST (16UL << 20)

/* glibc's sysdeps/generic/dl-cache.h, struct cache_file_new and struct file_entry_new. */
#define CACHE_MAGIC "glibc-ld.so.cache1.1"

struct cache_head {
	char magic[20];
	__u32 nr;
	__u32 unused[6];
};

struct cache_entry {
	__s32 flags;
	__u32 key, value; /* offsets of texts in the file */
	__u32 os_version;
	__u64 hardware;
};

#define CACHE_X86_64 0x303 /* libc6, 64-bit */

static void read_cache(struct search *search)
{
	int fd = open(CACHE, O_RDONLY | O_CLOEXEC);
	struct stat stat;

	if (fd < 0)
		return;
	if (!fstat(fd, &stat) && stat.st_size > 0 && (size_t)stat.st_size < CACHE_MOST) {
		search->cache = xmalloc(stat.st_size + 1);
		search->cache_size = stat.st_size;
		search->cache[stat.st_size] = '\0';
		if (read(fd, search->cache, stat.st_size) != stat.st_size ||
		    search->cache_size < sizeof(struct cache_head) ||
		    memcmp(search->cache, CACHE_MAGIC, sizeof(CACHE_MAGIC) - 1)) {
			free(search->cache);
			search->cache = NULL;
		}
	}
	close(fd);
}

static const char *find_in_cache(const struct search *search, const char *name)
{
	struct cache_head head;
	struct cache_entry entry;

	if (!search->cache)
		return NULL;
	memcpy(&head, search->cache, sizeof(head));
	for (size_t i = 0; i < head.nr; i++) {
		size_t at = sizeof(head) + i * sizeof(entry);

		if (at + sizeof(entry) > search->cache_size)
			return NULL;
		memcpy(&entry, search->cache + at, sizeof(entry));
		if (entry.flags == CACHE_X86_64 && !entry.hardware && entry.key < search->cache_size &&
		    entry.value < search->cache_size && !strcmp(search->cache + entry.key, name))
			return search->cache + entry.value;
	}
	return NULL;
}

/* --- files ------------------------------------------------------------------------------------ */

static void look_at_file(struct search *search, const char *path);
static bool is_there(const char *path);

/* Looks for a library in a folder of a run path. $ORIGIN stands for the folder of the file that has the run
 * path. Returns whether the library was found. */
static bool look_in_folder(struct search *search, const char *folder, size_t length, const char *origin,
			   const char *name)
{
	static const char *const words[] = {"$ORIGIN", "${ORIGIN}"};
	char path[PATH_MAX];

	for (size_t i = 0; i < 2; i++) {
		size_t word = strlen(words[i]);
		int origin_length = strrchr(origin, '/') ? (int)(strrchr(origin, '/') - origin) : 0;

		if (length < word || strncmp(folder, words[i], word))
			continue;
		snprintf(path, sizeof(path), "%.*s%.*s/%s", origin_length, origin, (int)(length - word),
			 folder + word, name);
		if (!is_there(path))
			return false;
		look_at_file(search, path);
		return true;
	}
	snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, name);
	if (!length || !is_there(path))
		return false;
	look_at_file(search, path);
	return true;
}

static bool look_along(struct search *search, const char *folders, const char *origin, const char *name)
{
	while (folders && *folders) {
		size_t length = strcspn(folders, ":");

		if (look_in_folder(search, folders, length, origin, name))
			return true;
		folders += length + (folders[length] == ':');
	}
	return false;
}

/* Looks for a library in the same order as ld.so(8). */
static void look_for_library(struct search *search, const char *name, const char *run_path,
			     const char *origin)
{
	const char *cached;

	if (strchr(name, '/')) {
		look_at_file(search, name);
		return;
	}
	if (look_along(search, secure_getenv("LD_LIBRARY_PATH"), origin, name) ||
	    look_along(search, run_path, origin, name))
		return;
	cached = find_in_cache(search, name);
	if (cached)
		look_at_file(search, cached);
	else
		look_along(search, "/lib:/usr/lib:/lib64:/usr/lib64", origin, name);
}

/*
 * The command's files belong to its user, who may have fewer rights than this process. So they are read in
 * pieces of fixed sizes, field by field. Whatever they contain, the worst result is paths that don't exist.
 */
#define SEGMENTS_MOST 64
#define ENTRIES_MOST  512

struct parts {
	int fd;
	size_t nr_segments, nr_entries;
	Elf64_Phdr segments[SEGMENTS_MOST];
	Elf64_Dyn entries[ENTRIES_MOST];
	char run_path[PATH_MAX], text[PATH_MAX];
};

static size_t read_items(int fd, void *items, size_t size, size_t most, __u64 nr, __u64 offset)
{
	ssize_t got = pread(fd, items, (nr < most ? nr : most) * size, offset);

	return got > 0 ? got / size : 0;
}

static const char *read_text(int fd, char text[PATH_MAX], __u64 offset)
{
	ssize_t got = pread(fd, text, PATH_MAX - 1, offset);

	text[got > 0 ? got : 0] = '\0';
	return text;
}

/* The file offset of the dynamic strings; 0 if there are none. */
static __u64 offset_of_strings(const struct parts *parts)
{
	__u64 address = 0;

	for (size_t i = 0; i < parts->nr_entries; i++)
		if (parts->entries[i].d_tag == DT_STRTAB)
			address = parts->entries[i].d_un.d_ptr;
	for (size_t i = 0; i < parts->nr_segments; i++) {
		const Elf64_Phdr *segment = &parts->segments[i];

		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    address - segment->p_vaddr < segment->p_filesz)
			return address - segment->p_vaddr + segment->p_offset;
	}
	return 0;
}

static void look_at_dynamic(struct search *search, struct parts *parts, const char *path)
{
	__u64 strings = offset_of_strings(parts);
	const char *run_path = NULL;

	for (size_t i = 0; strings && i < parts->nr_entries; i++)
		if (parts->entries[i].d_tag == DT_RUNPATH || parts->entries[i].d_tag == DT_RPATH)
			run_path =
				read_text(parts->fd, parts->run_path, strings + parts->entries[i].d_un.d_val);
	for (size_t i = 0; strings && i < parts->nr_entries; i++)
		if (parts->entries[i].d_tag == DT_NEEDED)
			look_for_library(
				search,
				read_text(parts->fd, parts->text, strings + parts->entries[i].d_un.d_val),
				run_path, path);
}

static size_t up_to_null(const Elf64_Dyn *entries, size_t nr)
{
	size_t i = 0;

	while (i < nr && entries[i].d_tag != DT_NULL)
		i++;
	return i;
}

static void look_at_elf(struct search *search, int fd, const char *path)
{
	struct parts *parts = xmalloc(sizeof(*parts));
	Elf64_Ehdr header;

	*parts = (struct parts){.fd = fd};
	if (read_items(fd, &header, sizeof(header), 1, 1, 0) && header.e_ident[EI_CLASS] == ELFCLASS64 &&
	    header.e_phentsize == sizeof(Elf64_Phdr))
		parts->nr_segments = read_items(fd, parts->segments, sizeof(Elf64_Phdr), SEGMENTS_MOST,
						header.e_phnum, header.e_phoff);
	for (size_t i = 0; i < parts->nr_segments; i++) {
		const Elf64_Phdr *segment = &parts->segments[i];

		if (segment->p_type == PT_INTERP)
			look_at_file(search, read_text(fd, parts->text, segment->p_offset));
		if (segment->p_type == PT_DYNAMIC)
			parts->nr_entries = up_to_null(
				parts->entries,
				read_items(fd, parts->entries, sizeof(Elf64_Dyn), ENTRIES_MOST,
					   segment->p_filesz / sizeof(Elf64_Dyn), segment->p_offset));
	}
	look_at_dynamic(search, parts, path);
	free(parts);
}

static void look_for_program(struct search *search, const char *name);

/* Handles a line like "#!/usr/bin/env python3": the interpreter, and if that is env, the program in PATH that
 * is its argument. */
static void look_at_script(struct search *search, char *line)
{
	char *program = line + strspn(line, " \t"), *end = program + strcspn(program, " \t\n"), *argument;
	const char *name;

	argument = *end && *end != '\n' ? end + 1 + strspn(end + 1, " \t") : end;
	argument[strcspn(argument, " \t\n")] = '\0';
	*end = '\0';
	look_at_file(search, program);
	name = strrchr(program, '/');
	if (name && !strcmp(name, "/env") && argument != end && isalnum((unsigned char)*argument))
		look_for_program(search, argument);
}

/* Reads a file unless it was read already. */
static void read_needed(struct search *search, const struct foreign_answer *answer)
{
	char begin[256];
	ssize_t got;

	for (size_t i = 0; i < search->nr_seen; i++)
		if (!strcmp(search->seen[i], answer->path))
			return;
	search->seen[search->nr_seen++] = xstrdup(answer->path);
	got = pread(answer->fd, begin, sizeof(begin) - 1, 0);
	begin[got > 0 ? got : 0] = '\0';
	if (!strncmp(begin, "#!", 2)) {
		look_at_script(search, begin + 2);
	} else if (!strncmp(begin, ELFMAG, SELFMAG)) {
		search->each(search->context, &answer->stat, answer->fd);
		look_at_elf(search, answer->fd, answer->path);
	}
}

static void look_at_file(struct search *search, const char *path)
{
	const struct foreign_question question = {.want = FOREIGN_READ,
						  .path = path,
						  .guard = {.whose = GUARD_ANYBODY, .most = GUARD_IMAGE_MOST},
						  .wait_ms = FOREIGN_PATIENT_MS};
	struct foreign_answer *answer;

	if (search->nr_seen == FILES_MOST)
		return;
	answer = xmalloc(sizeof(*answer));
	if (!foreign_ask(&question, answer)) {
		read_needed(search, answer);
		close(answer->fd);
	}
	free(answer);
}

static bool is_there(const char *path)
{
	struct stat stat;

	return foreign_stat(path, 0, FOREIGN_PATIENT_MS, &stat);
}

/* Looks for a program as execvp(3) does. */
static void look_for_program(struct search *search, const char *name)
{
	const char *folders = NULL;
	char path[PATH_MAX];
	struct stat stat;

	if (strchr(name, '/')) {
		look_at_file(search, name);
		return;
	}
	while (path_next(&folders, name, path))
		if (foreign_stat(path, 0, FOREIGN_PATIENT_MS, &stat) && stat.st_mode & S_IXUSR) {
			look_at_file(search, path);
			return;
		}
}

void needed_each(char **command, void (*each)(void *context, const struct stat *stat, int fd), void *context)
{
	struct search search = {.each = each, .context = context};

	read_cache(&search);
	for (size_t i = 0; command[i] && i < ARGUMENTS_MOST; i++)
		look_for_program(&search, command[i]);
	for (size_t i = 0; i < search.nr_seen; i++)
		free(search.seen[i]);
	free(search.cache);
}
