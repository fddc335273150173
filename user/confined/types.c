// SPDX-License-Identifier: GPL-2.0-only
#include "confined/types.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "confined/lines_inside.h"
#include "naming/message.h"

#define HOPS_MOST  32	  /* types may refer to each other in circles */
#define STEPS_MOST 100000 /* of a lookup; a struct with as many members has none to be found */

static bool number_of(Dwarf_Die *die, unsigned int name, __u64 *number)
{
	Dwarf_Attribute attribute;
	Dwarf_Word word;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &word))
		return false;
	*number = word;
	return true;
}

/* --- types ------------------------------------------------------------------------------------- */

static bool is_qualifier(int tag)
{
	return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
	       tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type;
}

static bool is_aggregate(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

bool type_of_entry(const struct lines *lines, Dwarf_Die *die)
{
	for (int hops = 0; hops < HOPS_MOST; hops++) {
		if (lines_follow(lines, die, DW_AT_type))
			return true;
		if (!lines_follow(lines, die, DW_AT_abstract_origin) &&
		    !lines_follow(lines, die, DW_AT_specification))
			return false;
	}
	return false;
}

bool type_peel(const struct lines *lines, Dwarf_Die *type)
{
	for (int hops = 0; hops < HOPS_MOST; hops++) {
		if (!is_qualifier(dwarf_tag(type)))
			return true;
		if (!lines_follow(lines, type, DW_AT_type))
			return false;
	}
	return false;
}

bool type_is_same(const struct lines *lines, Dwarf_Die a, Dwarf_Die b)
{
	for (int hops = 0; hops < HOPS_MOST && type_peel(lines, &a) && type_peel(lines, &b); hops++) {
		if (a.addr == b.addr)
			return true;
		if (dwarf_tag(&a) != DW_TAG_pointer_type || dwarf_tag(&b) != DW_TAG_pointer_type ||
		    !lines_follow(lines, &a, DW_AT_type) || !lines_follow(lines, &b, DW_AT_type))
			return false;
	}
	return false;
}

static bool is_cplusplus(int language)
{
	return language == DW_LANG_C_plus_plus || language == DW_LANG_C_plus_plus_03 ||
	       language == DW_LANG_C_plus_plus_11 || language == DW_LANG_C_plus_plus_14;
}

static int language_of(Dwarf_Die *die)
{
	Dwarf_Die unit;

	return dwarf_diecu(die, &unit, NULL, NULL) ? dwarf_srclang(&unit) : 0;
}

bool type_is_go(Dwarf_Die die)
{
	return language_of(&die) == DW_LANG_Go;
}

/* The number of elements of an array, in all its dimensions; 0: it is open. */
static __u64 elements_of(struct lines *lines, Dwarf_Die *array)
{
	__u64 all = 1, number;
	Dwarf_Die die;

	if (!lines_descend(lines, array, &die, 0))
		return 0;
	do {
		if (dwarf_tag(&die) != DW_TAG_subrange_type)
			continue;
		if (!number_of(&die, DW_AT_count, &number)) {
			if (!number_of(&die, DW_AT_upper_bound, &number))
				return 0;
			number++;
		}
		if (__builtin_mul_overflow(all, number, &all))
			return 0;
	} while (lines_next(lines, &die));
	return all;
}

/* Bytes of a type; 0: not known, or an open array. libdw's own function would open alternate files. */
static __u64 size_of(struct lines *lines, Dwarf_Die type, int depth)
{
	__u64 size, nr;
	Dwarf_Die element;

	if (depth > HOPS_MOST || !type_peel(lines, &type))
		return 0;
	if (number_of(&type, DW_AT_byte_size, &size))
		return size;
	element = type;
	switch (dwarf_tag(&type)) {
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return sizeof(void *);
	case DW_TAG_array_type:
		nr = elements_of(lines, &type);
		size = lines_follow(lines, &element, DW_AT_type) ? size_of(lines, element, depth + 1) : 0;
		return __builtin_mul_overflow(nr, size, &size) ? 0 : size;
	}
	return 0;
}

__u64 type_size(struct lines *lines, const Dwarf_Die *type)
{
	return size_of(lines, *type, 0);
}

#define PAIR_MOST 16 /* bytes of a class in C++, if it is no more than its members */
#define DATA_MOST 8  /* bytes of others, some of which are never returned in two registers */

bool type_is_in_register(struct lines *lines, Dwarf_Die type)
{
	__u64 size, convention;

	if (!type_peel(lines, &type))
		return false;
	if (!is_aggregate(dwarf_tag(&type)))
		return true;
	size = size_of(lines, type, 0);
	if (number_of(&type, DW_AT_calling_convention, &convention))
		return convention == DW_CC_pass_by_value && size && size <= PAIR_MOST;
	return size && size <= DATA_MOST && !is_cplusplus(language_of(&type));
}

/* --- texts ------------------------------------------------------------------------------------- */

static void add_text(char *text, const char *more)
{
	size_t used = strlen(text);

	snprintf(text + used, TYPE_TEXT - used, "%s", more);
}

/* Leaves out what is behind such a bracket. */
static void add_until(char *text, const char *more, char bracket)
{
	const char *end = strchr(more, bracket);
	size_t used = strlen(text);

	snprintf(text + used, TYPE_TEXT - used, "%.*s%s", end ? (int)(end - more) : TYPE_TEXT, more,
		 end ? "{...}" : "");
}

/* The name of an entry; NULL if it has none, or an empty one, as any file may have. */
static const char *name_of(const struct lines *lines, Dwarf_Die *die)
{
	const char *name = lines_text(lines, die, DW_AT_name);

	return name && *name ? name : NULL;
}

static const char *word_of(int tag)
{
	return tag == DW_TAG_structure_type	? "struct "
	       : tag == DW_TAG_class_type	? "class "
	       : tag == DW_TAG_union_type	? "union "
	       : tag == DW_TAG_enumeration_type ? "enum "
						: "";
}

static void add_type(struct lines *lines, Dwarf_Die type, char *text, int depth)
{
	const char *alias = NULL, *name;
	int tag;

	/* A typedef's name says more than that of a number, and stands for a struct without a name. */
	for (int hops = 0; hops < HOPS_MOST && is_qualifier(dwarf_tag(&type)); hops++) {
		if (!alias && dwarf_tag(&type) == DW_TAG_typedef)
			alias = name_of(lines, &type);
		if (!lines_follow(lines, &type, DW_AT_type)) {
			add_text(text, alias ? alias : "void");
			return;
		}
	}
	tag = dwarf_tag(&type);
	name = name_of(lines, &type);
	if (alias && (!name || !*word_of(tag))) {
		add_text(text, alias);
	} else if (name &&
		   type_is_go(type)) { /* its whole text: "*main.node", "[]int", "struct { x int; … }" */
		add_until(text, name, '{');
	} else if (tag == DW_TAG_pointer_type || tag == DW_TAG_array_type || tag == DW_TAG_reference_type) {
		if (lines_follow(lines, &type, DW_AT_type) && depth < HOPS_MOST)
			add_type(lines, type, text, depth + 1);
		else
			add_text(text, "void");
		add_text(text, tag == DW_TAG_array_type ? "[]" : tag == DW_TAG_pointer_type ? "*" : "&");
	} else if (tag == DW_TAG_subroutine_type) {
		add_text(text, "function");
	} else {
		add_text(text, word_of(tag));
		/* What stands for a type in another unit has no name, but the type may have one. */
		add_text(text, name				       ? name
			       : dwarf_hasattr(&type, DW_AT_signature) ? "(unknown)"
								       : "(unnamed)");
	}
}

/* --- fields ------------------------------------------------------------------------------------ */

/* A member, and the bytes that it takes in its struct. */
struct part {
	Dwarf_Die die, type;
	const char *name; /* NULL: an unnamed struct or union, or a base class */
	__u64 begin, size;
	bool bits; /* a bit-field: the bytes are those of its unit */
	bool open; /* an array without a length, at the end */
};

static bool is_empty(struct lines *lines, Dwarf_Die type, int depth);

static bool read_part(struct lines *lines, Dwarf_Die *die, struct part *part, int depth)
{
	int tag = dwarf_tag(die);
	__u64 bit;

	if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || dwarf_hasattr(die, DW_AT_external) ||
	    dwarf_hasattr(die, DW_AT_declaration))
		return false;
	*part = (struct part){.die = *die, .type = *die};
	if (!type_of_entry(lines, &part->type))
		return false;
	part->name = tag == DW_TAG_member ? name_of(lines, die) : NULL;
	part->size = size_of(lines, part->type, 0);
	part->bits = dwarf_hasattr(die, DW_AT_bit_size);
	/* An offset that is not a constant, as of a virtual base class, can't be told. */
	if (dwarf_hasattr(die, DW_AT_data_member_location) &&
	    !number_of(die, DW_AT_data_member_location, &part->begin))
		return false;
	if (part->bits && part->size && number_of(die, DW_AT_data_bit_offset, &bit))
		part->begin = bit / 8 / part->size * part->size;
	part->open =
		!part->size && type_peel(lines, &part->type) && dwarf_tag(&part->type) == DW_TAG_array_type;
	return (part->size || part->open) && !(part->size == 1 && is_empty(lines, part->type, depth));
}

