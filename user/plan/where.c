// SPDX-License-Identifier: GPL-2.0-only
#include "plan/where.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/list.h"
#include "base/nearest.h"

/* Nodes of the tree: each comparison, what joins it to another one, and its negations. */
#define NODES (4 * WHERE_TERMS)

enum kind { COMPARISON, AND, OR, NOT };

struct where_node {
	enum kind kind;
	struct where_term term;		 /* of a comparison */
	struct where_node *left, *right; /* of AND and OR; NOT has the left one */
};

struct where_parser {
	const char *text, *at;
	const char *fields;
	const struct host *host;
	struct refusal *refusal; /* set: parsing has failed */
	struct where_node nodes[NODES];
	size_t nr_nodes, nr_terms;
};

/* A field, and how its values are written. */
static const struct {
	const char *name;
	enum where_field field;
} known_fields[] = {
	{"ip", WHERE_IP},	  {"pid", WHERE_PID},	    {"tid", WHERE_TID},
	{"cpu", WHERE_CPU},	  {"cgroup", WHERE_CGROUP}, {"comm", WHERE_COMM},
	{"period", WHERE_PERIOD}, {"addr", WHERE_ADDRESS},  {"latency", WHERE_LATENCY},
	{"source", WHERE_SOURCE},
};

static const struct {
	const char *text;
	enum where_op op;
	bool negated;
} operators[] = {
	/* The longer ones first. */
	{"==", WHERE_EQUAL, false}, {"!=", WHERE_EQUAL, true}, {"<=", WHERE_GREATER, true},
	{">=", WHERE_LESS, true},   {"<", WHERE_LESS, false},  {">", WHERE_GREATER, false},
};

/* --- refusals --------------------------------------------------------------------------------- */

/* The column of a place in the text, in characters: bytes that continue one in UTF-8 are none. */
static int column_of(const struct where_parser *parser, const char *place)
{
	int column = 1;

	for (const char *at = parser->text; at < place; at++)
		column += (*at & 0xc0) != 0x80;
	return column;
}

static struct where_node *fail(struct where_parser *parser, const char *at, const char *why, const char *next)
{
	if (parser->refusal->asked[0])
		return NULL;
	refuse(parser->refusal, STATUS_USAGE, "option --where '%s'", parser->text);
	because(parser->refusal, "column %d: %s", column_of(parser, at), why);
	instead(parser->refusal, "%s", next);
	return NULL;
}

static struct where_node *fail_field(struct where_parser *parser, const char *at, const char *name)
{
	struct nearest nearest;
	char why[160], near[200], next[260];
	bool of_others = false;

	nearest_begin(&nearest, name, 3);
	for (size_t i = 0; i < ARRAY_SIZE(known_fields); i++)
		if (list_has(parser->fields, known_fields[i].name))
			nearest_offer(&nearest, known_fields[i].name);
		else
			of_others |= !strcmp(known_fields[i].name, name);
	snprintf(why, sizeof(why),
		 of_others ? "this command does not read '%.100s' of its samples"
			   : "'%.100s' is no field that can be compared when a sample is taken",
		 name);
	if (of_others)
		snprintf(next, sizeof(next), "nhmtap stream and nhmtap mem do; fields here: %s",
			 parser->fields);
	else if (nearest_print(&nearest, near, sizeof(near)))
		snprintf(next, sizeof(next), "did you mean %s?", near);
	else
		snprintf(next, sizeof(next), "fields: %s", parser->fields);
	return fail(parser, at, why, next);
}

/* --- words ------------------------------------------------------------------------------------ */

static void skip_blanks(struct where_parser *parser)
{
	while (isspace((unsigned char)*parser->at))
		parser->at++;
}

static bool skip_text(struct where_parser *parser, const char *text)
{
	skip_blanks(parser);
	if (strncmp(parser->at, text, strlen(text)))
		return false;
	parser->at += strlen(text);
	return true;
}

static bool is_of_word(char c)
{
	return c && !isspace((unsigned char)c) && !strchr("&|!()<>=\"", c);
}

/* Reads a word, or a text in quotation marks, in which \" and \\ are these characters. Returns false if there
 * is none, or it does not fit or end. */
static bool take_word(struct where_parser *parser, char *word, size_t size)
{
	size_t used = 0;
	bool quoted;

	skip_blanks(parser);
	quoted = *parser->at == '"';
	parser->at += quoted;
	while (quoted ? *parser->at && *parser->at != '"' : is_of_word(*parser->at)) {
		if (used + 1 >= size)
			return false;
		if (quoted && *parser->at == '\\' && (parser->at[1] == '"' || parser->at[1] == '\\'))
			parser->at++;
		word[used++] = *parser->at++;
	}
	word[used] = '\0';
	if (!quoted)
		return used;
	if (*parser->at != '"')
		return false;
	parser->at++;
	return true;
}

