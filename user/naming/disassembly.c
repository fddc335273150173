// SPDX-License-Identifier: GPL-2.0-only
#include "naming/disassembly.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "naming/debug_file.h"
#include "naming/named_source.h"

/* The worker holds the code, its instructions, and what libcapstone makes of them. */
#define CODE_WORKER_BYTES (128UL << 20)

struct worker *disassembly_worker(void)
{
	struct worker *worker = worker_new(CODE_WORKER_BYTES);

	worker_disassembles(worker);
	return worker;
}

/* The constant that a worker's reason is. */
static const char *constant(const char *why)
{
	static const char *const known[] = {CODE_LIBRARY, CODE_BUILT, CODE_FAILED, CODE_NOWHERE};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i], why))
			return known[i];
	return CODE_FAILED;
}

static bool is_valid(const struct disassembly *disassembly, __u64 nr)
{
	const struct told_instruction *list = (const void *)disassembly->sealed.memory;

	if (!list || nr > CODE_MOST || nr * sizeof(*list) > disassembly->sealed.size)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (!list[i].size || !memchr(list[i].text, 0, sizeof(list[i].text)))
			return false;
	return true;
}

void disassembly_read(struct disassembly *disassembly, struct worker *worker, const char *path, __u64 offset)
{
	static struct file_place place;
	struct question_of_worker question = {.ask = {.kind = ASK_CODE, .address = offset, .most = CODE_MOST},
					      .sealed = &disassembly->sealed};
	const struct answer *answer;

	*disassembly = (struct disassembly){0};
	place_of_path(&place, path, NULL);
	question.fd = place_open(&place, NULL);
	if (question.fd < 0) {
		disassembly->why = source_why(errno);
		return;
	}
	answer = worker_ask(worker, &question);
	if (!answer)
		disassembly->why = worker_why(worker);
	else if (answer->why[0])
		disassembly->why = constant(answer->why);
	else if (!is_valid(disassembly, answer->counts[0]))
		disassembly->why = WORKER_FAILED;
	if (disassembly->why)
		return;
	disassembly->list = (const void *)disassembly->sealed.memory;
	disassembly->nr = answer->counts[0];
}

void disassembly_release(struct disassembly *disassembly)
{
	sealed_release(&disassembly->sealed);
}
