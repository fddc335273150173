// SPDX-License-Identifier: GPL-2.0-only
#include "naming/jitdump.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"
#include "naming/jitdump_format.h"

/* Longer names are cut. */
#define NAME_MOST 4096

/* The file in pieces, since most of it is code, which is skipped. */
struct dump {
	int fd;
	__u64 at; /* of the piece in the file */
	size_t size;
	unsigned char piece[1 << 16];
};

/* Returns `size` bytes of the file, at most a piece, which are valid until the next call; NULL: it ends
 * before. */
static const void *bytes_at(struct dump *dump, __u64 at, size_t size)
{
	ssize_t got;

	if (at >= dump->at && at + size <= dump->at + dump->size)
		return dump->piece + (at - dump->at);
	got = pread(dump->fd, dump->piece, sizeof(dump->piece), at);
	dump->at = at;
	dump->size = got > 0 ? got : 0;
	return size <= dump->size ? dump->piece : NULL;
}

bool jitdump_is_named(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t digits;

	if (!name || strncmp(name, "/jit-", 5))
		return false;
	digits = strspn(name + 5, "0123456789");
	return digits && !strcmp(name + 5 + digits, ".dump");
}

bool jitdump_is(int fd)
{
	__u32 magic;

	return pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
	       (magic == JITDUMP_MAGIC || magic == JITDUMP_SWAPPED);
}

/* Where the names of loaded code are, by its index, for records of its moves. */
static void note_name(struct map *names, __u64 index, __u32 name)
{
	void *before = map_find(names, index);

	if (before)
		map_remove(names, index, before);
	map_put(names, index, (void *)((uintptr_t)name + 1));
}

static void add_symbol(struct symbols *symbols, __u64 address, __u64 size, __u32 name, __u32 order)
{
	struct found_symbol symbol = {
		.address = address, .end = address + size, .name = name, .order = order};

	if (size && symbol.end > address)
		symbols_add(symbols, &symbol);
}

/* Takes code from the record of `size` bytes at this place. Returns false if there is no room for its name.
 */
static bool take_load(struct symbols *symbols, struct map *names, struct dump *dump, __u64 at, size_t size,
		      __u32 order)
{
	const struct jitdump_load *found = bytes_at(dump, at, sizeof(*found));
	size_t room = size - sizeof(*found) < NAME_MOST ? size - sizeof(*found) : NAME_MOST;
	struct jitdump_load load;
	const char *text;
	long long name;

	if (!found)
		return true;
	memcpy(&load, found, sizeof(load));
	text = bytes_at(dump, at + sizeof(load), room);
	if (!text)
		return true;
	name = symbols_add_strings(symbols, text, strnlen(text, room));
	if (name < 0)
		return false;
	note_name(names, load.index, name);
	add_symbol(symbols, load.address, load.size, name, order);
	return true;
}

static void take_move(struct symbols *symbols, const struct map *names, struct dump *dump, __u64 at,
		      __u32 order)
{
	const struct jitdump_move *found = bytes_at(dump, at, sizeof(*found));
	struct jitdump_move move;
	uintptr_t name;

	if (!found)
		return;
	memcpy(&move, found, sizeof(move));
	name = (uintptr_t)map_find(names, move.index);
	if (name)
		add_symbol(symbols, move.to, move.size, name - 1, order);
}

/* Takes all records. Returns false if they do not fit. The last one may be incomplete: the file grows. */
static bool take_records(struct symbols *symbols, struct dump *dump, __u64 at, size_t most)
{
	const struct jitdump_prefix *found;
	struct map names = {0};
	bool fits = true;

	for (__u32 order = 1; fits && (found = bytes_at(dump, at, sizeof(*found))); order++) {
		struct jitdump_prefix prefix;
		size_t size;

		memcpy(&prefix, found, sizeof(prefix));
		if (prefix.total_size < sizeof(prefix))
			break;
		size = prefix.total_size - sizeof(prefix);
		if (prefix.id == JIT_CODE_LOAD && size > sizeof(struct jitdump_load))
			fits = take_load(symbols, &names, dump, at + sizeof(prefix), size, order);
		else if (prefix.id == JIT_CODE_MOVE && size >= sizeof(struct jitdump_move))
			take_move(symbols, &names, dump, at + sizeof(prefix), order);
		fits = fits && symbols->strings_size + symbols->nr_found * sizeof(*symbols->found) +
					       map_bytes(&names) <=
				       most;
		at += prefix.total_size;
	}
	map_release(&names);
	return fits;
}

const char *jitdump_symbols(struct symbols *symbols, int fd, size_t most)
{
	struct dump *dump = xmalloc(sizeof(*dump));
	const struct jitdump_header *header;
	const char *why = NULL;

	dump->fd = fd;
	dump->at = dump->size = 0;
	header = bytes_at(dump, 0, sizeof(*header));
	if (!header)
		why = "the dump of compiled code is not complete";
	else if (header->magic != JITDUMP_MAGIC || header->total_size < sizeof(*header))
		why = "the dump of compiled code is not in this machine's format";
	else if (!take_records(symbols, dump, header->total_size, most))
		why = JIT_NO_ROOM;
	close(fd);
	free(dump);
	if (!why)
		symbols_finish(symbols, NULL, NULL);
	return why;
}
