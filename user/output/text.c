// SPDX-License-Identifier: GPL-2.0-only
#include "output/text.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/visible.h"

void text_add(struct text *text, const char *format, ...)
{
	va_list args;
	size_t length;

	va_start(args, format);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	text->bytes = xfit(text->bytes, text->used + length + 1, &text->room, 1);
	va_start(args, format);
	vsnprintf(text->bytes + text->used, length + 1, format, args);
	va_end(args);
	text->used += length;
}

/* The columns of a character that is not in ASCII: 2 for Chinese and for most emoji, 0 for what is drawn upon
 * the one before. The program itself runs in the locale C, which knows none of them. */
static int columns_of(const char *character, size_t length)
{
	static locale_t utf8;
	mbstate_t state = {0};
	locale_t before;
	wchar_t wide;
	int width;

	utf8 = utf8 ?: newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
	if (!utf8)
		return 1;
	before = uselocale(utf8);
	width = mbrtowc(&wide, character, length, &state) == length ? wcwidth(wide) : 1;
	uselocale(before);
	return width < 0 ? 1 : width;
}

/* The bytes of a character of UTF-8, and the columns that it takes. */
static size_t character_at(const char *at, int *width)
{
	size_t length = 1;

	while ((at[length] & 0xc0) == 0x80)
		length++;
	*width = *at & 0x80 ? columns_of(at, length) : 1;
	return length;
}

static int columns(const char *from, const char *end)
{
	int count = 0, width;

	while (from < end) {
		from += character_at(from, &width);
		count += width;
	}
	return count;
}

static int column(const struct text *text)
{
	const char *end = text->bytes + text->used, *line = end;

	while (line > text->bytes && line[-1] != '\n')
		line--;
	return columns(line, end);
}

void text_add_visible(struct text *text, const char *from)
{
	size_t size = VISIBLE_MAX * strlen(from) + 1;
	char *shown = xmalloc(size);

	visible_lines(shown, size, from);
	text_add(text, "%s", shown);
	free(shown);
}

/* The bytes of a word that go on a line of which so many columns are left: all, or those up to a comma, if
 * that is necessary and there is one. */
static int word_part(const char *word, int length, int left, bool alone)
{
	int part = length;

	if (!alone || columns(word, word + length) <= left)
		return length;
	for (int i = 0; i < length && columns(word, word + i + 1) <= left; i++)
		if (word[i] == ',')
			part = i + 1;
	return part;
}

void text_wrap(struct text *text, int indent, const char *of)
{
	int at = text->used ? column(text) : 0,
	    most = text->width && text->width < TEXT_WIDTH ? text->width : TEXT_WIDTH;
	const char *space = "", *words;
	struct text shown = {0};

	text_add_visible(&shown, of);
	words = shown.bytes;
	while (*words) {
		int length = strcspn(words, " "), width = columns(words, words + length), part;

		if (at + (int)strlen(space) + width > most && *space) {
			text_add(text, "\n%*s", indent, "");
			at = indent;
			space = "";
		}
		part = word_part(words, length, most - at, !*space);
		text_add(text, "%s%.*s", space, part, words);
		if (part < length) {
			text_add(text, "\n%*s", indent, "");
			at = indent;
			space = "";
			words += part;
			continue;
		}
		at += strlen(space) + width;
		space = " ";
		words += length;
		words += strspn(words, " ");
	}
	text_add(text, "\n");
	free(shown.bytes);
}

int text_columns(const char *of)
{
	return columns(of, of + strlen(of));
}

/* The place behind this many columns of text. A wide character that would end beyond them is in front of the
 * place if `whole`, else behind it. What is drawn upon a character stays with it. */
static const char *behind(const char *of, int wanted, bool whole)
{
	while (*of) {
		int width;
		size_t length = character_at(of, &width);

		if (width > wanted && !(whole && wanted > 0))
			break;
		wanted -= width;
		of += length;
	}
	return of;
}

/* What stands for what is left out. */
static const char *mark_left_out(const struct text *text)
{
	return text->ascii ? "..." : "…";
}

