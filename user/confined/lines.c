// SPDX-License-Identifier: GPL-2.0-only
#include "confined/lines.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <elfutils/libdw.h>

#include "base/memory.h"
#include "confined/dwarf_image.h"
#include "confined/line_rows.h"
#include "confined/lines_inside.h"
#include "confined/split_unit.h"

/* A list of ranges while it is collected. */
struct ranges {
	struct span *list;
	size_t nr, room;
};

/* Counts a step of the work, which is limited to a few times the size of the DWARF, because entries may refer
 * to each other in any way. Returns false if no steps are left. */
static bool take_step(struct lines *lines, size_t bytes)
{
	lines->steps -= bytes < lines->steps ? bytes : lines->steps;
	return lines->steps;
}

/* Moves to the next sibling of this entry. If the entry has children and does not say where they end, libdw
 * walks through all of them again, so as many steps are counted as they have bytes. */
bool lines_next(struct lines *lines, Dwarf_Die *die)
{
	Dwarf_Off before = dwarf_dieoffset(die);
	bool known = dwarf_hasattr(die, DW_AT_sibling) || !dwarf_haschildren(die), any;

	if (!lines->steps)
		return false;
	any = !dwarf_siblingof(die, die);
	if (any && dwarf_dieoffset(die) > lines->furthest)
		lines->furthest = dwarf_dieoffset(die);
	return take_step(lines, known ? 1 : (any ? dwarf_dieoffset(die) : lines->furthest) - before) && any;
}

#define RANGE_STEPS	   4 /* a range takes more memory than space in the file */
#define RANGES_MOST(lines) ((lines)->most / (8 * sizeof(struct span)))

/* Adds all ranges of code that belong to an entry. Returns whether it has any. */
static bool add_ranges(struct lines *lines, struct ranges *ranges, Dwarf_Die *die, __u32 order, __u32 what)
{
	bool any = false, list = lines->within && dwarf_hasattr(die, DW_AT_ranges);
	Dwarf_Addr base, low, high;

	for (ptrdiff_t at = 0; ranges->nr < RANGES_MOST(lines) && take_step(lines, RANGE_STEPS) &&
			       (at = dwarf_ranges(die, at, &base, &low, &high)) > 0;) {
		/* libdw does not know where a unit of split DWARF begins. */
		__u64 from = list && !base ? lines->within->base : 0;

		low += from;
		high += from;
		ranges->list = xroom(ranges->list, ranges->nr, &ranges->room, sizeof(*ranges->list));
		ranges->list[ranges->nr++] = (struct span){low, high, order, what};
		any = true;
	}
	return any;
}

static void take_ranges(struct lines *lines, struct spans *spans, struct ranges *ranges)
{
	spans_make(spans, ranges->list, ranges->nr);
	lines->bytes += spans_bytes(spans);
	free(ranges->list);
}

/* --- references, which may leave the file or go in circles -------------------------------------- */

/* Whether an attribute refers to an alternate file that is not open. libdw would then open the file itself,
 * whatever path it names. */
static bool is_elsewhere(const struct lines *lines, const Dwarf_Die *of, Dwarf_Attribute *attribute)
{
	switch (dwarf_whatform(attribute)) {
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
	case DW_FORM_strp_sup:
		return !lines->alternate_dwarf || dwarf_cu_getdwarf(of->cu) != lines->dwarf;
	}
	return false;
}

const char *lines_text(const struct lines *lines, Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, name, &attribute) && !is_elsewhere(lines, die, &attribute)
		       ? dwarf_formstring(&attribute)
		       : NULL;
}

/* Go has blocks with a byte for their length, which libdw takes for no location since DWARF 4. A length below
 * 128 is the same byte in an expression. */
bool lines_location(Dwarf_Die *die, unsigned int name, Dwarf_Attribute *location)
{
	Dwarf_Block block;

	if (!dwarf_attr(die, name, location))
		return false;
	if (location->form == DW_FORM_block1 && !dwarf_formblock(location, &block) && block.length < 128)
		location->form = DW_FORM_exprloc;
	return true;
}

bool lines_follow(const struct lines *lines, Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Die next;

	if (!dwarf_attr(die, name, &attribute) || is_elsewhere(lines, die, &attribute) ||
	    !dwarf_formref_die(&attribute, &next))
		return false;
	*die = next;
	/* An entry may only stand for a type whose definition is in a unit of its own
	 * (-fdebug-types-section).
	 */
	if (dwarf_attr(die, DW_AT_signature, &attribute) && !is_elsewhere(lines, die, &attribute) &&
	    dwarf_formref_die(&attribute, &next))
		*die = next;
	return true;
}