/* A class without members has a size of one byte, but as a base class, or as a member that need not have an
 * address of its own, it shares its place with what is there. */
static bool is_empty(struct lines *lines, Dwarf_Die type, int depth)
{
	struct part inside;
	Dwarf_Die die;

	if (depth > HOPS_MOST || !type_peel(lines, &type) || !is_aggregate(dwarf_tag(&type)) ||
	    dwarf_hasattr(&type, DW_AT_declaration))
		return false;
	if (!lines_descend(lines, &type, &die, 0))
		return true;
	do {
		if (dwarf_tag(&die) == DW_TAG_variant_part || read_part(lines, &die, &inside, depth + 1))
			return false;
	} while (lines_next(lines, &die));
	return true;
}

static bool covers_offset(const struct part *part, __u64 offset)
{
	return offset >= part->begin && (part->open || offset - part->begin < part->size);
}

static void add_name(char *field, const char *name)
{
	if (*field)
		add_text(field, ".");
	add_text(field, name);
}

/* What was found at an offset among the members of a struct. */
struct parts_there {
	struct part first;
	size_t nr;
	bool bits;
	char names[TYPE_TEXT]; /* "a|b" */
};

/* In a struct, a member that is no bit-field is the only one; bit-fields share their unit. In a union, and in
 * what may be one of several variants, all share. */