/* --- comparisons ------------------------------------------------------------------------------ */

static struct where_node *make_node(struct where_parser *parser, enum kind kind, struct where_node *left,
				    struct where_node *right)
{
	struct where_node *made;

	if (!left && kind != COMPARISON)
		return NULL;
	if (!right && (kind == AND || kind == OR))
		return NULL;
	if (parser->nr_nodes == NODES)
		return fail(parser, parser->at, "the condition is too long", "leave some of it out");
	made = &parser->nodes[parser->nr_nodes++];
	*made = (struct where_node){.kind = kind, .left = left, .right = right};
	return made;
}

static struct where_node *make_comparison(struct where_parser *parser, enum where_field field,
					  enum where_op op, __u64 value, __u64 mask)
{
	struct where_node *made;

	if (parser->nr_terms == WHERE_TERMS)
		return fail(parser, parser->at, "there are more comparisons than a program has room for",
			    "leave some out");
	made = make_node(parser, COMPARISON, NULL, NULL);
	if (!made)
		return NULL;
	parser->nr_terms++;
	made->term = (struct where_term){.field = field, .op = op, .value = value, .mask = mask};
	return made;
}

/* The two words of a comm. */
static struct where_node *compare_comm(struct where_parser *parser, const char *word)
{
	__u64 words[2] = {0};

	/* The kernel cuts longer names. */
	memcpy(words, word, strnlen(word, sizeof(words) - 1));
	return make_node(parser, AND, make_comparison(parser, WHERE_COMM, WHERE_EQUAL, words[0], ~0ULL),
			 make_comparison(parser, WHERE_COMM_END, WHERE_EQUAL, words[1], ~0ULL));
}

static struct where_node *compare_source(struct where_parser *parser, const char *at, const char *word)
{
	struct where_node *made = NULL;

	for (size_t i = 0; parser->host->events && i < parser->host->events->nr_data_sources; i++) {
		const struct known_data_source *known = &parser->host->events->data_sources[i];
		struct where_node *one;

		if (strcmp(known->name, word))
			continue;
		one = make_comparison(parser, WHERE_SOURCE, WHERE_EQUAL,
				      known->perf_data_src & ~DATA_SRC_ACCESS, ~DATA_SRC_ACCESS);
		made = made ? make_node(parser, OR, made, one) : one;
	}
	return made ? made
		    : fail(parser, at, "this CPU has no source of this name",
			   "nhmtap list --data-sources shows them; or write its value, 0x…");
}

/* Its id is the inode number of its folder: see host/cgroups.h. */
static struct where_node *compare_cgroup(struct where_parser *parser, const char *at, const char *word)
{
	char path[800];
	struct stat status;

	snprintf(path, sizeof(path), "%s%s", parser->host->cgroup_mount, word);
	return *word == '/' && !stat(path, &status)
		       ? make_comparison(parser, WHERE_CGROUP, WHERE_EQUAL, status.st_ino, ~0ULL)
		       : fail(parser, at, "there is no cgroup at this path",
			      "write it as /proc/PID/cgroup has it");
}

static struct where_node *compare_number(struct where_parser *parser, enum where_field field,
					 enum where_op op, const char *at, const char *word)
{
	bool hex = word[0] == '0' && (word[1] | 0x20) == 'x';
	char *end;
	__u64 value;

	errno = 0;
	value = strtoull(word, &end, hex ? 16 : 10); /* what begins with 0 is not octal */
	if (isdigit((unsigned char)*word) && errno == ERANGE && !*end)
		return fail(parser, at, "the number has more than 64 bits",
			    "the largest is 18446744073709551615, or 0xffffffffffffffff");
	if (!isdigit((unsigned char)*word) || *end || errno)
		return fail(parser, at, "a number is expected here", "write it in decimal, or as 0x…");
	return make_comparison(parser, field, op, value, field == WHERE_SOURCE ? ~DATA_SRC_ACCESS : ~0ULL);
}

static struct where_node *compare_word(struct where_parser *parser, enum where_field field, enum where_op op,
				       const char *at, const char *word)
{
	bool text = field == WHERE_COMM || field == WHERE_CGROUP ||
		    (field == WHERE_SOURCE && !isdigit((unsigned char)*word));

	if (!text)
		return compare_number(parser, field, op, at, word);
	if (op != WHERE_EQUAL)
		return fail(parser, at, "a name is equal or not", "compare it with == or !=");
	if (field == WHERE_COMM)
		return compare_comm(parser, word);
	return field == WHERE_SOURCE ? compare_source(parser, at, word) : compare_cgroup(parser, at, word);
}

static struct where_node *comparison(struct where_parser *parser)
{
	char name[64], word[512];
	const char *at;
	size_t f = 0, o = 0;
	struct where_node *made;