#define HOPS_MOST 16 /* three are usual: an instance, its abstract form, its declaration */

static const char *function_name(const struct lines *lines, const Dwarf_Die *of)
{
	Dwarf_Die die = *of;
	const char *plain = NULL;

	for (int hops = 0; hops < HOPS_MOST; hops++) {
		const char *linkage = lines_text(lines, &die, DW_AT_linkage_name);

		if (!linkage)
			linkage = lines_text(lines, &die, DW_AT_MIPS_linkage_name);
		if (linkage)
			return linkage;
		if (!plain)
			plain = lines_text(lines, &die, DW_AT_name);
		if (!lines_follow(lines, &die, DW_AT_abstract_origin) &&
		    !lines_follow(lines, &die, DW_AT_specification))
			break;
	}
	return plain;
}

/* --- opening ---------------------------------------------------------------------------------- */

#define UNIT_BYTES    1500 /* libdw's own memory for a unit */
#define UNITS_AT_ONCE 100  /* the kernel maps some 64 KiB around what is read of each */

static struct split_place *new_split_place(struct lines *lines, const struct debug_folders *folders)
{
	struct split_place *where = xcalloc(1, sizeof(*where));

	where->place = *folders->place;
	where->open = folders->open;
	lines->image_bytes += sizeof(*where);
	lines->bytes += sizeof(*where);
	return where;
}

/* Gives back what reading has used of mapped files. */
static void rest_images(const struct lines *lines)
{
	image_rest(&lines->image);
	image_rest(&lines->alternate);
}

static void find_units(struct lines *lines, const struct debug_folders *folders)
{
	struct ranges ranges = {0};
	Dwarf_CU *cu = NULL;
	size_t nr_seen = 0;
	uint8_t type;
	Dwarf_Die die;

	while (lines->bytes <= lines->most &&
	       !dwarf_get_units(lines->dwarf, cu, &cu, NULL, &type, &die, NULL)) {
		lines->bytes += UNIT_BYTES;
		if (++nr_seen % UNITS_AT_ONCE == 0)
			rest_images(lines);
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		lines->units = xroom(lines->units, lines->nr, &lines->room, sizeof(*lines->units));
		lines->units[lines->nr] =
			(struct unit){.die = die, .inside = die, .skeleton = type == DW_UT_skeleton};
		if (type == DW_UT_skeleton && !lines->split)
			lines->split = new_split_place(lines, folders);
		add_ranges(lines, &ranges, &die, 0, lines->nr++);
	}
	lines->bytes += lines->room * sizeof(*lines->units);
	take_ranges(lines, &lines->spans, &ranges);
}

/* Opens the images' DWARF and finds its units. Returns false if there is none, or no room. */
static bool begin_units(struct lines *lines, const struct debug_folders *folders)
{
	lines->bytes = lines->image_bytes;
	lines->steps = lines->all_steps;
	if (lines->bytes <= lines->most)
		lines->dwarf = dwarf_open(&lines->image);
	if (!lines->dwarf)
		return false;
	if (lines->alternate.elf)
		lines->alternate_dwarf = dwarf_open(&lines->alternate);
	if (lines->alternate_dwarf)
		dwarf_setalt(lines->dwarf, lines->alternate_dwarf);
	find_units(lines, folders);
	rest_images(lines);
	lines->begun_bytes = lines->bytes;
	return lines->bytes <= lines->most;
}

static void release_calls(struct inlined_calls *calls)
{
	if (!calls)
		return;
	spans_release(&calls->spans);
	free(calls->list);
	free(calls);
}

static void release_unit(struct unit *unit)
{
	for (size_t i = 0; i < unit->nr; i++)
		release_calls(unit->functions[i].calls);
	free(unit->functions);
	spans_release(&unit->spans);
	spans_release(&unit->nested);
	if (unit->has_split)
		split_unit_close(&unit->split);
	for (int i = 0; i < 2; i++)
		spans_release(&unit->variable_spans[i]);
}