static void add_part(struct parts_there *found, const struct part *part, bool shared)
{
	/* What is behind an open array's begin belongs to a member only if that is none. */
	if (found->nr && (part->open || (part->bits && !found->bits)) && !shared)
		return;
	if (found->nr && !shared && (!part->bits || !found->bits))
		*found = (struct parts_there){.nr = 0};
	if (!found->nr)
		found->first = *part;
	found->bits = part->bits;
	add_text(found->names, found->nr++ ? "|" : "");
	add_text(found->names, part->name ? part->name : "(unnamed)");
}

static void find_variants(struct lines *lines, Dwarf_Die *of, __u64 offset, struct parts_there *found,
			  int depth);

static void find_parts_in(struct lines *lines, Dwarf_Die *of, __u64 offset, struct parts_there *found,
			  int depth)
{
	bool shared = dwarf_tag(of) == DW_TAG_union_type;
	struct part part;
	Dwarf_Die die;

	*found = (struct parts_there){.nr = 0};
	if (depth > HOPS_MOST || !lines_descend(lines, of, &die, 0))
		return;
	do {
		if (dwarf_tag(&die) == DW_TAG_variant_part)
			find_variants(lines, &die, offset, found, depth);
		else if (read_part(lines, &die, &part, 0) && covers_offset(&part, offset))
			add_part(found, &part, shared);
	} while (lines_next(lines, &die));
}

/* Adds the data of those variants, as an enum of Rust has them, that have something at the offset. */
static void find_variant(struct lines *lines, Dwarf_Die *variant, __u64 offset, struct parts_there *found,
			 int depth)
{
	struct parts_there inside;
	struct part part;
	Dwarf_Die die;

	if (!lines_descend(lines, variant, &die, 0))
		return;
	do {
		if (!read_part(lines, &die, &part, 0) || !covers_offset(&part, offset) ||
		    !type_peel(lines, &part.type))
			continue;
		find_parts_in(lines, &part.type, offset - part.begin, &inside, depth + 1);
		if (inside.nr || !is_aggregate(dwarf_tag(&part.type)))
			add_part(found, &part, true);
	} while (lines_next(lines, &die));
}

/* What tells the variants apart may be within the data of one. Where it is not, it is a number of its own. */
static void find_variants(struct lines *lines, Dwarf_Die *of, __u64 offset, struct parts_there *found,
			  int depth)
{
	struct part which = {.size = 0}, part;
	size_t before = found->nr;
	Dwarf_Die die;

	if (!lines_descend(lines, of, &die, 0))
		return;
	do {
		if (dwarf_tag(&die) == DW_TAG_variant)
			find_variant(lines, &die, offset, found, depth);
		else if (read_part(lines, &die, &part, 0) && covers_offset(&part, offset))
			which = part;
	} while (lines_next(lines, &die));
	if (found->nr == before && which.size)
		add_part(found, &which, false);
}

