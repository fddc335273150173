// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the types of data: the input is an ELF file, with its DWARF, its unwind table and its code. Whatever
 * the bytes: no crash, no leak, no endless search; and either a type or one of the reasons why there is none.
 */
#include <stdlib.h>
#include <string.h>

#include "itself.h"
#include "sections.h"
#include "confined/access.h"
#include "confined/disassemble.h"
#include "confined/types.h"
#include "naming/codes.h"
#include "naming/message.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t most, unsigned int seed);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	if (disassemble_load_library())
		abort();
	return 0;
}

static void check(const char *why, const struct typed *typed)
{
	if (!why &&
	    (!typed->type[0] || strlen(typed->type) >= TYPE_TEXT || strlen(typed->field) >= TYPE_TEXT))
		abort();
	for (size_t i = 0; why; i++) {
		if (!code_untyped_words[i])
			abort();
		if (!strcmp(why, code_untyped_words[i]))
			break;
	}
}

/* Every instruction could be asked for; so many are. */
#define ACCESSES  1024
#define VARIABLES 64

static void ask(const struct read_file *file)
{
	struct typed typed;

	for (size_t i = 0; i < file->code.nr; i++)
		for (size_t at = 0; at < file->code.list[i].size && at < ACCESSES; at++)
			check(type_of_access(file->lines, &file->code, file->code.list[i].address + at,
					     &typed),
			      &typed);
	for (size_t i = 0; i < file->nr_loaded; i++)
		for (size_t at = 0; at < VARIABLES; at++)
			check(type_of_variable(file->lines, file->loaded[i].address + at * 8, &typed),
			      &typed);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct read_file file;

	if (!begin_itself(&file, data, size))
		return 0;
	if (file.lines)
		ask(&file);
	end_itself(&file);
	return 0;
}

size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t most, unsigned int seed)
{
	return mutate_section(data, size, most, seed);
}
