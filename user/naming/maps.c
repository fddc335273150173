// SPDX-License-Identifier: GPL-2.0-only
#include "naming/maps.h"

#include <emmintrin.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/piped.h"

/* Zero bytes behind a text, so that line_end() may look at as many bytes at once. */
#define TEXT_TAIL sizeof(__m128i)

#define TEXT_USUAL (1UL << 16)

/* Reads the whole text and adds TEXT_TAIL zero bytes; xmalloc()ed, with room left. `room`: what is probably
 * enough for it. Returns NULL if it can't be read or is longer than `most`. */
static char *read_text(int fd, size_t room, size_t most, size_t *size)
{
	char *text = xmalloc(room);
	ssize_t got;

	*size = 0;
	while ((got = read(fd, text + *size, room - TEXT_TAIL - *size)) > 0 || (got < 0 && errno == EINTR)) {
		*size += got > 0 ? got : 0;
		if (*size >= most)
			break;
		if (room - TEXT_TAIL - *size < room / 4)
			text = xrealloc(text, room *= 2);
	}
	close(fd);
	if (!got) {
		memset(text + *size, 0, TEXT_TAIL);
		return text;
	}
	free(text);
	return NULL;
}

/* The values of hex digits, plus 1. */
static const unsigned char digits[256] = {
	['0'] = 1,  ['1'] = 2,	['2'] = 3,  ['3'] = 4,	['4'] = 5,  ['5'] = 6,	['6'] = 7,  ['7'] = 8,
	['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
	['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

#define DIGITS	     16 /* of an address as the kernel writes it */
#define DIGITS_ALIKE 12 /* that most symbols have in common with the one before */

/* The first digits of the address before, and their number. */
struct address_before {
	char digits[DIGITS_ALIKE];
	__u64 number;
};

/* Reads four hex digits. Returns false if the text begins with others. */
static bool four_digits(const char *text, __u64 *number)
{
	const unsigned char *at = (const unsigned char *)text;
	unsigned int a = digits[at[0]], b = digits[at[1]], c = digits[at[2]], d = digits[at[3]];

	*number = (a << 12) + (b << 8) + (c << 4) + d - 0x1111; /* `digits` has values plus 1 */
	return a && b && c && d;
}

static bool read_first(struct address_before *before, const char *text)
{
	__u64 a, b, c;

	if (!four_digits(text, &a) || !four_digits(text + 4, &b) || !four_digits(text + 8, &c))
		return false;
	memcpy(before->digits, text, DIGITS_ALIKE);
	before->number = a << 32 | b << 16 | c;
	return true;
}

/* Reads an address of DIGITS digits and a blank. `end`: the end of the text. */
static bool take_address(struct address_before *before, char **at, const char *end, __u64 *number)
{
	__u64 low;

	if (end - *at <= DIGITS || (*at)[DIGITS] != ' ')
		return false;
	if (memcmp(*at, before->digits, DIGITS_ALIKE) && !read_first(before, *at))
		return false;
	if (!four_digits(*at + DIGITS_ALIKE, &low))
		return false;
	*number = before->number << 16 | low;
	*at += DIGITS + 1;
	return true;
}

/* Reads the hex number at *at, and moves *at after it and the blanks that follow. Returns false if there is
 * none. strtoull(3) took more than a third of the time that kallsyms takes. */
static bool take_hex(char **at, __u64 *number)
{
	char *end = *at;
	__u64 value = 0;
	unsigned int digit;

	if (end[0] == '0' && (end[1] == 'x' || end[1] == 'X'))
		end += 2;
	if (!digits[(unsigned char)*end])
		return false;
	for (; (digit = digits[(unsigned char)*end]); end++)
		value = value << 4 | (digit - 1);
	*number = value;
	if (*end != ' ' && *end != '\t')
		return false;
	while (*end == ' ' || *end == '\t')
		end++;
	*at = end;
	return true;
}

/* The first newline or zero byte from `at` on. The text's lines are short, so a call of strchrnul(3) for each
 * would cost more than to look for it. */
static char *line_end(char *at)
{
	for (;; at += sizeof(__m128i)) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)at);
		__m128i ends = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')),
					    _mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
		unsigned int found = _mm_movemask_epi8(ends);

		if (found)
			return at + __builtin_ctz(found);
	}
}

/* Replaces the end of the line that begins at `at` by a zero byte. Returns the begin of the next line. */
static char *end_line(char *at)
{
	at = line_end(at);
	if (*at)
		*at++ = '\0';
	return at;
}

/* --- the kernel ------------------------------------------------------------------------------- */

#define KALLSYMS_MOST  (256UL << 20)
#define KALLSYMS_USUAL (8UL << 20) /* Debian's kernels have 5 to 7 MiB. Only what is written takes memory */
#define FUNCTION_BYTES 40	   /* of kallsyms for a function, at least */

