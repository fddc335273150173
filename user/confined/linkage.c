// SPDX-License-Identifier: GPL-2.0-only
/* The forms of entries: System V ABI, AMD64 and Intel386 supplements; for retpolines and IBT, what lld and
 * binutils write. */
#include "confined/linkage.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "confined/relocations.h"
#include "naming/image.h"
#include "naming/symbols.h"

/* What the dynamic linker fills with a function's address. */
struct slot {
	__u64 address; /* the sort key, so it must be the first member */
	__u32 what;    /* a symbol's number in .dynsym, or (`own`) a name's offset in the symbols' strings; 0:
			  none */
	bool own;
};

struct slots {
	struct slot *list;
	size_t nr, room;
};

struct linkage {
	const struct image *image;
	struct symbols *symbols;
	size_t most;
	bool wide;	  /* the file's structs are those of 64 bits */
	bool relative;	  /* code finds slots from its own address; else from ebx, or by their addresses */
	__u64 base;	  /* what ebx is */
	size_t resolvers; /* that may still be looked up: each takes a walk through all symbols */
	struct dynamic dynamic;
	char *own_strings;  /* names of `dynamic`; NULL: they are among those of the symbols */
	size_t strings;	    /* where they begin there */
	struct slots slots; /* sorted by address, once all have been read */
	struct slots lazy;  /* those whose entries push their numbers, in that order */
};

#define RESOLVERS_MOST 256

/* --- relocations -------------------------------------------------------------------------------- */

/* i386's types of these have the same numbers. */
#define FILLS_DATA R_X86_64_GLOB_DAT
#define FILLS_JUMP R_X86_64_JUMP_SLOT

static void read_dynamic(struct linkage *linkage, const struct dynamic_strings *known)
{
	struct dynamic *dynamic = &linkage->dynamic;

	dynamic_read(dynamic, linkage->image, linkage->most);
	if (!dynamic->nr)
		return;
	if (known->there) {
		linkage->strings = known->base;
		return;
	}
	linkage->own_strings = image_read_section(linkage->image, &dynamic->strings, linkage->most);
	if (linkage->own_strings)
		linkage->own_strings[dynamic->strings.sh_size - 1] = '\0';
	else
		dynamic->nr = 0;
}

/* The name of a symbol of .dynsym, valid until strings are added; "": it has none. */
static const char *dynamic_name(const struct linkage *linkage, size_t number)
{
	GElf_Sym symbol;

	if (!dynamic_symbol(&linkage->dynamic, number, &symbol) || !symbol.st_name ||
	    symbol.st_name >= linkage->dynamic.strings.sh_size)
		return "";
	return (linkage->own_strings ?: linkage->symbols->strings + linkage->strings) + symbol.st_name;
}

/* The name of a function that the file has for itself only, and chooses when it is loaded. */
static __u32 resolver_name(struct linkage *linkage, __u64 resolver)
{
	const char *name;

	if (!resolver || !linkage->resolvers)
		return 0;
	linkage->resolvers--;
	name = symbols_chosen_by(linkage->symbols, resolver);
	return name ? name - linkage->symbols->strings : 0;
}

static struct slot slot_of(struct linkage *linkage, const struct relocation *relocation)
{
	struct slot slot = {.address = relocation->slot};

	if (relocation->type == FILLS_DATA || relocation->type == FILLS_JUMP) {
		slot.what = relocation->symbol;
	} else if (relocation->type == (linkage->relative ? R_X86_64_IRELATIVE : R_386_IRELATIVE)) {
		slot.what = resolver_name(linkage, relocation->addend);
		slot.own = true;
	}
	return slot;
}

static void add_slot(struct slots *slots, struct slot slot)
{
	slots->list = xroom(slots->list, slots->nr, &slots->room, sizeof(*slots->list));
	slots->list[slots->nr++] = slot;
}

static struct slot take_slot(struct linkage *linkage, const struct relocation *relocation)
{
	struct slot slot = slot_of(linkage, relocation);

	if (slot.what)
		add_slot(&linkage->slots, slot);
	return slot;
}

static void take_filled(void *context, const struct relocation *relocation)
{
	take_slot(context, relocation);
}

/* Entries push the numbers of these, among which are slots without a name. */
static void take_lazy(void *context, const struct relocation *relocation)
{
	struct linkage *linkage = context;

	add_slot(&linkage->lazy, take_slot(linkage, relocation));
}

static int by_address(const void *a, const void *b)
{
	__u64 x = ((const struct slot *)a)->address, y = ((const struct slot *)b)->address;

	return x < y ? -1 : x > y;
}

static void read_all_slots(struct linkage *linkage, const struct dynamic_strings *known)
{
	static const struct {
		const char *section;
		enum relocations_kind kind;
		relocation_visit *take;
	} sections[] = {{".rela.plt", RELOCATIONS_LINKAGE, take_lazy},
			{".rel.plt", RELOCATIONS_LINKAGE, take_lazy},
			{".rela.dyn", RELOCATIONS_DATA, take_filled},
			{".rel.dyn", RELOCATIONS_DATA, take_filled}};

	read_dynamic(linkage, known);
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		relocations_each(linkage->image, sections[i].section, sections[i].kind, linkage->most,
				 sections[i].take, linkage);
	if (linkage->slots.nr)
		qsort(linkage->slots.list, linkage->slots.nr, sizeof(*linkage->slots.list), by_address);
}

