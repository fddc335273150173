// SPDX-License-Identifier: GPL-2.0-only
/* Takes the place of disassemble.c in a program that is built without libcapstone: annotated code has no
 * instructions then. */
#include "confined/disassemble.h"

#include "base/late.h"
#include "confined/instructions.h"

DEFINE_LATE_WITHOUT(libcapstone);

const char *disassemble_load_library(void)
{
	return CODE_BUILT;
}

const char *disassemble(const __u8 *code, size_t size, __u64 address, bool wide,
			struct told_instruction **list, size_t *nr)
{
	*list = NULL;
	*nr = 0;
	return CODE_BUILT;
}

void instructions_read(const __u8 *code, size_t size, __u64 address, struct instruction **list, size_t *nr)
{
	*list = NULL;
	*nr = 0;
}