static void release_units(struct lines *lines)
{
	for (size_t i = 0; i < lines->nr; i++)
		release_unit(&lines->units[i]);
	free(lines->units);
	lines->units = NULL;
	lines->nr = lines->room = 0;
	spans_release(&lines->spans);
	dwarf_end(lines->dwarf);
	dwarf_end(lines->alternate_dwarf);
	lines->dwarf = lines->alternate_dwarf = NULL;
}

/* Forgets the units that were read, as libdw can't forget one, if they leave little room for another one.
 * Variables, which are searched in all units, stay. */
static void make_room(struct lines *lines)
{
	size_t room = lines->most - lines->begun_bytes;

	if (lines->looked_for_variables || lines->bytes - lines->begun_bytes < room / 2)
		return;
	release_units(lines);
	begin_units(lines, NULL);
}

struct lines *lines_open(struct image *image, struct image *alternate, const struct debug_folders *folders,
			 size_t most, bool *no_room)
{
	struct lines *lines = xcalloc(1, sizeof(*lines));

	lines->image = *image;
	lines->alternate = alternate ? *alternate : (struct image){.fd = -1};
	lines->image_bytes = sizeof(*lines) + dwarf_bytes(image) + (alternate ? dwarf_bytes(alternate) : 0);
	lines->most = most;
	lines->all_steps = 4 * (dwarf_size(image) + (alternate ? dwarf_size(alternate) : 0)) + 1000;
	if (begin_units(lines, folders))
		return lines;
	*no_room = lines->bytes > most;
	lines_close(lines);
	return NULL;
}

void lines_close(struct lines *lines)
{
	if (!lines)
		return;
	release_units(lines);
	free(lines->variables);
	free(lines->split_addresses);
	spans_release(&lines->variable_spans[0]);
	spans_release(&lines->variable_spans[1]);
	if (lines->split)
		split_place_release(lines->split);
	free(lines->split);
	image_close(&lines->image);
	image_close(&lines->alternate);
	free(lines);
}

bool lines_split(const struct lines *lines)
{
	return lines->split != NULL;
}

enum lines_lack lines_lack(const struct lines *lines)
{
	return lines->lack;
}

size_t lines_bytes(const struct lines *lines)
{
	return lines->bytes;
}

/* --- the functions of a unit -------------------------------------------------------------------- */

#define NESTED_MOST 1000 /* no compiler nests so deeply; a hostile file may: reading stops */

/* Goes to the first child of an entry at this depth. Returns false if there is none, or if no
 * steps are left. */
bool lines_descend(struct lines *lines, Dwarf_Die *in, Dwarf_Die *die, int depth)
{
	if (depth > NESTED_MOST)
		lines->steps = 0;
	if (!lines->steps || dwarf_child(in, die))
		return false;
	if (dwarf_dieoffset(die) > lines->furthest)
		lines->furthest = dwarf_dieoffset(die);
	return true;
}

