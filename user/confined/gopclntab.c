// SPDX-License-Identifier: GPL-2.0-only
/*
 * The format: Go's src/runtime/symtab.go (pcHeader, moduledata), runtime2.go (_func), and
 * src/cmd/link/internal/ld/pcln.go, which writes it. A table of functions leads to a struct _func each, and
 * that to a list of how far the stack pointer is from its value at the function's entry, by address.
 */
#include "confined/gopclntab.h"

#include <stdint.h>
#include <string.h>

#include "confined/unwind_rows.h"

/* The parts of the format that differ. Places of numbers are in bytes. Go 1.27 still writes that of 1.20. */
static const struct pclntab_layout {
	__u32 magic;
	bool relative; /* an address is a word of 4 bytes, from the beginning of the code; else one of 8 bytes
			*/
	__u8 text;     /* in the header: where the code begins; 0: nowhere */
	/* In the header: where each part begins. */
	__u8 names, units, files, lists, functions;
	__u8 flags; /* in struct _func */
} layouts[] = {
	{0xfffffffa, false, 0, 24, 32, 40, 48, 56, 41}, /* Go 1.16; 1.17 has the flags */
	{0xfffffff0, true, 24, 32, 40, 48, 56, 64, 37}, /* Go 1.18 */
	{0xfffffff1, true, 24, 32, 40, 48, 56, 64,
	 41}, /* Go 1.20; since 1.26 it does not have where the code begins */
};

#define HEADER_SIZE  72
#define NR_FUNCTIONS 8 /* in the header */

#define FUNCTION_BYTES 40 /* that a function takes at least in a linker's table */

/* In struct _func, behind the address. */
#define NAME	  0
#define DISTANCES 12
#define FILES	  16
#define LINES	  20
#define UNIT	  28

/* Its flags: Go's src/internal/abi/symtab.go, FuncFlag. */
#define TOP_FRAME 1 /* the stack's outermost function */
#define WRITES_SP 2 /* it goes on on another stack */
#define ASSEMBLER 4

/* What leads from a function to its caller. */
enum role {
	ROLE_FLAGS, /* what its flags say */
	ROLE_ORDINARY,
	ROLE_OUTERMOST, /* nothing */
	ROLE_SWITCHING, /* rbp, because the caller is on another stack */
	ROLE_RESTORER,	/* the kernel's frame of a signal */
};

/* Functions whose flags do not say it. */
static const struct {
	const char *name;
	enum role role;
} roles[] = {
	{"_rt0_amd64", ROLE_OUTERMOST},
	{"_rt0_amd64_linux", ROLE_OUTERMOST},
	{"runtime.asmcgocall", ROLE_SWITCHING},
	{"runtime.goexit", ROLE_OUTERMOST},
	{"runtime.mcall", ROLE_OUTERMOST}, /* its caller may already run again elsewhere */
	{"runtime.morestack", ROLE_OUTERMOST},
	{"runtime.mstart", ROLE_OUTERMOST},
	{"runtime.rt0_go", ROLE_OUTERMOST},
	{"runtime.sigreturn", ROLE_RESTORER},
	{"runtime.sigreturn__sigaction", ROLE_RESTORER},
	{"runtime.sigtramp", ROLE_ORDINARY}, /* outermost by its flags, but the kernel has called it */
	{"runtime.systemstack", ROLE_SWITCHING},
};

struct go_parser {
	struct unwind_rows *rows;
	const struct gopclntab *table;
	const struct pclntab_layout *layout;
	size_t names, units, files, lists, functions; /* offsets in the section */
	size_t nr;				      /* of functions */
};

struct go_function {
	__u64 begin, end;
	size_t distances; /* offset of its list; 0: none */
	bool assembled;
	enum role role;
	/* How it saves its caller's rbp, as far as known: the address of the instruction, and from which on
	 * it is done; where it is then, from rsp in the instruction or from the frame's address. */
	__u64 saves, saved;
	__s32 from_sp, from_frame;
	__u64 framed; /* the address from which on rbp is its own frame pointer; 0: it has none */
};

static __u64 number_at(const struct gopclntab *table, size_t at, size_t size)
{
	__u64 value = 0;

	if (at > table->size || size > table->size - at)
		return 0;
	memcpy(&value, table->bytes + at, size); /* little endian */
	return value;
}

static const struct pclntab_layout *layout_of(const unsigned char *bytes, size_t size)
{
	__u32 magic;

	if (size < HEADER_SIZE)
		return NULL;
	memcpy(&magic, bytes, sizeof(magic));
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].magic == magic && bytes[6] == 1 /* unit of code addresses, in bytes */ &&
		    bytes[7] == 8 /* size of a pointer */)
			return &layouts[i];
	return NULL;
}

#define ALIGNED 8