/* Finds what is at an offset of a struct or union. */
static void find_parts(struct lines *lines, Dwarf_Die *of, __u64 offset, struct parts_there *found)
{
	find_parts_in(lines, of, offset, found, 0);
}

/* Whether what is beyond a struct is of the open array at its end. */
static bool ends_openly(struct lines *lines, Dwarf_Die *of, __u64 offset)
{
	struct parts_there found;

	find_parts(lines, of, offset, &found);
	return found.nr == 1 && found.first.open;
}

static void add_field(struct lines *lines, Dwarf_Die type, __u64 offset, char *field, int depth);

/* Adds what each member of a union has at an offset: "pair.low|number". */
static void add_alternatives(struct lines *lines, Dwarf_Die *of, __u64 offset, char *field, int depth)
{
	char all[TYPE_TEXT] = "";
	struct part part;
	Dwarf_Die die;

	if (!lines_descend(lines, of, &die, 0))
		return;
	do {
		char one[TYPE_TEXT] = "";

		if (!read_part(lines, &die, &part, 0) || !covers_offset(&part, offset))
			continue;
		if (part.name)
			add_name(one, part.name);
		add_field(lines, part.type, offset - part.begin, one, depth + 1);
		add_text(all, *all ? "|" : "");
		add_text(all, *one ? one : "(unnamed)");
	} while (lines_next(lines, &die));
	add_name(field, all);
}

/* Adds the names of the members that lead to the byte at an offset. */
static void add_field(struct lines *lines, Dwarf_Die type, __u64 offset, char *field, int depth)
{
	for (; depth < HOPS_MOST && type_peel(lines, &type); depth++) {
		int tag = dwarf_tag(&type);
		struct parts_there found;
		__u64 size;

		if (tag == DW_TAG_array_type) {
			if (!lines_follow(lines, &type, DW_AT_type))
				return;
			size = size_of(lines, type, 0);
			offset = size ? offset % size : 0;
			add_text(field, "[]");
			continue;
		}
		if (!is_aggregate(tag))
			return;
		find_parts(lines, &type, offset, &found);
		if (!found.nr)
			return;
		if (found.nr > 1 && tag == DW_TAG_union_type) {
			add_alternatives(lines, &type, offset, field, depth);
			return;
		}
		if (found.nr > 1 || found.bits) {
			add_name(field, found.names);
			return;
		}
		if (found.first.name)
			add_name(field, found.first.name);
		offset -= found.first.begin;
		type = found.first.type;
	}
}

/* An entry that only announces a type leads nowhere: its definition is in another unit. */
static const char *look_up_field(struct lines *lines, Dwarf_Die type, __u64 offset, struct typed *typed)
{
	Dwarf_Die element = type;
	bool array;
	__u64 size;

	if (!type_peel(lines, &element))
		return TYPE_INCOMPLETE;
	array = dwarf_tag(&element) == DW_TAG_array_type;
	/* Of an array of structs, the struct; of another one, the array. */
	for (int hops = 0; hops < HOPS_MOST && dwarf_tag(&element) == DW_TAG_array_type; hops++)
		if (!lines_follow(lines, &element, DW_AT_type) || !type_peel(lines, &element))
			return TYPE_INCOMPLETE;
	*typed = (struct typed){.type = ""};
	if (!is_aggregate(dwarf_tag(&element))) {
		add_type(lines, type, typed->type, 0);
		return NULL;
	}
	size = size_of(lines, element, 0);
	if (!size)
		return TYPE_INCOMPLETE;
	/* The element's own typedef is kept, for a struct without a name. */
	for (int hops = 0; hops < HOPS_MOST; hops++) {
		element = type;
		if (!type_peel(lines, &element) || dwarf_tag(&element) != DW_TAG_array_type)
			break;
		type = element;
		if (!lines_follow(lines, &type, DW_AT_type))
			break;
	}
	add_type(lines, type, typed->type, 0);
	add_field(lines, type, array ? offset % size : offset, typed->field, 0);
	return NULL;
}

__u64 type_stride(struct lines *lines, const Dwarf_Die *type)
{
	__u64 size = type_size(lines, type);
	Dwarf_Die whole = *type;

	return type_peel(lines, &whole) && is_aggregate(dwarf_tag(&whole)) && ends_openly(lines, &whole, size)
		       ? 0
		       : size;
}

