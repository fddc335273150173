// SPDX-License-Identifier: GPL-2.0-only
#include "confined/symbol_index.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define BLOCK	       256	 /* symbols: a bit of the bitmap is about so many */
#define STRETCHES_MOST 4096	 /* with more, a symbol that is in all of them would take too long */
#define NAME_MOST      (1 << 15) /* bytes; longer names are cut */
#define NAME_AT_ONCE   256

struct symbol_index {
	struct image image;
	struct symbol_table table;
	__u64 first, last; /* where the first and the last symbol begin */
	__u64 width;	   /* bytes of a stretch */
	size_t nr;	   /* stretches */
	size_t row;	   /* bytes of the bitmap for a stretch: a bit for each block */
	__u8 *bitmap;	   /* blocks with a symbol that has a part in the stretch */
};

/* --- the table in blocks ------------------------------------------------------------------------ */

static size_t nr_blocks(const struct symbol_index *index)
{
	return (index->table.nr + BLOCK - 1) / BLOCK;
}

typedef void each_symbol(void *context, const struct found_symbol *symbol, size_t block);

/* Calls back for each symbol of a block. Returns false if it can't be read. */
static bool read_block(const struct symbol_index *index, size_t block, each_symbol *each, void *context)
{
	static char bytes[BLOCK * sizeof(Elf64_Sym)] __attribute__((aligned(8)));
	const struct symbol_table *table = &index->table;
	__u64 first = (__u64)block * BLOCK;
	size_t nr = table->nr - first < BLOCK ? table->nr - first : BLOCK;
	struct found_symbol symbol;

	if (!image_read(&index->image, bytes, nr * table->each, table->offset + first * table->each))
		return false;
	for (size_t i = 0; i < nr; i++)
		if (symbol_in_table(table, bytes, i, &symbol))
			each(context, &symbol, block);
	return true;
}

static bool read_all(struct symbol_index *index, each_symbol *each)
{
	for (size_t block = 0; block < nr_blocks(index); block++)
		if (!read_block(index, block, each, index))
			return false;
	return true;
}

/* --- making it ------------------------------------------------------------------------------------ */

static void note_limits(void *context, const struct found_symbol *symbol, size_t block)
{
	struct symbol_index *index = context;

	if (symbol->address < index->first)
		index->first = symbol->address;
	if (symbol->address > index->last)
		index->last = symbol->address;
}

static size_t stretch_of(const struct symbol_index *index, __u64 address)
{
	__u64 at = address < index->first ? 0 : (address - index->first) / index->width;

	return at < index->nr ? at : index->nr - 1;
}

static __u64 begin_of(const struct symbol_index *index, size_t stretch)
{
	return index->first + stretch * index->width;
}

static void note_stretches(void *context, const struct found_symbol *symbol, size_t block)
{
	struct symbol_index *index = context;
	size_t from = stretch_of(index, symbol->address);
	size_t to = symbol->end > symbol->address ? stretch_of(index, symbol->end - 1) : from;

	for (size_t at = from; at <= to; at++)
		index->bitmap[at * index->row + block / 8] |= 1 << block % 8;
}

static bool make_bitmap(struct symbol_index *index, size_t most)
{
	index->row = nr_blocks(index) / 8 + 1;
	if (most < sizeof(*index) + index->row)
		return false;
	index->nr = (most - sizeof(*index)) / index->row;
	if (index->nr > STRETCHES_MOST)
		index->nr = STRETCHES_MOST;
	index->width = (index->last - index->first) / index->nr + 1;
	index->bitmap = xcalloc(index->nr, index->row);
	return read_all(index, note_stretches);
}