static bool holds_functions(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

static bool holds_code(int tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

/* A walk through a unit for its functions: either those outside of other functions, or those within (OpenMP's
 * bodies, GNU C's nested functions, lambdas, methods of local classes). */
struct walk {
	struct unit *unit;
	struct ranges ranges;
	bool nested;
};

static void find_functions(struct lines *lines, struct walk *walk, Dwarf_Die *in, bool within, int depth)
{
	struct unit *unit = walk->unit;
	Dwarf_Die die;

	if (!lines_descend(lines, in, &die, depth))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (holds_functions(tag) || (walk->nested && holds_code(tag)))
			find_functions(lines, walk, &die, within || holds_code(tag), depth + 1);
		if (tag != DW_TAG_subprogram || within != walk->nested ||
		    !add_ranges(lines, &walk->ranges, &die, 0, unit->nr))
			continue;
		unit->functions = xroom(unit->functions, unit->nr, &unit->room, sizeof(*unit->functions));
		unit->functions[unit->nr++] = (struct inlined_function){.die = die};
	} while (lines_next(lines, &die));
}

static void take_functions(struct lines *lines, struct unit *unit, struct spans *spans, bool nested)
{
	struct walk walk = {unit, .nested = nested};
	size_t room = unit->room;

	lines->furthest = dwarf_dieoffset(&unit->inside);
	lines->within = unit->has_split ? unit : NULL;
	find_functions(lines, &walk, &unit->inside, false, 0);
	lines->within = NULL;
	lines->bytes += (unit->room - room) * sizeof(*unit->functions);
	take_ranges(lines, spans, &walk.ranges);
}

/* The number of the function at an address, or SPANS_NONE. The unit is walked through a second time only for
 * an address that is in none of the functions found first: that takes longer, and few are nested. */
static __u32 function_at(struct lines *lines, struct unit *unit, __u64 address)
{
	__u32 number = spans_find(&unit->spans, address);

	if (number != SPANS_NONE)
		return number;
	if (!unit->looked_inside)
		take_functions(lines, unit, &unit->nested, true);
	unit->looked_inside = true;
	return spans_find(&unit->nested, address);
}

/* libdw's own memory per row of the line table, and per file name. */
#define ROW_BYTES	    48
#define FILE_BYTES	    64
#define ROW_BYTES_MEANWHILE 100 /* per row, while libdw reads them */

/* Whether the unit's line table is small enough to be read. */
static bool bearable(const struct lines *lines, Dwarf_Die *unit)
{
	Dwarf_Attribute attribute;
	GElf_Shdr header;
	Elf_Scn *section;
	Elf_Data *data;
	Dwarf_Word at;
	__u32 size;

	if (!dwarf_attr(unit, DW_AT_stmt_list, &attribute) || dwarf_formudata(&attribute, &at))
		return false;
	section = image_section(&lines->image, ".debug_line", &header);
	if (!section)
		section = image_section(&lines->image, ".zdebug_line", &header);
	data = section ? elf_getdata(section, NULL) : NULL;
	if (!data || !data->d_buf || at > data->d_size || data->d_size - at < sizeof(size))
		return false;
	memcpy(&size, (char *)data->d_buf + at, sizeof(size));
	if (size > data->d_size - at - sizeof(size)) /* 64-bit DWARF, or invalid */
		size = data->d_size - at - sizeof(size);
	return line_rows((char *)data->d_buf + at, sizeof(size) + size) <= lines->most / ROW_BYTES_MEANWHILE;
}

void lines_open_unit(struct lines *lines, struct unit *unit)
{
	struct split_name name = {lines_text(lines, &unit->die, DW_AT_dwo_name)
					  ?: lines_text(lines, &unit->die, DW_AT_GNU_dwo_name),
				  lines_text(lines, &unit->die, DW_AT_comp_dir)};
	size_t left = lines->bytes < lines->most ? lines->most - lines->bytes : 0;
	Dwarf_Addr base;

	if (!unit->skeleton || unit->opened)
		return;
	unit->opened = true;
	unit->has_split = split_unit_open(&unit->split, &lines->image, &unit->die, &name, lines->split, left);
	if (!unit->has_split) {
		unit->lack = lines->split->lack;
		return;
	}
	unit->inside = unit->split.die;
	unit->base = dwarf_lowpc(&unit->die, &base) ? 0 : base;
	lines->bytes += unit->split.bytes + UNIT_BYTES;
}

static void look_at_unit(struct lines *lines, struct unit *unit)
{
	size_t nr_rows = 0, nr_files = 0;
	Dwarf_Lines *rows;

	unit->looked = true;
	lines_open_unit(lines, unit);
	lines->steps += unit->has_split ? 4 * unit->split.bytes : 0;
	if (bearable(lines, &unit->die))
		unit->rows = !dwarf_getsrclines(&unit->die, &rows, &nr_rows);
	else
		unit->lack = LINES_LARGE;
	/* Calls in a .dwo file name files by its own table, if it has one, otherwise by the program's. */
	if (!(unit->has_split && !dwarf_getsrcfiles(&unit->inside, &unit->files, &nr_files)) && unit->rows &&
	    dwarf_getsrcfiles(&unit->die, &unit->files, &nr_files))
		unit->files = NULL;
	unit->folder = lines_text(lines, &unit->die, DW_AT_comp_dir);
	lines->bytes += nr_rows * ROW_BYTES + nr_files * FILE_BYTES;
	take_functions(lines, unit, &unit->spans, false);
	rest_images(lines);
}

/* --- what is inlined in a function -------------------------------------------------------------- */

static void find_calls(struct lines *lines, struct inlined_calls *calls, struct ranges *ranges,
		       Dwarf_Die *in_die, __u32 in, int depth)
{
	Dwarf_Die die;

	if (!lines_descend(lines, in_die, &die, depth))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_inlined_subroutine) {
			__u32 number = calls->nr;

			calls->list = xroom(calls->list, calls->nr, &calls->room, sizeof(*calls->list));
			calls->list[calls->nr++] = (struct call){die, in};
			add_ranges(lines, ranges, &die, depth, number);
			find_calls(lines, calls, ranges, &die, number, depth + 1);
		} else if (tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
			   tag == DW_TAG_catch_block) {
			find_calls(lines, calls, ranges, &die, in, depth + 1);
		}
	} while (lines_next(lines, &die));
}