	skip_blanks(parser);
	at = parser->at;
	if (!take_word(parser, name, sizeof(name)))
		return fail(parser, at, "a field is expected here", "as in latency>=100 && comm==db");
	while (f < ARRAY_SIZE(known_fields) &&
	       (strcmp(known_fields[f].name, name) || !list_has(parser->fields, name)))
		f++;
	if (f == ARRAY_SIZE(known_fields))
		return fail_field(parser, at, name);
	while (o < ARRAY_SIZE(operators) && !skip_text(parser, operators[o].text))
		o++;
	if (o == ARRAY_SIZE(operators))
		return fail(parser, parser->at, "a comparison is expected here", "one of == != < <= > >=");
	skip_blanks(parser);
	at = parser->at;
	if (!take_word(parser, word, sizeof(word)))
		return fail(parser, at, "a value is expected here",
			    "a number, or a name, in \" if it has blanks");
	made = compare_word(parser, known_fields[f].field, operators[o].op, at, word);
	return operators[o].negated ? make_node(parser, NOT, made, NULL) : made;
}

/* --- the tree --------------------------------------------------------------------------------- */

static struct where_node *any_of(struct where_parser *parser, int depth);

#define DEPTH_MOST 32

static struct where_node *negatable(struct where_parser *parser, int depth)
{
	struct where_node *inner;

	if (depth == DEPTH_MOST)
		return fail(parser, parser->at, "this is nested too deeply",
			    "write it with fewer parentheses");
	if (skip_text(parser, "!"))
		return make_node(parser, NOT, negatable(parser, depth + 1), NULL);
	if (!skip_text(parser, "("))
		return comparison(parser);
	inner = any_of(parser, depth + 1);
	if (inner && !skip_text(parser, ")"))
		return fail(parser, parser->at, "a ')' is expected here",
			    "or && or || and a further comparison");
	return inner;
}

static struct where_node *all_of(struct where_parser *parser, int depth)
{
	struct where_node *left = negatable(parser, depth);

	while (left && skip_text(parser, "&&"))
		left = make_node(parser, AND, left, negatable(parser, depth));
	return left;
}

static struct where_node *any_of(struct where_parser *parser, int depth)
{
	struct where_node *left = all_of(parser, depth);

	while (left && skip_text(parser, "||"))
		left = make_node(parser, OR, left, all_of(parser, depth));
	return left;
}

/* --- the list --------------------------------------------------------------------------------- */

static size_t nr_terms_of(const struct where_node *node)
{
	if (!node)
		return 0;
	return node->kind == COMPARISON ? 1 : nr_terms_of(node->left) + nr_terms_of(node->right);
}

/* Appends the comparisons of a node, in the order of the text. They go on at `yes` if the node is true. */
static void put_node(struct where *condition, const struct where_node *node, __u32 yes, __u32 no)
{
	size_t right = condition->nr + nr_terms_of(node->left);

	switch (node->kind) {
	case COMPARISON:
		condition->terms[condition->nr] = node->term;
		condition->terms[condition->nr].yes = yes;
		condition->terms[condition->nr++].no = no;
		break;
	case NOT:
		put_node(condition, node->left, no, yes);
		break;
	case AND:
		put_node(condition, node->left, right, no);
		put_node(condition, node->right, yes, no);
		break;
	case OR:
		put_node(condition, node->left, yes, right);
		put_node(condition, node->right, yes, no);
		break;
	}
}

int where_compile(struct where *condition, const char *text, const char *fields, const struct host *host,
		  struct refusal *refusal)
{
	struct where_parser parser = {
		.text = text, .at = text, .fields = fields, .host = host, .refusal = refusal};
	const struct where_node *whole = any_of(&parser, 0);

	*condition = (struct where){.nr = 0};
	skip_blanks(&parser);
	if (whole && *parser.at)
		whole = fail(&parser, parser.at, "the condition ends here, but the text goes on",
			     "join it by && or ||");
	if (!whole)
		return -1;
	put_node(condition, whole, WHERE_WANTED, WHERE_UNWANTED);
	return 0;
}

bool where_mentions(const char *text, const char *field)
{
	for (size_t length; text && *text; text += length ? length : 1) {
		for (length = 0; is_of_word(text[length]);)
			length++;
		if (length == strlen(field) && !strncmp(text, field, length))
			return true;
	}
	return false;
}

int where_check(const struct where *condition, const char *text, const struct event *event,
		struct refusal *refusal)
{
	for (size_t i = 0; i < condition->nr && !event_stops_throttled(event); i++) {
		enum where_field field = condition->terms[i].field;

		if (field != WHERE_LATENCY && field != WHERE_SOURCE)
			continue;
		refuse(refusal, STATUS_USAGE, "option --where '%.400s'", text);
		because(refusal, "samples of '%.200s' have no %s: only the CPU knows it, of its own events",
			event->name, field == WHERE_LATENCY ? "latency" : "source");
		return instead(refusal, "leave it out, or sample loads: nhmtap mem");
	}
	return 0;
}