const char *type_of_field(struct lines *lines, Dwarf_Die *type, __u64 offset, struct typed *typed)
{
	size_t steps = lines->steps;
	const char *why;

	/* Lookups must not use up the steps that lines need. */
	lines->steps = STEPS_MOST;
	lines->furthest = dwarf_dieoffset(type);
	why = look_up_field(lines, *type, offset, typed);
	lines->steps = steps;
	return why;
}

const char *type_of_pointed(struct lines *lines, Dwarf_Die *type, __u64 offset, struct typed *typed)
{
	Dwarf_Die whole = *type;

	/* Beyond a struct there may be another one of its kind, or what it is the first member of. */
	if (type_peel(lines, &whole) && is_aggregate(dwarf_tag(&whole))) {
		__u64 size = size_of(lines, whole, 0);

		if (!size)
			return TYPE_INCOMPLETE;
		if (offset >= size && !ends_openly(lines, &whole, offset))
			return TYPE_NO_POINTER;
	}
	return type_of_field(lines, type, offset, typed);
}

void type_of_pointer(struct lines *lines, const Dwarf_Die *type, struct typed *typed)
{
	bool go = type_is_go(*type);

	*typed = (struct typed){.type = ""};
	add_text(typed->type, go ? "*" : "");
	add_type(lines, *type, typed->type, 0);
	add_text(typed->type, go ? "" : "*");
}

void type_add_field(struct typed *typed, const char *field)
{
	add_text(typed->field, "|");
	add_text(typed->field, field);
}

const char *type_of_begin(struct lines *lines, Dwarf_Die *type, __u64 offset)
{
	for (int depth = 0; depth < HOPS_MOST && type_peel(lines, type); depth++) {
		struct parts_there found;
		__u64 size;

		if (dwarf_tag(type) == DW_TAG_array_type) {
			if (!lines_follow(lines, type, DW_AT_type) || !(size = size_of(lines, *type, 0)))
				return TYPE_INCOMPLETE;
			offset %= size;
			continue;
		}
		if (!is_aggregate(dwarf_tag(type)))
			return offset ? TYPE_NO_POINTER : NULL;
		find_parts(lines, type, offset, &found);
		if (found.nr != 1 || found.bits)
			return TYPE_NO_POINTER;
		offset -= found.first.begin;
		*type = found.first.type;
	}
	return TYPE_INCOMPLETE;
}

bool type_is_empty(struct lines *lines, Dwarf_Die type)
{
	return is_empty(lines, type, 0);
}

/* Whether an array of bytes has room for data of a type: containers keep theirs in such. */
static bool is_room(struct lines *lines, const Dwarf_Die *array, Dwarf_Die element, __u64 offset,
		    Dwarf_Die part)
{
	__u64 room = size_of(lines, *array, 0), size = size_of(lines, part, 0);

	return type_peel(lines, &element) && dwarf_tag(&element) == DW_TAG_base_type &&
	       size_of(lines, element, 0) == 1 && size && offset <= room && size <= room - offset;
}

bool type_has_at(struct lines *lines, Dwarf_Die whole, __u64 offset, Dwarf_Die part)
{
	for (int depth = 0; depth < HOPS_MOST && type_peel(lines, &whole); depth++) {
		struct parts_there found;
		Dwarf_Die element = whole;

		if (!offset && type_is_same(lines, whole, part))
			return true;
		if (dwarf_tag(&whole) == DW_TAG_array_type)
			return lines_follow(lines, &element, DW_AT_type) &&
			       is_room(lines, &whole, element, offset, part);
		if (!is_aggregate(dwarf_tag(&whole)))
			return false;
		find_parts(lines, &whole, offset, &found);
		if (found.nr != 1 || found.bits)
			return false;
		offset -= found.first.begin;
		whole = found.first.type;
	}
	return false;
}

/* A type that a class has a name for, or has one for pointers to it. */
static bool named_type(struct lines *lines, Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_typedef && type_peel(lines, die) &&
	       (dwarf_tag(die) != DW_TAG_pointer_type || lines_follow(lines, die, DW_AT_type)) &&
	       type_peel(lines, die) && is_aggregate(dwarf_tag(die));
}

/* By the end of its name, before template arguments: compilers leave out what else an iterator has to have,
 * such as iterator_category. A class that has iterators, such as a pool of them, is none. */