size_t gopclntab_find(const unsigned char *bytes, size_t size)
{
	struct gopclntab table;

	for (size_t at = 0; at < size; at += ALIGNED) {
		const struct pclntab_layout *layout = layout_of(bytes + at, size - at);

		table = (struct gopclntab){.bytes = bytes + at, .size = size - at};
		if (layout && number_at(&table, layout->names, 8) <= number_at(&table, layout->lists, 8) &&
		    number_at(&table, layout->lists, 8) <= number_at(&table, layout->functions, 8) &&
		    number_at(&table, layout->functions, 8) < table.size)
			return at;
	}
	return size;
}

size_t gopclntab_text_at(const unsigned char *bytes, size_t size)
{
	const struct pclntab_layout *layout = layout_of(bytes, size);

	return layout ? layout->text : 0;
}

/* --- the frame pointer -------------------------------------------------------------------------- */

/* The compiler's prologue is "sub $n, %rsp; mov %rbp, n-8(%rsp); lea n-8(%rsp), %rbp" up to Go 1.20, and
 * "push %rbp; mov %rsp, %rbp; sub $n, %rsp" since. `begin`: the address where the distance is no longer 0,
 * and there it is `distance`. rbp is the caller's up to the end of the first instruction thereafter. */
static void expect_saved(struct go_function *function, __u64 begin, __s64 distance)
{
	if (function->assembled || function->saved)
		return;
	function->saved = begin + (distance == 8 ? 3 : distance - 8 < 128 ? 5 : 8);
	function->from_frame = -16;
}

/* Bytes of an instruction that has (%rsp), 8 bits(%rsp) or 32 bits(%rsp), by its third byte; 0: another one.
 */
static size_t size_of_access(const unsigned char *code, __u8 opcode, __s32 *offset)
{
	*offset = 0;
	if (code[0] != 0x48 || code[1] != opcode || code[3] != 0x24)
		return 0;
	switch (code[2]) {
	case 0x2c:
		return 4;
	case 0x6c:
		*offset = (__s8)code[4];
		return 5;
	case 0xac:
		memcpy(offset, code + 4, sizeof(*offset));
		return 8;
	default:
		return 0;
	}
}

#define PROLOGUE_MOST 64
#define ACCESS_MOST   8

/* Looks for the instructions by which a function in assembler saves rbp: it may save it anywhere. */
static void find_saved(const struct gopclntab *table, struct go_function *function)
{
	unsigned char code[PROLOGUE_MOST + 2 * ACCESS_MOST] = {0};
	size_t want = function->end - function->begin, size;
	__s32 offset;

	size = table->code(table->context, function->begin, code,
			   want < PROLOGUE_MOST ? want : PROLOGUE_MOST);
	for (size_t i = 0; i < size; i++) {
		size_t saving = size_of_access(code + i, 0x89 /* mov %rbp, … */, &offset);

		if (saving) {
			size_t setting = size_of_access(code + i + saving, 0x8d /* lea …, %rbp */, &offset);

			size_of_access(code + i, 0x89, &function->from_sp);
			function->saves = function->begin + i;
			function->saved = function->saves + saving;
			function->framed = setting ? function->saved + setting : 0;
			return;
		}
		if (!memcmp(code + i, "\x55\x48\x89\xe5" /* push %rbp; mov %rsp, %rbp */, 4)) {
			function->saved = function->begin + i + 1;
			function->from_frame = -16;
			function->framed = function->begin + i + 4;
			return;
		}
	}
}

/* --- rows --------------------------------------------------------------------------------------- */

static struct unwind_rule rule_of(const struct go_function *function, __u64 address, __s64 distance)
{
	struct unwind_rule rule = {.frame = FRAME_SP, .offset = distance + 8};

	if (distance < 0 || distance % 8 || distance > 1 << 30)
		return (struct unwind_rule){.frame = FRAME_OTHER};
	if (function->role == ROLE_SWITCHING &&
	    (!function->framed || (distance && address >= function->framed)))
		return (struct unwind_rule){
			.frame = FRAME_SWITCH, .offset = 16, .bp = BP_AT_FRAME, .bp_offset = -16};
	if (distance && function->saved && address >= function->saved) {
		rule.bp_offset = function->from_frame;
		rule.bp = rule.bp_offset == function->from_frame ? BP_AT_FRAME : BP_LOST;
	}
	return rule;
}

/* Adds the rows of addresses with the same distance. */
static void add_rows(struct go_parser *parser, struct go_function *function, __u64 begin, __u64 end,
		     __s64 distance)
{
	__u64 at[] = {begin, 0, 0};
	struct unwind_rule rule;

	if (distance > 0)
		expect_saved(function, begin, distance);
	if (function->saves >= begin && function->saves < end)
		function->from_frame = function->from_sp - distance - 8;
	at[1] = function->saved;
	at[2] = function->framed;
	for (size_t i = 0; i < 3; i++) {
		if (at[i] < begin || at[i] >= end)
			continue;
		rule = rule_of(function, at[i], distance);
		unwind_rows_add(parser->rows, at[i], &rule);
	}
}