static struct inlined_calls *calls_of(struct lines *lines, const struct unit *unit,
				      struct inlined_function *function)
{
	struct ranges ranges = {0};

	if (function->calls)
		return function->calls;
	function->calls = xcalloc(1, sizeof(*function->calls));
	lines->furthest = dwarf_dieoffset(&function->die);
	lines->within = unit->has_split ? unit : NULL;
	find_calls(lines, function->calls, &ranges, &function->die, SPANS_NONE, 0);
	lines->within = NULL;
	lines->bytes += sizeof(*function->calls) + function->calls->room * sizeof(*function->calls->list);
	take_ranges(lines, &function->calls->spans, &ranges);
	return function->calls;
}

/* --- an address ------------------------------------------------------------------------------- */

static unsigned int number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;

	return dwarf_attr(die, name, &attribute) && !dwarf_formudata(&attribute, &number) ? number : 0;
}

static void set_file(const struct unit *unit, const char *file, struct source_place *place)
{
	if (file && !strcmp(file, "???")) /* libdw's name for an unknown file */
		file = NULL;
	place->file = file;
	place->folder = file && file[0] != '/' ? unit->folder : NULL;
}

static void set_row(const struct unit *unit, __u64 address, struct source_place *place)
{
	Dwarf_Die die = unit->die;
	Dwarf_Line *row = unit->rows ? dwarf_getsrc_die(&die, address) : NULL;
	int line;

	if (!row)
		return;
	set_file(unit, dwarf_linesrc(row, NULL, NULL), place);
	place->line = dwarf_lineno(row, &line) ? 0 : line;
}

/* Sets the place that the inlined function is called from, in the function around it. */
static void set_call(const struct unit *unit, struct call *call, struct source_place *place)
{
	Dwarf_Word file = number_of(&call->die, DW_AT_call_file);

	set_file(unit, unit->files ? dwarf_filesrc(unit->files, file, NULL, NULL) : NULL, place);
	place->line = number_of(&call->die, DW_AT_call_line);
}

static __u64 entry_of(Dwarf_Die *die)
{
	Dwarf_Addr entry;

	return dwarf_entrypc(die, &entry) ? 0 : entry;
}

size_t lines_find(struct lines *lines, __u64 address, struct source_place *places, size_t most)
{
	struct source_place place = {0};
	struct inlined_function *function;
	struct inlined_calls *calls;
	struct unit *unit;
	__u32 number, call;
	size_t nr = 0;

	make_room(lines);
	lines->lack = LINES_LACK_NOTHING;
	number = spans_find(&lines->spans, address);
	if (number == SPANS_NONE)
		return 0;
	unit = &lines->units[number];
	if (!unit->looked)
		look_at_unit(lines, unit);
	lines->lack = unit->lack;
	set_row(unit, address, &place);
	number = function_at(lines, unit, address);
	if (number == SPANS_NONE) {
		places[0] = place;
		return 1;
	}
	function = &unit->functions[number];
	calls = calls_of(lines, unit, function);
	for (call = spans_find(&calls->spans, address); call != SPANS_NONE; call = calls->list[call].in) {
		if (nr == most - 1) { /* drops the innermost */
			memmove(places, places + 1, (nr - 1) * sizeof(*places));
			nr--;
		}
		place.function = function_name(lines, &calls->list[call].die);
		places[nr++] = place;
		place = (struct source_place){0};
		set_call(unit, &calls->list[call], &place);
	}
	place.function = function_name(lines, &function->die);
	place.entry = entry_of(&function->die);
	places[nr++] = place;
	return nr;
}

bool lines_function(struct lines *lines, __u64 address, Dwarf_Die *die)
{
	__u32 number = spans_find(&lines->spans, address);
	struct unit *unit;

	if (number == SPANS_NONE)
		return false;
	unit = &lines->units[number];
	if (!unit->looked)
		look_at_unit(lines, unit);
	number = function_at(lines, unit, address);
	if (number == SPANS_NONE)
		return false;
	*die = unit->functions[number].die;
	return true;
}
