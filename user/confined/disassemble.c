// SPDX-License-Identifier: GPL-2.0-only
#include "confined/disassemble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <capstone/capstone.h>

#include "base/late.h"
#include "base/memory.h"

#define FUNCTIONS(X)                                                                                         \
	X(cs_open)                                                                                           \
	X(cs_option)                                                                                         \
	X(cs_disasm)                                                                                         \
	X(cs_free)                                                                                           \
	X(cs_close)                                                                                          \
	X(cs_version)

static const char *libcapstone_version(void)
{
	static char text[32];
	int major, minor;

	cs_version(&major, &minor);
	snprintf(text, sizeof(text), "%d.%d", major, minor);
	return text;
}

DEFINE_LATE(libcapstone, LIBCAPSTONE_SONAME, "libcapstone4", FUNCTIONS, libcapstone_version);

const char *disassemble_load_library(void)
{
	return late_load(&libcapstone) ? CODE_LIBRARY : NULL;
}

static void take(const cs_insn *insn, struct told_instruction *told)
{
	size_t length;

	told->size = insn->size;
	snprintf(told->text, sizeof(told->text), "%.31s %.159s", insn->mnemonic, insn->op_str);
	length = strlen(told->text);
	if (length && told->text[length - 1] == ' ')
		told->text[length - 1] = '\0';
}

const char *disassemble(const __u8 *code, size_t size, __u64 address, bool wide,
			struct told_instruction **list, size_t *nr)
{
	cs_insn *found;
	csh handle;

	*list = NULL;
	*nr = 0;
	if (!libcapstone.loaded)
		return CODE_LIBRARY;
	if (cs_open(CS_ARCH_X86, wide ? CS_MODE_64 : CS_MODE_32, &handle) != CS_ERR_OK)
		return CODE_FAILED;
	cs_option(handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_ON);
	*nr = cs_disasm(handle, code, size, address, 0, &found);
	*list = xcalloc(*nr + 1, sizeof(**list));
	for (size_t i = 0; i < *nr; i++)
		take(&found[i], &(*list)[i]);
	if (*nr)
		cs_free(found, *nr);
	cs_close(&handle);
	return *nr ? NULL : CODE_FAILED;
}
