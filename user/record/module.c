// SPDX-License-Identifier: GPL-2.0-only
#include "record/module.h"

#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Code that a process has, or had, mapped. */
struct mapping {
	__u64 begin, end; /* the first address, and the one behind the last */
	__u64 offset;     /* of begin, in the file */
	const char *path;
};

struct process {
	pid_t pid;
	struct program program; /* path: NULL if not known */
	struct mapping *mappings; /* in the order in which they were first seen */
	size_t nr;
};

static char **paths;
static size_t nr_paths;
static struct process *processes;
static size_t nr_processes;

static const char *kept(const char *path)
{
	for (size_t i = 0; i < nr_paths; i++)
		if (!strcmp(paths[i], path))
			return paths[i];
	paths = realloc(paths, (nr_paths + 1) * sizeof(*paths));
	paths[nr_paths] = strdup(path);
	return paths[nr_paths++];
}

static struct process *find(pid_t pid)
{
	for (size_t i = 0; i < nr_processes; i++)
		if (processes[i].pid == pid)
			return &processes[i];
	return NULL;
}

static struct process *find_or_make(pid_t pid)
{
	struct process *process = find(pid);

	if (process)
		return process;
	processes = realloc(processes, (nr_processes + 1) * sizeof(*processes));
	processes[nr_processes] = (struct process){.pid = pid};
	return &processes[nr_processes++];
}

static bool same(const struct mapping *a, const struct mapping *b)
{
	return a->begin == b->begin && a->end == b->end && a->offset == b->offset && a->path == b->path;
}

/* A mapping that is seen again goes to the end: it is the one that is there now. */
static void add(struct process *process, const struct mapping *mapping)
{
	size_t at = 0;

	while (at < process->nr && !same(&process->mappings[at], mapping))
		at++;
	if (at == process->nr)
		process->mappings =
			realloc(process->mappings, ++process->nr * sizeof(*process->mappings));
	else
		memmove(process->mappings + at, process->mappings + at + 1,
			(process->nr - at - 1) * sizeof(*process->mappings));
	process->mappings[process->nr - 1] = *mapping;
}

/* "55d0c8a01000-55d0c8a02000 r-xp 00001000 fe:00 1234    /usr/bin/true": proc(5). */
static void add_line(struct process *process, char *line)
{
	unsigned long long begin, end, offset;
	int path = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%llx-%llx %*2c%*1[x]%*c %llx %*s %*s %n", &begin, &end, &offset, &path) != 3 ||
	    !path || !line[path])
		return;
	add(process, &(struct mapping){begin, end, offset, kept(line + path)});
}

static void read_segments(struct program *program, FILE *file)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (fread(&header, sizeof(header), 1, file) != 1 || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64)
		return;
	for (int i = 0; i < header.e_phnum && program->nr < CODE_SEGMENTS; i++) {
		if (fseek(file, header.e_phoff + i * sizeof(segment), SEEK_SET) ||
		    fread(&segment, sizeof(segment), 1, file) != 1)
			return;
		if (segment.p_type == PT_LOAD && segment.p_flags & PF_X)
			program->segments[program->nr++] = (struct code_segment){
				segment.p_offset, segment.p_filesz, segment.p_vaddr};
	}
}

static void look_at_program(struct program *program, pid_t pid)
{
	char name[64], path[PATH_MAX];
	ssize_t length;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	length = readlink(name, path, sizeof(path) - 1);
	if (length < 0)
		return;
	path[length] = '\0';
	if (program->path && !strcmp(program->path, path))
		return;
	*program = (struct program){.path = kept(path)};
	file = fopen(name, "re"); /* the file itself, whatever the path is to others */
	if (!file)
		return;
	read_segments(program, file);
	fclose(file);
}

void module_look(pid_t pid)
{
	struct process *process;
	char *line = NULL;
	char name[64];
	size_t size = 0;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	file = fopen(name, "re");
	if (!file)
		return;
	process = find_or_make(pid);
	while (getline(&line, &size, file) > 0)
		add_line(process, line);
	free(line);
	fclose(file);
	look_at_program(&process->program, pid);
}

const char *module_of(pid_t pid, __u64 address, __u64 *offset)
{
	const struct process *process = find(pid);

	for (size_t i = process ? process->nr : 0; i--;) {
		const struct mapping *mapping = &process->mappings[i];

		if (address < mapping->begin || address >= mapping->end)
			continue;
		*offset = address - mapping->begin + mapping->offset;
		return mapping->path;
	}
	return NULL;
}

const struct program *module_program(pid_t pid)
{
	const struct process *process = find(pid);

	return process && process->program.path ? &process->program : NULL;
}
