// SPDX-License-Identifier: GPL-2.0-only
#include "confined/thread_slots.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "confined/relocations.h"
#include "naming/image.h"

struct slots_reader {
	struct thread_slots *slots;
	size_t room;
	const struct image *image;
	struct dynamic dynamic;
	struct segment *loaded;
	size_t nr_loaded;
};

/* The word that the file has at an address. */
static bool word_at(const struct slots_reader *reader, __u64 address, __u64 *word)
{
	for (size_t i = 0; i < reader->nr_loaded; i++) {
		const struct segment *segment = &reader->loaded[i];

		if (address - segment->address < segment->size)
			return image_read(reader->image, word, sizeof(*word),
					  segment->offset + (address - segment->address));
	}
	return false;
}

/* The place of what a relocation refers to by its symbol, if that is this file's own. */
static bool by_symbol(const struct slots_reader *reader, const struct relocation *relocation, __u64 *at)
{
	GElf_Sym symbol;

	if (!dynamic_symbol(&reader->dynamic, relocation->symbol, &symbol) || symbol.st_shndx == SHN_UNDEF)
		return false;
	*at = symbol.st_value + relocation->addend;
	return true;
}

/* The second word of an argument of __tls_get_addr() is the place. It is in the file, or filled by another
 * relocation for the same symbol. */
static bool place_of(const struct slots_reader *reader, const struct relocation *relocation, __u64 *at)
{
	if (relocation->symbol)
		return by_symbol(reader, relocation, at);
	if (relocation->type == R_X86_64_DTPMOD64)
		return word_at(reader, relocation->slot + sizeof(__u64), at);
	*at = relocation->addend;
	return true;
}

static void take_relocation(void *context, const struct relocation *relocation)
{
	struct slots_reader *reader = context;
	struct thread_slot slot = {.address = relocation->slot};

	switch (relocation->type) {
	case R_X86_64_DTPMOD64:
		slot.kind = THREAD_SLOT_ADDRESS;
		break;
	case R_X86_64_TPOFF64:
		slot.kind = THREAD_SLOT_DISTANCE;
		break;
	case R_X86_64_TLSDESC:
		slot.kind = THREAD_SLOT_DESCRIPTOR;
		break;
	default:
		return;
	}
	if (!place_of(reader, relocation, &slot.at))
		return;
	reader->slots->list =
		xroom(reader->slots->list, reader->slots->nr, &reader->room, sizeof(*reader->slots->list));
	reader->slots->list[reader->slots->nr++] = slot;
}

static int by_address(const void *a, const void *b)
{
	__u64 x = ((const struct thread_slot *)a)->address, y = ((const struct thread_slot *)b)->address;

	return x < y ? -1 : x > y;
}

void thread_slots_read(struct thread_slots *slots, const struct image *image, size_t most)
{
	struct slots_reader reader = {.slots = slots, .image = image};

	*slots = (struct thread_slots){0};
	if (gelf_getclass(image->elf) != ELFCLASS64)
		return;
	dynamic_read(&reader.dynamic, image, most);
	reader.loaded = image_loaded(image, &reader.nr_loaded);
	relocations_each(image, ".rela.dyn", RELOCATIONS_DATA, most, take_relocation, &reader);
	/* Linkers put descriptors here, since these may be filled when they are first used. */
	relocations_each(image, ".rela.plt", RELOCATIONS_LINKAGE, most, take_relocation, &reader);
	if (slots->nr)
		qsort(slots->list, slots->nr, sizeof(*slots->list), by_address);
	free(reader.loaded);
	dynamic_release(&reader.dynamic);
}

void thread_slots_release(struct thread_slots *slots)
{
	free(slots->list);
	*slots = (struct thread_slots){0};
}

const struct thread_slot *thread_slot_at(const struct thread_slots *slots, __u64 address)
{
	struct thread_slot wanted = {.address = address};

	return slots->nr ? bsearch(&wanted, slots->list, slots->nr, sizeof(wanted), by_address) : NULL;
}