struct symbol_index *symbol_index_open(const struct image *image, __u32 kind, bool data, size_t most)
{
	struct symbol_index *index;
	/* The image's own descriptor is closed where its DWARF is read. */
	int fd = image->fd >= 0 ? fcntl(image->fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (fd < 0)
		return NULL;
	index = xcalloc(1, sizeof(*index));
	index->first = -1;
	if (!image_from_file(&index->image, fd) &&
	    image_symbol_table(&index->image, kind, data, &index->table) && read_all(index, note_limits) &&
	    index->first <= index->last && make_bitmap(index, most))
		return index;
	symbol_index_close(index);
	return NULL;
}

void symbol_index_close(struct symbol_index *index)
{
	if (!index)
		return;
	symbol_table_release(&index->table);
	image_close(&index->image);
	free(index->bitmap);
	free(index);
}

size_t symbol_index_bytes(const struct symbol_index *index)
{
	return index ? sizeof(*index) + index->nr * index->row : 0;
}

/* --- looking up ----------------------------------------------------------------------------------- */

/*
 * The symbols that can decide about an address: the last one that contains it, and of those that begin at it
 * or before, the last with a size, the last without, and the last label. The latter two end where the next
 * symbol begins, and a label within another symbol is none: see symbols_finish().
 */
enum deciding { CONTAINING, SIZED, UNSIZED, LABEL, NR_DECIDING };

struct index_lookup {
	const struct symbol_index *index;
	__u64 address;
	__u64 latest; /* those that contain the address begin here at the latest */
	struct found_symbol found[NR_DECIDING];
	bool has[NR_DECIDING];
};

/* Reads a name from the file's strings; a few bytes at first, because most are short. The result is valid
 * until the same buffer, 0 or 1, is used again. */
static const char *read_name(const struct symbol_index *index, __u32 at, int buffer)
{
	static char names[2][NAME_MOST];
	size_t most = index->table.strings_size - at, got = 0;
	char *name = names[buffer];

	most = most < NAME_MOST - 1 ? most : NAME_MOST - 1;
	for (size_t more = NAME_AT_ONCE; got < most && memchr(name, '\0', got) == NULL; more = NAME_MOST) {
		size_t size = most - got < more ? most - got : more;

		if (!image_read(&index->image, name + got, size, index->table.strings + at + got))
			break;
		got += size;
	}
	name[got] = '\0';
	return name;
}

static bool is_better(const struct symbol_index *index, const struct found_symbol *symbol,
		      const struct found_symbol *than)
{
	return symbols_better(symbol, read_name(index, symbol->name, 0), than,
			      read_name(index, than->name, 1)) < 0;
}

static void consider_symbol(struct index_lookup *lookup, enum deciding as, const struct found_symbol *symbol)
{
	struct found_symbol *found = &lookup->found[as];

	if (lookup->has[as] &&
	    (symbol->address < found->address ||
	     (symbol->address == found->address && !is_better(lookup->index, symbol, found))))
		return;
	*found = *symbol;
	lookup->has[as] = true;
}

static void look_at_symbol(void *context, const struct found_symbol *symbol, size_t block)
{
	struct index_lookup *lookup = context;

	if (symbol->address > lookup->address)
		return;
	if (symbol->end > lookup->address && symbol->address <= lookup->latest)
		consider_symbol(lookup, CONTAINING, symbol);
	if (symbol->end > symbol->address)
		consider_symbol(lookup, SIZED, symbol);
	else
		consider_symbol(lookup, symbol->label ? LABEL : UNSIZED, symbol);
}

static void look_in_stretch(struct index_lookup *lookup, size_t stretch)
{
	const struct symbol_index *index = lookup->index;
	const __u8 *row = index->bitmap + stretch * index->row;

	for (size_t block = 0; block < nr_blocks(index); block++)
		if (row[block / 8] & 1 << block % 8)
			read_block(index, block, look_at_symbol, lookup);
}

/* Whether a symbol that is no label begins in the stretch or behind it: nothing without a size that begins
 * before it reaches the address, and all else has been found. */
static bool is_decided(const struct index_lookup *lookup, size_t stretch)
{
	for (enum deciding what = SIZED; what <= UNSIZED; what++)
		if (lookup->has[what] && lookup->found[what].address >= begin_of(lookup->index, stretch))
			return true;
	return false;
}

static void look_around(struct index_lookup *lookup)
{
	size_t at = stretch_of(lookup->index, lookup->address);

	look_in_stretch(lookup, at);
	while (at && !is_decided(lookup, at))
		look_in_stretch(lookup, --at);
}

static void add_found(const struct index_lookup *lookup, struct symbols *symbols)
{
	for (size_t i = 0; i < NR_DECIDING; i++) {
		struct found_symbol symbol = lookup->found[i];
		const char *name = lookup->has[i] ? read_name(lookup->index, symbol.name, 0) : NULL;
		long long at = name ? symbols_add_strings(symbols, name, strlen(name)) : -1;

		symbol.name = at;
		if (at >= 0)
			symbols_add(symbols, &symbol);
	}
}

static struct index_lookup look_up_address(const struct symbol_index *index, __u64 address, __u64 latest)
{
	struct index_lookup lookup = {.index = index, .address = address, .latest = latest};