/* The content of a pair of brackets. */
struct bracketed {
	const char *begin, *end;
	int columns;
};

/* Behind the name of an operator, whose characters are no brackets. */
static const char *behind_operator(const char *at)
{
	at += strlen("operator");
	return at + (strncmp(at, "()", 2) ? strspn(at, "<>=-!+*/%^&|~[],") : 2);
}

#define BRACKETS_MOST 64 /* within each other */

/* Finds the outermost brackets of a C++ name with the most content, of more than `least` columns. A bracket
 * behind a blank is none of a name: "main (libc.so.6)". */
static bool find_widest(const char *of, int least, struct bracketed *widest)
{
	const char *open[BRACKETS_MOST];
	size_t depth = 0;

	*widest = (struct bracketed){.columns = least};
	for (const char *at = of; *at; at++) {
		int width;

		if (!strncmp(at, "operator", strlen("operator"))) {
			at = behind_operator(at) - 1;
			continue;
		}
		if ((*at == '<' || *at == '(') && !(at > of && at[-1] == ' ' && !depth)) {
			if (depth == BRACKETS_MOST)
				return false;
			open[depth++] = at;
			continue;
		}
		if (!depth || !(*at == ')' || (*at == '>' && at[-1] != '-')) ||
		    *open[depth - 1] != (*at == ')' ? '(' : '<') || --depth)
			continue;
		width = columns(open[0] + 1, at);
		if (width > widest->columns)
			*widest = (struct bracketed){open[0] + 1, at, width};
	}
	return widest->begin;
}

static void add_without_middle(struct text *text, const char *of, int all, int width)
{
	int kept = width - text_columns(mark_left_out(text)), head = (kept + 1) / 2;
	const char *tail = behind(of, all - (kept - head), true), *end = behind(of, head, false),
		   *left_out = mark_left_out(text);
	size_t length = strlen(left_out);

	/* Something may be left out there already. */
	while ((size_t)(end - of) >= length && !memcmp(end - length, left_out, length))
		end -= length;
	while (!strncmp(tail, left_out, length))
		tail += length;
	text_add(text, "%.*s%s%.*s", (int)(end - of), of, left_out, (int)(behind(of, all, true) - tail),
		 tail);
}

/* The text with so many columns fewer in these brackets, or as few as there can be. xmalloc()ed. */
static char *with_less(const char *of, const struct bracketed *in, int fewer, bool ascii)
{
	struct text less = {.ascii = ascii};
	int most = in->columns - fewer;

	text_add(&less, "%.*s", (int)(in->begin - of), of);
	if (most < text_columns(mark_left_out(&less)) + 2)
		text_add(&less, "%s", mark_left_out(&less));
	else
		add_without_middle(&less, in->begin, in->columns, most);
	text_add(&less, "%s", in->end);
	return less.bytes;
}

#define PAIRS_MOST 8 /* of brackets that are emptied: a name may have thousands */

/* What is in the brackets of a name (arguments, parameters of templates) tells less than the rest. */
void text_add_shortened(struct text *text, const char *of, int width)
{
	int all = text_columns(of), least = text_columns(mark_left_out(text));
	char *shorter = NULL, *before;
	struct bracketed widest;

	for (int i = 0;
	     all > width && width >= least + 2 && i < PAIRS_MOST && find_widest(of, least, &widest); i++) {
		before = shorter;
		of = shorter = with_less(of, &widest, all - width, text->ascii);
		free(before);
		all = text_columns(of);
	}
	if (all <= width || width < least + 2)
		text_add(text, "%s", of);
	else
		add_without_middle(text, of, all, width);
	free(shorter);
}

void text_add_cell(struct text *text, const char *of, int width, bool right)
{
	struct text shown = {.ascii = text->ascii};
	int blanks;

	text_add_shortened(&shown, of, width);
	blanks = width - text_columns(shown.bytes);
	text_add(text, "%*s%s%*s", right && blanks > 0 ? blanks : 0, "", shown.bytes,
		 !right && blanks > 0 ? blanks : 0, "");
	free(shown.bytes);
}