static bool is_iterator(const struct lines *lines, Dwarf_Die *type)
{
	static const char end[] = "iterator";
	const char *name = is_aggregate(dwarf_tag(type)) ? lines_text(lines, type, DW_AT_name) : NULL;
	size_t length = name ? strcspn(name, "<") : 0;

	return length >= strlen(end) && !strncmp(name + length - strlen(end), end, strlen(end));
}

void type_of_derived(struct lines *lines, Dwarf_Die of, Dwarf_Die *base)
{
	Dwarf_Die die, found = *base, type;
	__u64 size = size_of(lines, *base, 0);

	if (!size || !type_peel(lines, &of) || !is_iterator(lines, &of) ||
	    !lines_descend(lines, &of, &die, 0))
		return;
	do {
		type = die;
		if (!named_type(lines, &type) || size_of(lines, type, 0) <= size ||
		    !type_has_at(lines, type, 0, *base))
			continue;
		if (found.addr != base->addr && !type_is_same(lines, found, type))
			return;
		found = type;
	} while (lines_next(lines, &die));
	*base = found;
}

__u64 type_element(struct lines *lines, Dwarf_Die type, __u64 offset)
{
	for (int depth = 0; depth < HOPS_MOST && type_peel(lines, &type); depth++) {
		struct parts_there found;
		__u64 size;

		if (dwarf_tag(&type) == DW_TAG_array_type) {
			size = lines_follow(lines, &type, DW_AT_type) ? size_of(lines, type, 0) : 0;
			return offset < size ? size : 0;
		}
		if (!is_aggregate(dwarf_tag(&type)))
			return 0;
		find_parts(lines, &type, offset, &found);
		if (found.nr != 1 || found.bits)
			return 0;
		offset -= found.first.begin;
		type = found.first.type;
	}
	return 0;
}

/* --- variables --------------------------------------------------------------------------------- */

/* The constant that begins the location of a variable of threads: its place in each thread's copies. In split
 * DWARF it is in the program's table of addresses. */
static bool place_in_threads(Dwarf_Attribute *location, const Dwarf_Op *ops, size_t nr, __u64 *at)
{
	Dwarf_Attribute in_table;
	Dwarf_Word word;

	if (nr != 2 || (ops[1].atom != DW_OP_GNU_push_tls_address && ops[1].atom != DW_OP_form_tls_address))
		return false;
	if (ops[0].atom == DW_OP_constx || ops[0].atom == DW_OP_GNU_const_index) {
		if (dwarf_getlocation_attr(location, ops, &in_table) || dwarf_formudata(&in_table, &word))
			return false;
		*at = word;
		return true;
	}
	*at = ops[0].number;
	return ops[0].atom == DW_OP_const8u || ops[0].atom == DW_OP_const4u || ops[0].atom == DW_OP_addr;
}

/* The address of a variable that has the same one for all its life, or its place among those that each thread
 * has its own copy of. */
static bool fixed_address(Dwarf_Die *die, __u64 *address, bool *thread)
{
	Dwarf_Attribute attribute, of_address;
	Dwarf_Addr found;
	Dwarf_Op *ops;
	size_t nr;

	if (!lines_location(die, DW_AT_location, &attribute) || dwarf_getlocation(&attribute, &ops, &nr))
		return false;
	*thread = place_in_threads(&attribute, ops, nr, address);
	if (*thread || nr != 1)
		return *thread;
	if (ops[0].atom == DW_OP_addr) {
		*address = ops[0].number;
		return true;
	}
	if ((ops[0].atom != DW_OP_addrx && ops[0].atom != DW_OP_GNU_addr_index) ||
	    dwarf_getlocation_attr(&attribute, ops, &of_address) || dwarf_formaddr(&of_address, &found))
		return false;
	*address = found;
	return true;
}

struct found_variables {
	struct span *list;
	size_t nr, room;
};

/* `found`: those with addresses, and those of threads. */
static void add_variable(struct lines *lines, struct found_variables found[2], Dwarf_Die *die)
{
	Dwarf_Die type = *die;
	__u64 address, size;
	bool thread;

	if (!fixed_address(die, &address, &thread) || !type_of_entry(lines, &type))
		return;
	found += thread;
	size = size_of(lines, type, 0);
	if (!size || size > -1ULL - address)
		return;
	lines->variables = xroom(lines->variables, lines->nr_variables, &lines->room_variables,
				 sizeof(*lines->variables));
	found->list = xroom(found->list, found->nr, &found->room, sizeof(*found->list));
	found->list[found->nr++] = (struct span){address, address + size, 0, lines->nr_variables};
	lines->variables[lines->nr_variables++] = *die;
}