	look_around(&lookup);
	return lookup;
}

/* Whether the symbol that contains the address is the one that is shown of all with a size where it begins.
 */
static bool is_shown(const struct index_lookup *lookup)
{
	__u64 begin = lookup->found[CONTAINING].address;
	struct index_lookup there;

	if (lookup->found[SIZED].address == begin)
		return lookup->found[SIZED].end > lookup->address;
	there = look_up_address(lookup->index, begin, begin);
	return there.has[SIZED] && there.found[SIZED].end > lookup->address;
}

/* Adds the symbols that can decide about an address; further ones that contain it, as long as a shorter one
 * is shown instead. */
static struct index_lookup decide(const struct symbol_index *index, __u64 address, struct symbols *symbols)
{
	struct index_lookup first = look_up_address(index, address, address), next = first;

	add_found(&first, symbols);
	while (next.has[CONTAINING] && !is_shown(&next)) {
		__u64 begin = next.found[CONTAINING].address;

		next = look_up_address(index, begin, begin);
		add_found(&next, symbols);
		if (!begin)
			break;
		next = look_up_address(index, address, begin - 1);
		add_found(&next, symbols);
	}
	return first;
}

static bool begins_last(const struct index_lookup *lookup, enum deciding what)
{
	return lookup->has[what] &&
	       !(lookup->has[CONTAINING] && lookup->found[CONTAINING].address >= lookup->found[what].address);
}

/* Ends symbols without a size: symbols_finish() asks for each that it keeps, in their order. */
struct unsized_ending {
	const struct image *image;
	__u64 address; /* that is looked up */
	__u64 *begin;  /* of the last of them at the address or before it */
};

static __u64 end_unsized(const void *of, const struct found_symbol *symbol)
{
	const struct unsized_ending *ending = of;

	if (symbol->address <= ending->address)
		*ending->begin = symbol->address;
	return image_end_of_code(ending->image, symbol);
}

struct indexed_symbol symbol_index_find(struct symbol_index *index, __u64 address)
{
	static char name[NAME_MOST];
	struct symbols symbols = {0};
	struct indexed_symbol found = {NULL};
	__u64 unsized = ~0ULL;
	const struct symbol *symbol;
	struct index_lookup lookup;

	if (address < index->first)
		return found;
	lookup = decide(index, address, &symbols);
	/* What else is where those without a size begin, and what a label is within. */
	for (enum deciding what = UNSIZED; what <= LABEL; what++)
		if (begins_last(&lookup, what))
			decide(index, lookup.found[what].address, &symbols);
	symbols_finish(&symbols, index->table.code ? end_unsized : NULL,
		       &(struct unsized_ending){&index->image, address, &unsized});
	symbol = symbols_find(&symbols, address);
	if (symbol)
		found = (struct indexed_symbol){strcpy(name, symbol_name(&symbols, symbol)), symbol->address,
						symbol->address == unsized};
	symbols_release(&symbols);
	return found;
}