/* The kernel packs BPF programs into pages of this size (BPF_PROG_PACK_SIZE, kernel/bpf/core.c). */
#define BPF_PACK (2UL << 20)

struct modules {
	const struct symbols *symbols;
	struct spans spans; /* `what` is an index of `ends` */
	__u64 *ends;
	__u64 kernel_low, kernel_high;
};

/* Parses a line like "ext4 1028096 1 - Live 0xffffffffc0a3b000": proc(5). Returns whether the address is
 * known. */
static bool read_module(char *line, unsigned long long *bytes, unsigned long long *low)
{
	return sscanf(line, "%*s %llu %*s %*s %*s %llx", bytes, low) == 2 && *low;
}

static char *read_whole(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size;

	return fd >= 0 ? read_text(fd, TEXT_USUAL, KALLSYMS_MOST, &size) : NULL;
}

/* A number that is another one when a module of the same name, size and address is loaded: each has a folder
 * of its own in sysfs. */
static __u64 loading_of(const char *folder, const char *module)
{
	char path[PATH_MAX];
	struct stat stat_of;

	snprintf(path, sizeof(path), "%s/%s", folder, module);
	return stat(path, &stat_of) ? 0 : stat_of.st_ino;
}

__u64 kernel_modules_version(const char *path, const char *folder)
{
	unsigned long long bytes, low;
	char *text = read_whole(path);
	__u64 version = 0;

	for (char *line = text, *next; line && *line; line = next) {
		next = end_line(line);
		if (!read_module(line, &bytes, &low))
			continue;
		line[strcspn(line, " ")] = '\0';
		version += map_key(line, low ^ bytes ^ loading_of(folder, line) << 32); /* in any order */
	}
	free(text);
	return version;
}

static void read_modules(struct modules *modules, const char *path)
{
	struct span *spans = NULL;
	char *text = read_whole(path);
	size_t nr = 0;

	for (char *line = text, *next; line && *line; line = next) {
		unsigned long long bytes, low;

		next = end_line(line);
		if (!read_module(line, &bytes, &low))
			continue;
		modules->ends = xrealloc(modules->ends, (nr + 1) * sizeof(*modules->ends));
		spans = xrealloc(spans, (nr + 1) * sizeof(*spans));
		modules->ends[nr] = low + bytes;
		spans[nr] = (struct span){low, low + bytes, 0, nr};
		nr++;
	}
	spans_make(&modules->spans, spans, nr);
	free(spans);
	free(text);
}

/* What a pack has behind its last program is no code. */
static __u64 end_outside_of_kernel(const struct modules *modules, const struct found_symbol *symbol)
{
	const char *name = modules->symbols->strings + symbol->name;
	__u32 found = spans_find(&modules->spans, symbol->address);

	if (found != SPANS_NONE)
		return modules->ends[found];
	return symbol->address + (!strcmp(name + strlen(name) + 1, "[bpf]") ? BPF_PACK : 4096);
}

/* The upper limit for a symbol, since kallsyms does not have their sizes: the end of its module or of the
 * kernel. */
static __u64 end_of_module(const void *of, const struct found_symbol *symbol)
{
	const struct modules *modules = of;

	if (symbol->address >= modules->kernel_low && symbol->address < modules->kernel_high)
		return modules->kernel_high;
	return end_outside_of_kernel(modules, symbol);
}

static void note_bounds(struct modules *modules, const char *name, __u64 address)
{
	if (name[0] != '_' || (name[1] != 's' && name[1] != 'e'))
		return;
	if (!strcmp(name, "_stext"))
		modules->kernel_low = address;
	/* The code for the kernel's start follows _etext. */
	if (!strcmp(name, "_etext") || !strcmp(name, "_einittext"))
		modules->kernel_high = address > modules->kernel_high ? address : modules->kernel_high;
}

/* Appends a text and a zero byte to the strings. They grow over the part of the same buffer that was parsed
 * already. */
static void keep_text(struct symbols *symbols, const char *text, size_t length)
{
	if (length)
		memmove(symbols->strings + symbols->strings_size, text, length);
	symbols->strings_size += length;
	symbols->strings[symbols->strings_size++] = '\0';
}

/* What the letter before a name says. All others are data. */
#define CODE  1
#define LOCAL 2
#define WEAK  4
static const unsigned char kinds[256] = {
	['T'] = CODE, ['t'] = CODE | LOCAL, ['W'] = CODE | WEAK, ['w'] = CODE | WEAK};

/* Half of the kernel's symbols are of data, and none of those in note_bounds(). */
static bool is_data(const char *line, const char *end)
{
	return end - line > 18 && line[16] == ' ' && !kinds[(unsigned char)line[17]];
}