/* Variables of functions are among them: those that are static. */
static bool may_hold_variables(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_inlined_subroutine || tag == DW_TAG_module;
}

static void find_variables(struct lines *lines, struct found_variables found[2], Dwarf_Die *in, int depth)
{
	Dwarf_Die die;

	if (!lines_descend(lines, in, &die, depth))
		return;
	do {
		if (dwarf_tag(&die) == DW_TAG_variable)
			add_variable(lines, found, &die);
		else if (may_hold_variables(dwarf_tag(&die)))
			find_variables(lines, found, &die, depth + 1);
	} while (lines_next(lines, &die) && lines->bytes < lines->most);
}

static void make_spans(struct lines *lines, struct found_variables found[2], struct spans spans[2])
{
	for (int i = 0; i < 2; i++) {
		spans_make(&spans[i], found[i].list, found[i].nr);
		lines->bytes += spans_bytes(&spans[i]);
		free(found[i].list);
	}
}

/* Looks for the variables of all units that are in the file itself. */
static void look_for_variables(struct lines *lines)
{
	struct found_variables found[2] = {0};
	size_t steps = lines->steps;

	lines->steps = lines->all_steps;
	for (size_t i = 0; i < lines->nr; i++) {
		if (lines->units[i].skeleton)
			continue;
		lines->furthest = dwarf_dieoffset(&lines->units[i].inside);
		find_variables(lines, found, &lines->units[i].inside, 0);
	}
	lines->steps = steps;
	lines->bytes += lines->room_variables * sizeof(*lines->variables);
	make_spans(lines, found, lines->variable_spans);
}

/* --- variables in split DWARF ------------------------------------------------------------------ */

/* A program may have thousands of files with units, so those are opened that may have the variable: they
 * refer to its address by the program's table. */

#define OPENED_MOST 4	/* for a variable: each is asked for by up to three paths */
#define NEAR_MOST   256 /* addresses that are looked at for a variable */

struct table_part {
	__u64 begin;
	__u32 unit;
};