/* --- entries ------------------------------------------------------------------------------------ */

#define ENTRY_STEP  8  /* entries begin at multiples of it */
#define ENTRY_MOST  32 /* bytes */
#define ENTRY_USUAL 16

struct stub {
	const struct slot *slot; /* NULL: it is none */
	size_t size;		 /* at most: the next one may begin before */
};

static __s32 word_at(const unsigned char *code)
{
	__s32 word;

	memcpy(&word, code, sizeof(word));
	return word;
}

/* The slot that an instruction takes, which ends at `end`. */
static const struct slot *slot_of_operand(const struct linkage *linkage, const unsigned char *displacement,
					  __u64 end, bool by_ebx)
{
	struct slot wanted = {.address = (__s64)word_at(displacement)};

	wanted.address += linkage->relative ? end : by_ebx ? linkage->base : 0;
	if (!linkage->wide)
		wanted.address = (__u32)wanted.address;
	return linkage->slots.nr
		       ? bsearch(&wanted, linkage->slots.list, linkage->slots.nr, sizeof(wanted), by_address)
		       : NULL;
}

/* The entry at the beginning of some code, which has ENTRY_MOST readable bytes. */
static struct stub entry_at(const struct linkage *linkage, const unsigned char *code, __u64 address)
{
	size_t at = !memcmp(code, "\xf3\x0f\x1e", 3) ? 4 : 0 /* endbr64, endbr32 */;
	__u32 number;

	if (at && code[at] == 0x68 /* push $number: the first part of a lazy entry, if there are two */) {
		number = (__u32)word_at(code + at + 1) / (linkage->relative ? 1 : sizeof(Elf32_Rel));
		return (struct stub){number < linkage->lazy.nr ? &linkage->lazy.list[number] : NULL,
				     ENTRY_USUAL};
	}
	at += code[at] == 0xf2; /* bnd */
	if (code[at] == 0xff && (code[at + 1] == 0x25 || (!linkage->relative && code[at + 1] == 0xa3)))
		return (struct stub){
			slot_of_operand(linkage, code + at + 2, address + at + 6, code[at + 1] == 0xa3),
			ENTRY_USUAL};
	if (linkage->relative &&
	    !memcmp(code + at, "\x4c\x8b\x1d" /* mov slot(%rip), %r11: a retpoline's */, 3))
		return (struct stub){slot_of_operand(linkage, code + at + 3, address + at + 7, false),
				     ENTRY_MOST};
	return (struct stub){0};
}

/* Whether the entry goes on behind ENTRY_STEP bytes with the number for the dynamic linker: nothing there is
 * the beginning of another one. */
static bool is_lazy(const unsigned char *code)
{
	return code[6] == 0x68;
}

static void add_entry(struct linkage *linkage, const struct stub *entry, __u64 begin, __u64 end)
{
	const struct slot *slot = entry->slot;
	const char *called = !slot || !slot->what ? ""
			     : slot->own	  ? linkage->symbols->strings + slot->what
						  : dynamic_name(linkage, slot->what);
	char name[4096];
	long long at;

	if (!*called)
		return;
	at = symbols_add_strings(linkage->symbols, name, snprintf(name, sizeof(name), "%.4000s@plt", called));
	if (at >= 0)
		symbols_add(
			linkage->symbols,
			&(struct found_symbol){.address = begin,
					       .end = begin + entry->size < end ? begin + entry->size : end,
					       .name = at});
}

static void name_entries(struct linkage *linkage, const char *section)
{
	struct stub last = {0}, entry;
	unsigned char *bytes;
	GElf_Shdr header;
	__u64 begin = 0;

	if (!image_section(linkage->image, section, &header))
		return;
	bytes = (unsigned char *)image_read_section(linkage->image, &header, linkage->most);
	for (size_t at = 0; bytes && at < header.sh_size; at += ENTRY_STEP) {
		unsigned char code[ENTRY_MOST] = {0};

		memcpy(code, bytes + at,
		       header.sh_size - at < sizeof(code) ? header.sh_size - at : sizeof(code));
		entry = entry_at(linkage, code, header.sh_addr + at);
		if (!entry.slot)
			continue;
		add_entry(linkage, &last, begin, header.sh_addr + at);
		last = entry;
		begin = header.sh_addr + at;
		at += is_lazy(code) ? ENTRY_USUAL - ENTRY_STEP : 0;
	}
	add_entry(linkage, &last, begin, header.sh_addr + header.sh_size);
	free(bytes);
}

void linkage_add_symbols(const struct image *image, struct symbols *symbols,
			 const struct dynamic_strings *known, size_t most)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt"};
	struct linkage linkage = {.image = image,
				  .symbols = symbols,
				  .most = most,
				  .wide = gelf_getclass(image->elf) == ELFCLASS64,
				  .resolvers = RESOLVERS_MOST};
	GElf_Shdr header;
	GElf_Ehdr file;

	linkage.relative = gelf_getehdr(image->elf, &file) && file.e_machine == EM_X86_64;
	if (image_section(image, ".got.plt", &header) || image_section(image, ".got", &header))
		linkage.base = header.sh_addr;
	read_all_slots(&linkage, known);
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		name_entries(&linkage, sections[i]);
	dynamic_release(&linkage.dynamic);
	free(linkage.own_strings);
	free(linkage.slots.list);
	free(linkage.lazy.list);
}