/* Takes so many blanks from a line where there are several, the last ones first: numbers stand on the left.
 * Its first blanks stay. Takes none if there are too few. */
static void take_blanks(char *line, int surplus)
{
	char *first = line + strspn(line, " "), *end = line + strlen(line);
	int spare = 0;

	for (char *at = first; *at; at++)
		spare += at[0] == ' ' && at[1] == ' ';
	if (spare < surplus)
		return;
	for (char *at = end; at > first + 1 && surplus > 0; at--)
		if (at[-1] == ' ' && at[-2] == ' ') {
			memmove(at - 1, at, end - at + 1);
			end--;
			surplus--;
		}
}

/* Adds the words of a line, which is changed. Columns stay aligned up to where the line is broken. */
static void add_broken(struct text *text, char *line, int width)
{
	const char *begin = *line == '#' ? "# " : "  ";
	int at = 0, blanks = strspn(line, " "), left;
	char *word = line + blanks;

	left = width - columns(word, word + strcspn(word, " "));
	if (blanks > left)
		blanks = left > 0 ? left : 0;
	while (*word) {
		char *behind = word + strcspn(word, " "), was = *behind;

		*behind = '\0';
		if (word > line && at && at + blanks + text_columns(word) > width) {
			text_add(text, "\n%s", begin);
			at = 2;
			blanks = 0;
		}
		text_add(text, "%*s", blanks, "");
		at += blanks;
		text_add_shortened(text, word, width - at);
		at += text_columns(word);
		*behind = was;
		blanks = strspn(behind, " ");
		word = behind + blanks;
	}
}

void text_fit(struct text *text, int width)
{
	struct text fitting = {.width = text->width, .ascii = text->ascii}, shown = {0};

	text_add_visible(&shown, text->bytes);
	for (char *line = shown.bytes, *end; line && *line; line = end) {
		bool whole;

		end = strchrnul(line, '\n');
		whole = *end;
		if (whole)
			*end++ = '\0';
		take_blanks(line, text_columns(line) - width);
		if (text_columns(line) > width)
			add_broken(&fitting, line, width);
		else
			text_add(&fitting, "%s", line);
		if (whole)
			text_add(&fitting, "\n");
	}
	free(shown.bytes);
	free(text->bytes);
	*text = fitting;
}

struct text text_for_terminal(int fd)
{
	struct winsize size = {0};

	if (!isatty(fd))
		return (struct text){0};
	if (ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col)
		size.ws_col = TEXT_WIDTH;
	return (struct text){.width = size.ws_col, .ascii = !text_takes_utf8()};
}

void text_print(struct text *text, FILE *out)
{
	if (text->ascii)
		text_to_ascii(text);
	if (text->width && text->used)
		text_fit(text, text->width);
	fputs(text->bytes ?: "", out);
	free(text->bytes);
	*text = (struct text){0};
}

bool text_takes_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "UTF-8") || strcasestr(value, "utf8");
	}
	return false;
}

void text_to_ascii(struct text *text)
{
	static const struct {
		const char *character, *instead;
	} similar[] = {
		{"…", "..."}, {"→", "->"}, {"·", "."}, {"µ", "u"}, {"×", "x"},
		{"│", "|"},   {"±", "+"},  {"▁", "1"}, {"▂", "2"}, {"▃", "3"},
		{"▄", "4"},   {"▅", "5"},  {"▆", "6"}, {"▇", "7"}, {"█", "8"},
	};
	struct text result = {.width = text->width, .ascii = text->ascii};

	for (size_t i = 0; i < text->used;) {
		size_t length = 1, s = 0;

		while (i + length < text->used && (text->bytes[i + length] & 0xc0) == 0x80)
			length++;
		while (s < ARRAY_SIZE(similar) && (strlen(similar[s].character) != length ||
						   memcmp(text->bytes + i, similar[s].character, length)))
			s++;
		if (!(text->bytes[i] & 0x80))
			text_add(&result, "%c", text->bytes[i]);
		else
			text_add(&result, "%s", s < ARRAY_SIZE(similar) ? similar[s].instead : "?");
		i += length;
	}
	free(text->bytes);
	*text = result;
}