static int by_begin(const void *a, const void *b)
{
	const struct table_part *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int by_address(const void *a, const void *b)
{
	const struct split_address *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Units may share a part. */
static void add_addresses(struct lines *lines, const Elf_Data *table, const struct table_part *parts,
			  size_t nr)
{
	size_t room = 0, next = 0;

	for (size_t i = 0; i < nr; i++) {
		__u64 end = table->d_size;

		while (next < nr && parts[next].begin == parts[i].begin)
			next++;
		if (next < nr)
			end = parts[next].begin < end ? parts[next].begin : end;
		for (__u64 at = parts[i].begin;
		     at + sizeof(__u64) <= end && at < end &&
		     lines->nr_split_addresses < table->d_size / sizeof(__u64) + nr;
		     at += sizeof(__u64)) {
			struct split_address own = {.unit = parts[i].unit};

			memcpy(&own.address, (const char *)table->d_buf + at, sizeof(__u64));
			lines->split_addresses = xroom(lines->split_addresses, lines->nr_split_addresses,
						       &room, sizeof(*lines->split_addresses));
			lines->split_addresses[lines->nr_split_addresses++] = own;
		}
	}
	lines->bytes += room * sizeof(*lines->split_addresses);
	if (lines->nr_split_addresses)
		qsort(lines->split_addresses, lines->nr_split_addresses, sizeof(*lines->split_addresses),
		      by_address);
}

static void index_addresses(struct lines *lines)
{
	struct table_part *parts = xcalloc(lines->nr + 1, sizeof(*parts));
	size_t nr = 0, left = lines->bytes < lines->most ? lines->most - lines->bytes : 0;
	GElf_Shdr header;
	Elf_Scn *section = image_section(&lines->image, ".debug_addr", &header);
	Elf_Data *data;

	if (section && header.sh_flags & SHF_COMPRESSED)
		elf_compress(section, 0, 0);
	data = section ? elf_getdata(section, NULL) : NULL;
	for (size_t i = 0; i < lines->nr; i++)
		if (lines->units[i].skeleton)
			parts[nr++] = (struct table_part){split_addresses(&lines->units[i].die), i};
	if (nr && data && data->d_buf && data->d_size < left / sizeof(struct split_address)) {
		qsort(parts, nr, sizeof(*parts), by_begin);
		add_addresses(lines, data, parts, nr);
	}
	free(parts);
}

/* Looks for the variables of a unit in a file of its own. */
static void look_in_split(struct lines *lines, struct unit *unit)
{
	struct found_variables found[2] = {0};
	size_t steps = lines->steps, room = lines->room_variables;

	unit->looked_for_variables = true;
	lines_open_unit(lines, unit);
	if (!unit->has_split)
		return;
	lines->steps = 4 * unit->split.bytes;
	lines->furthest = dwarf_dieoffset(&unit->inside);
	find_variables(lines, found, &unit->inside, 0);
	lines->steps = steps;
	lines->bytes += (lines->room_variables - room) * sizeof(*lines->variables);
	make_spans(lines, found, unit->variable_spans);
}

/* Returns the number of the variable at the address, or SPANS_NONE. */
static __u32 find_in_split(struct lines *lines, bool thread, __u64 address)
{
	const struct split_address *list = lines->split_addresses;
	size_t at = FIRST_NOT(lines->nr_split_addresses, i, list[i].address <= address), opened = 0;

	for (size_t i = 0; i < NEAR_MOST && at > i; i++) {
		struct unit *unit = &lines->units[list[at - 1 - i].unit];
		__u32 number;

		if (!unit->looked_for_variables && opened++ == OPENED_MOST)
			break;
		if (!unit->looked_for_variables)
			look_in_split(lines, unit);
		number = spans_find(&unit->variable_spans[thread], address);
		if (number != SPANS_NONE)
			return number;
	}
	return SPANS_NONE;
}

static void need_variables(struct lines *lines)
{
	if (lines->looked_for_variables)
		return;
	lines->looked_for_variables = true;
	look_for_variables(lines);
	index_addresses(lines);
}

static const char *variable_of(struct lines *lines, bool thread, __u64 address, struct in_variable *found)
{
	__u64 begin = 0;
	__u32 number;

	need_variables(lines);
	number = spans_find(&lines->variable_spans[thread], address);
	if (number == SPANS_NONE)
		number = find_in_split(lines, thread, address);
	if (number == SPANS_NONE)
		return TYPE_UNDESCRIBED;
	*found = (struct in_variable){.die = lines->variables[number], .type = lines->variables[number]};
	fixed_address(&found->die, &begin, &thread);
	found->offset = address - begin;
	return type_of_entry(lines, &found->type) ? NULL : TYPE_UNDESCRIBED;
}

const char *variable_at(struct lines *lines, __u64 address, struct in_variable *found)
{
	return variable_of(lines, false, address, found);
}

const char *thread_variable_at(struct lines *lines, __u64 at, struct in_variable *found)
{
	return variable_of(lines, true, at, found);
}

/* By the variable that is the first of them. */
bool type_of_goroutine(struct lines *lines, Dwarf_Die *type)
{
	need_variables(lines);
	for (; lines->looked_for_g < lines->nr_variables && !lines->g.addr; lines->looked_for_g++) {
		Dwarf_Die *die = &lines->variables[lines->looked_for_g];
		const char *name = lines_text(lines, die, DW_AT_name);

		if (name && !strcmp(name, "runtime.g0"))
			lines->g = *die;
	}
	*type = lines->g;
	return lines->g.addr && type_of_entry(lines, type);
}

/* The name that the source has for an entry, which may be a copy of another one. */
static const char *name_in_source(const struct lines *lines, Dwarf_Die die)
{
	for (int hops = 0; hops < HOPS_MOST; hops++) {
		const char *name = name_of(lines, &die);

		if (name)
			return name;
		if (!lines_follow(lines, &die, DW_AT_abstract_origin) &&
		    !lines_follow(lines, &die, DW_AT_specification))
			break;
	}
	return NULL;
}

void type_name_variable(const struct lines *lines, const struct in_variable *in, bool indexed,
			struct typed *typed)
{
	const char *name = in->die.addr ? name_in_source(lines, in->die) : NULL;
	const char *function = in->function.addr ? name_in_source(lines, in->function) : NULL;

	if (name)
		snprintf(typed->variable, TYPE_TEXT, "%s%s%s", function ? function : "", function ? "::" : "",
			 name);
	typed->offset = in->offset;
	typed->indexed = indexed;
}

const char *type_of_variable(struct lines *lines, __u64 address, struct typed *typed)
{
	struct in_variable in;
	const char *why = variable_at(lines, address, &in);

	return why ? why : type_of_field(lines, &in.type, in.offset, typed);
}