/* Reads a number of seven bits a byte, lowest first. Returns false at the section's end. */
static bool take_varint(const struct gopclntab *table, size_t *at, __u32 *value)
{
	*value = 0;
	for (unsigned int shift = 0; *at < table->size; shift += 7) {
		unsigned char byte = table->bytes[(*at)++];

		if (shift < 32)
			*value |= (__u32)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* A list of values by address: pairs of the difference to the former value, and of how many bytes of code it
 * holds for. */
struct values {
	size_t at;
	__u64 begin, end; /* what `value` holds for; `end` is also where the next one begins */
	__s64 value;
};

static struct values values_of(size_t list, __u64 begin)
{
	return (struct values){list, begin, begin, -1};
}

/* Goes to the next value. Returns false at the end of the list. */
static bool next_value(const struct gopclntab *table, struct values *values, bool first)
{
	__u32 step, bytes;

	if (!take_varint(table, &values->at, &step) || (!step && !first) ||
	    !take_varint(table, &values->at, &bytes) || !bytes)
		return false;
	values->value += step & 1 ? -(__s64)(step >> 1) - 1 : (__s64)(step >> 1);
	values->begin = values->end;
	values->end += bytes;
	return true;
}

static void read_distances(struct go_parser *parser, struct go_function *function)
{
	struct values values = values_of(function->distances, function->begin);

	while (values.end < function->end &&
	       next_value(parser->table, &values, values.end == function->begin))
		add_rows(parser, function, values.begin,
			 values.end < function->end ? values.end : function->end, values.value);
	unwind_rows_cut(parser->rows, values.end < function->end ? values.end : function->end);
}

static void add_one_row(struct go_parser *parser, __u64 begin, __u64 end, int frame)
{
	struct unwind_rule rule = {.frame = frame};

	if (unwind_rows_function(parser->rows, begin, end))
		unwind_rows_add(parser->rows, begin, &rule);
}

static void add_function(struct go_parser *parser, struct go_function *function)
{
	switch (function->role) {
	case ROLE_OUTERMOST:
		add_one_row(parser, function->begin, function->end, FRAME_END);
		return;
	case ROLE_RESTORER: /* its first byte is a return address, which is looked up at the byte before */
		add_one_row(parser, function->begin - 1, function->end, FRAME_SIGNAL);
		return;
	default:
		if (!function->distances ||
		    !unwind_rows_function(parser->rows, function->begin, function->end))
			return;
		if (function->assembled)
			find_saved(parser->table, function);
		read_distances(parser, function);
	}
}

/* --- functions ---------------------------------------------------------------------------------- */

static enum role role_of_name(const struct gopclntab *table, size_t at)
{
	const char *name = (const char *)table->bytes + at;

	if (at >= table->size || !memchr(name, '\0', table->size - at))
		return ROLE_FLAGS;
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (!strcmp(roles[i].name, name))
			return roles[i].role;
	return ROLE_FLAGS;
}

static enum role role_of(const struct go_parser *parser, size_t name, __u8 flags)
{
	enum role role = role_of_name(parser->table, name);

	if (role != ROLE_FLAGS)
		return role;
	return flags & TOP_FRAME ? ROLE_OUTERMOST : flags & WRITES_SP ? ROLE_SWITCHING : ROLE_ORDINARY;
}

/* What the table says about a function, as it is there. */
struct go_entry {
	__u64 begin, end;
	__u32 name, distances, files, lines; /* offsets in their parts of the section */
	__u32 unit;			     /* the first of its files in the part of units */
	__u8 flags;
};

static struct go_entry entry_at(const struct go_parser *parser, size_t i)
{
	const struct gopclntab *table = parser->table;
	size_t word = parser->layout->relative ? 4 : 8, entry = parser->functions + 2 * word * i;
	size_t at = parser->functions + number_at(table, entry + word, word);
	__u64 text = parser->layout->relative ? table->text : 0;

	return (struct go_entry){.begin = text + number_at(table, entry, word),
				 .end = text + number_at(table, entry + 2 * word, word),
				 .name = number_at(table, at + word + NAME, 4),
				 .distances = number_at(table, at + word + DISTANCES, 4),
				 .files = number_at(table, at + word + FILES, 4),
				 .lines = number_at(table, at + word + LINES, 4),
				 .unit = number_at(table, at + word + UNIT, 4),
				 .flags = number_at(table, at + parser->layout->flags, 1)};
}

static void read_function(struct go_parser *parser, size_t i)
{
	struct go_entry entry = entry_at(parser, i);
	struct go_function function = {.begin = entry.begin,
				       .end = entry.end,
				       .distances = entry.distances ? parser->lists + entry.distances : 0};

	/* Rows have addresses of 32 bits. */
	if (function.end > parser->rows->high)
		function.end = parser->rows->high;
	function.role = role_of(parser, parser->names + entry.name, entry.flags);
	function.assembled = entry.flags & ASSEMBLER || function.role == ROLE_SWITCHING;
	if (function.end > function.begin)
		add_function(parser, &function);
}

/* Reads the header. Returns whether it leads into the section. */
static bool begin_parser(struct go_parser *parser, const struct gopclntab *table)
{
	const struct pclntab_layout *layout = layout_of(table->bytes, table->size);

	*parser = (struct go_parser){.table = table, .layout = layout};
	if (!layout)
		return false;
	parser->names = number_at(table, layout->names, 8);
	parser->units = number_at(table, layout->units, 8);
	parser->files = number_at(table, layout->files, 8);
	parser->lists = number_at(table, layout->lists, 8);
	parser->functions = number_at(table, layout->functions, 8);
	parser->nr = number_at(table, NR_FUNCTIONS, 8);
	return parser->names <= table->size && parser->lists <= table->size &&
	       parser->functions <= table->size &&
	       parser->nr <= (table->size - parser->functions) / (layout->relative ? 8 : 16);
}

void gopclntab_read(struct unwind_rows *rows, const struct gopclntab *table)
{
	size_t before = rows->nr_rows;
	struct go_parser parser;

	if (!begin_parser(&parser, table))
		return;
	parser.rows = rows;
	/* Functions may share a list of distances, but of a linker's table each takes FUNCTION_BYTES and
	 * more, and has few rows. */
	for (size_t i = 0; i < parser.nr && rows->nr_rows < before + table->size; i++)
		read_function(&parser, i);
}

/* --- names -------------------------------------------------------------------------------------- */

const char *gopclntab_names(const struct gopclntab *table, size_t *size)
{
	struct go_parser parser;
	__u64 next;

	*size = 0;
	if (!begin_parser(&parser, table))
		return NULL;
	/* The next part, that of the files, is the next in the header, too. */
	next = number_at(table, parser.layout->units, 8);
	if (next > parser.names && next <= table->size)
		*size = next - parser.names;
	return (const char *)table->bytes + parser.names;
}

void gopclntab_functions(const struct gopclntab *table,
			 void (*each)(void *context, __u64 begin, __u64 end, size_t name), void *context)
{
	struct go_parser parser;

	if (!begin_parser(&parser, table))
		return;
	/* So that a hostile table takes no more memory than a symbol table of its size. */
	for (size_t i = 0; i < parser.nr && i < table->size / FUNCTION_BYTES; i++) {
		struct go_entry entry = entry_at(&parser, i);

		if (entry.begin < entry.end)
			each(context, entry.begin, entry.end, entry.name);
	}
}

/* --- lines -------------------------------------------------------------------------------------- */

/* The last function that begins at or before an address. */
static struct go_entry find_entry(const struct go_parser *parser, __u64 address)
{
	size_t low = 0, high = parser->nr;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (entry_at(parser, middle).begin <= address)
			low = middle;
		else
			high = middle;
	}
	return entry_at(parser, low);
}

/* The value of a list at an address; -1: it has none. */
static __s64 value_at(const struct go_parser *parser, const struct go_entry *entry, __u32 list, __u64 address)
{
	struct values values = values_of(parser->lists + list, entry->begin);

	while (list && next_value(parser->table, &values, values.end == entry->begin))
		if (address < values.end)
			return values.value;
	return -1;
}

static const char *file_name(const struct go_parser *parser, __u32 unit, __u32 file)
{
	const struct gopclntab *table = parser->table;
	size_t at = parser->files + number_at(table, parser->units + 4 * ((size_t)unit + file), 4);
	const char *name = (const char *)table->bytes + at;

	return at < table->size && memchr(name, '\0', table->size - at) ? name : NULL;
}

bool gopclntab_line(const struct gopclntab *table, __u64 address, struct go_line *line)
{
	struct go_parser parser;
	struct go_entry entry;
	__s64 file, number;

	if (!begin_parser(&parser, table) || !parser.nr)
		return false;
	entry = find_entry(&parser, address);
	if (address < entry.begin || address >= entry.end)
		return false;
	file = value_at(&parser, &entry, entry.files, address);
	number = value_at(&parser, &entry, entry.lines, address);
	line->file = file >= 0 && file <= INT32_MAX ? file_name(&parser, entry.unit, file) : NULL;
	line->line = number > 0 ? number : 0;
	return line->file && line->file[0];
}