/*
 * Parses a line like "ffffffffc0a3b000 t ext4_free_inode\t[ext4]", which ends with a zero byte. The name and
 * its module are stored in the same buffer, which has room because the line is longer than they are. Returns
 * whether the address is hidden.
 */
static bool add_kernel_line(struct symbols *symbols, struct modules *modules, struct address_before *before,
			    char *line, char *end)
{
	struct found_symbol symbol = {0};
	char *name = line, *name_end = end, *module = end;
	unsigned char kind;

	if (is_data(line, end))
		return false;
	if ((!take_address(before, &name, end, &symbol.address) && !take_hex(&name, &symbol.address)) ||
	    !name[0] || name[1] != ' ')
		return false;
	kind = kinds[(unsigned char)*name];
	name += 2;
	if (end[-1] == ']') {
		name_end = name + strcspn(name, " \t");
		module = name_end + strspn(name_end, " \t");
		*name_end = '\0';
	}
	note_bounds(modules, name, symbol.address);
	if (!kind || name_end == name)
		return false;
	symbol.end = symbol.address;
	if (!symbol.address)
		return true;
	symbol.name = symbols->strings_size;
	symbol.local = !!(kind & LOCAL);
	symbol.weak = !!(kind & WEAK);
	keep_text(symbols, name, name_end - name);
	keep_text(symbols, module, end - module);
	symbols_add(symbols, &symbol);
	return false;
}

/* symbolize takes any file. */
static char *read_kallsyms(const char *path, size_t *size)
{
	struct piped piped;
	struct stat stat;
	char *text;

	if (piped_open(&piped, path, &stat))
		return NULL;
	text = read_text(piped.fd, KALLSYMS_USUAL, KALLSYMS_MOST, size);
	piped.fd = -1; /* it is closed */
	if (!piped_close(&piped))
		return text;
	free(text);
	return NULL;
}

const char *kernel_symbols(struct symbols *symbols, const char *kallsyms, const char *modules_path)
{
	struct modules modules = {.symbols = symbols};
	struct address_before before = {0};
	bool hidden = false;
	size_t size;

	symbols->strings = read_kallsyms(kallsyms, &size);
	if (!symbols->strings)
		return "the kernel's symbols (kallsyms) can't be read";
	symbols_expect(symbols, size / FUNCTION_BYTES);
	read_modules(&modules, modules_path);
	for (char *line = symbols->strings, *next; *line; line = next) {
		char *end = line_end(line);

		next = *end ? end + 1 : end;
		*end = '\0';
		hidden |= add_kernel_line(symbols, &modules, &before, line, end);
	}
	symbols_finish(symbols, end_of_module, &modules);
	spans_release(&modules.spans);
	free(modules.ends);
	if (symbols->nr)
		return NULL;
	return hidden ? "the kernel hides its addresses: kernel.kptr_restrict, or no CAP_SYSLOG"
		      : "the kernel has no symbols (kallsyms)";
}

/* --- run-time compilers ----------------------------------------------------------------------- */

/* A zero byte ends a line. A map that was cut off while its process goes on writing begins with many. */
static void end_lines_at_zeros(char *text, size_t size)
{
	for (char *at = text; (at = memchr(at, '\0', text + size - at)); at++)
		*at = '\n';
}

/* Buffers are flushed in the middle of names. Returns whether there was a part of a line. */
static bool cut_half_line(char *text, size_t *size)
{
	const char *last = memrchr(text, '\n', *size);
	size_t whole = last ? last + 1 - text : 0;
	bool is_cut = whole < *size;

	*size = whole;
	text[whole] = '\0';
	return is_cut;
}

const char *jit_symbols(struct symbols *symbols, int fd, size_t most, bool grows, bool *half)
{
	struct found_symbol symbol = {0};
	__u64 size;

	*half = false;
	symbols->strings = read_text(fd, TEXT_USUAL, most, &symbols->strings_size);
	if (!symbols->strings) {
		const char *why = symbols->strings_size >= most ? JIT_NO_ROOM
								: "the map of compiled code can't be read";

		symbols->strings_size = 0;
		return why;
	}
	end_lines_at_zeros(symbols->strings, symbols->strings_size);
	*half = grows && cut_half_line(symbols->strings, &symbols->strings_size);
	symbols->strings_size++;
	for (char *line = symbols->strings, *next; *line; line = next) {
		char *name = line;

		next = end_line(line);
		symbol.order++;
		if (!take_hex(&name, &symbol.address) || !take_hex(&name, &size) || !*name || !size ||
		    size > -1ULL - symbol.address)
			continue;
		symbol.end = symbol.address + size;
		symbol.name = name - symbols->strings;
		symbols_add(symbols, &symbol);
	}
	symbols_finish(symbols, NULL, NULL);
	return NULL;
}
