// SPDX-License-Identifier: GPL-2.0-only
#include "top/tape.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "output/member.h"

#define TOGETHER_NS 100000000ULL

static void drop_oldest(struct tape *tape)
{
	size_t kept = tape->first, base = tape->first;

	while (tape->bytes > TAPE_BYTES * 7ULL / 8 && kept + 1 < tape->end) {
		tape->bytes -= tape->records[kept - base].size;
		free(tape->records[kept++ - base].line);
	}
	memmove(tape->records, tape->records + (kept - base), (tape->end - kept) * sizeof(*tape->records));
	tape->first = kept;
}

void tape_add(struct tape *tape, const char *line, size_t size, const json_t *record)
{
	size_t nr = tape->end - tape->first;
	__u64 since = moment(record, "start_time");
	char *copy = xmalloc(size + 1);

	memcpy(copy, line, size);
	copy[size] = '\0';
	tape->records = xroom(tape->records, nr, &tape->room, sizeof(*tape->records));
	tape->records[nr] = (struct taped){copy, size, since ? since + integer(record, "duration_ns") : 0};
	tape->end++;
	tape->bytes += size;
	if (tape->bytes > TAPE_BYTES)
		drop_oldest(tape);
}

const struct taped *tape_at(const struct tape *tape, size_t number)
{
	return &tape->records[number - tape->first];
}

json_t *tape_record(const struct tape *tape, size_t number)
{
	const struct taped *taped = tape_at(tape, number);

	return json_loadb(taped->line, taped->size, 0, NULL);
}

__u64 tape_time(const struct tape *tape, size_t number)
{
	while (number > tape->first)
		if (tape_at(tape, --number)->until_ns)
			return tape_at(tape, number)->until_ns;
	return 0;
}

size_t tape_seek(const struct tape *tape, __u64 until_ns)
{
	size_t number = tape->first;

	while (number < tape->end && tape_at(tape, number)->until_ns <= until_ns)
		number++;
	return number;
}

static size_t step_on(const struct tape *tape, size_t number)
{
	__u64 until = 0;

	for (; number < tape->end; number++) {
		__u64 own = tape_at(tape, number)->until_ns;

		if (own && !until)
			until = own;
		if (own > until + TOGETHER_NS)
			break;
	}
	return number;
}

static size_t step_back(const struct tape *tape, size_t number)
{
	__u64 until = tape_time(tape, number);

	while (number > tape->first) {
		__u64 own = tape_at(tape, number - 1)->until_ns;

		if (own && own + TOGETHER_NS < until)
			return number;
		number--;
	}
	/* There is nothing before the first interval. */
	return step_on(tape, tape->first);
}

size_t tape_step(const struct tape *tape, size_t number, int direction)
{
	return direction > 0 ? step_on(tape, number) : step_back(tape, number);
}

void tape_release(struct tape *tape)
{
	for (size_t i = 0; i < tape->end - tape->first; i++)
		free(tape->records[i].line);
	free(tape->records);
	*tape = (struct tape){0};
}
