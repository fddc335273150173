// SPDX-License-Identifier: GPL-2.0-only
#include "offcore/matrix.h"

#include <stdio.h>
#include <string.h>

#include "base/alternatives.h"
#include "base/list.h"
#include "base/memory.h"
#include "event/encoding.h"
#include "tables/compose.h"

static const struct offcore_preset *find_preset(const struct known_offcore *offcore, const char *name,
						struct refusal *refusal)
{
	struct alternatives alternatives;

	alternatives_begin(&alternatives, name ? name : "", name ? strlen(name) : 0);
	for (size_t i = 0; i < offcore->nr_presets; i++) {
		if (!name || !strcmp(offcore->presets[i].name, name))
			return &offcore->presets[i];
		alternatives_offer(&alternatives, offcore->presets[i].name);
	}
	refuse(refusal, STATUS_USAGE, "option --preset '%s'", name ? name : "");
	because(refusal, "there is no such preset");
	alternatives_end(&alternatives, refusal, "presets: %s", alternatives.all);
	return NULL;
}

/* --- rows and columns ------------------------------------------------------------------------- */

/* One axis of the matrix: how its parts are given. A response's name may contain dots. */
struct axis {
	const char *option, *separators;
	bool of_requests;
};

static const struct axis request_axis = {"--request", ":.", true};
static const struct axis response_axis = {"--response", ":", false};

static int refuse_parts(const struct axis *axis, const char *text, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "option %s '%s'", axis->option, text);
	because(refusal, "there are more than %d", MATRIX_PARTS);
	return instead(refusal, "ask for fewer, or combine some with '|'");
}

static int add_part(struct matrix_part *part, const struct axis *axis, const char *name, size_t length,
		    const struct host *host, struct refusal *refusal)
{
	const struct known_offcore *known = host->events->offcore;
	const char *reg = known->registers[0].name;
	struct composed composed;
	char whole[200];

	snprintf(part->name, sizeof(part->name), "%.*s", (int)length, name);
	if (axis->of_requests)
		snprintf(whole, sizeof(whole), "%s:%.*s:%s", reg, (int)length, name,
			 known->responses[0].name);
	else
		snprintf(whole, sizeof(whole), "%s:%s:%.*s", reg, known->requests[0].name, (int)length, name);
	if (length >= sizeof(part->name) || strpbrk(part->name, axis->separators)) {
		refuse(refusal, STATUS_USAGE, "option %s '%s'", axis->option, part->name);
		because(refusal, "it is no name of one, or of several with '|' between them");
		return instead(refusal, "nhmtap list offcore has the names");
	}
	if (compose_event(host->events, whole, &composed, refusal) <= 0) {
		snprintf(refusal->asked, sizeof(refusal->asked), "option %s '%s'", axis->option, part->name);
		return -1;
	}
	part->bits =
		composed.config1 & (axis->of_requests ? offcore_requests(known) : offcore_responses(known));
	return 0;
}

static bool has_bits(const struct matrix_part *parts, int nr, __u64 bits)
{
	for (int i = 0; i < nr; i++)
		if (parts[i].bits == bits)
			return true;
	return false;
}

/* What is named twice, also by two names, is one line: its cells would be counted twice. */
static int add_parts(struct matrix_part *parts, int *nr, const struct axis *axis, const char *text,
		     const struct host *host, struct refusal *refusal)
{
	size_t length;

	for (const char *at = NULL; (at = list_next(text, at, &length));) {
		if (*nr == MATRIX_PARTS)
			return refuse_parts(axis, text, refusal);
		if (add_part(&parts[*nr], axis, at, length, host, refusal))
			return -1;
		*nr += !has_bits(parts, *nr, parts[*nr].bits);
	}
	return 0;
}

/* --- cells ------------------------------------------------------------------------------------ */

static __u64 bits_of(const struct matrix_part *parts, int nr, int which)
{
	__u64 bits = 0;

	for (int i = 0; i < nr; i++)
		if (which == MATRIX_ALL || which == i)
			bits |= parts[i].bits;
	return bits;
}

/* The number of lines including the sum. A single row has no sum over rows, which would be the row itself. */
static int lines(int nr)
{
	return nr + (nr > 1);
}

static int index_of(int line, int nr)
{
	return line < nr ? line : MATRIX_ALL;
}

/* Makes the cells in the order of the diagonals. */
static void make_cells(struct matrix *matrix)
{
	int rows = lines(matrix->nr_requests), columns = lines(matrix->nr_responses);
	int longer = rows > columns ? rows : columns;

	for (int diagonal = 0; diagonal < longer; diagonal++)
		for (int i = 0; i < (rows < columns ? rows : columns); i++) {
			int row = rows <= columns ? i : (i + diagonal) % rows;
			int column = rows <= columns ? (i + diagonal) % columns : i;
			struct matrix_cell *cell = &matrix->cells[matrix->nr_cells++];

			cell->request = index_of(row, matrix->nr_requests);
			cell->response = index_of(column, matrix->nr_responses);
			cell->bits = bits_of(matrix->requests, matrix->nr_requests, cell->request) |
				     bits_of(matrix->responses, matrix->nr_responses, cell->response);
		}
}

static int refuse_unknown(struct host *host, struct refusal *refusal)
{
	const char *machine = host_may_be_emulated(host) ? "use --machine for an emulated Nehalem" : "";
	const struct pmu *pmu = host_core_pmu(host);

	refuse(refusal, STATUS_REFUSED, "off-core responses");
	because(refusal, "there is no table of this CPU that has them");
	if (!pmu || !pmu_has_term(pmu, "offcore_rsp"))
		return *machine ? instead(refusal, "%s", machine) : -1;
	return instead(refusal,
		       "%s%snhmtap stat counts one by its value: -e cpu/event=0xb7,umask=0x1,offcore_rsp=…/",
		       machine, *machine ? "; " : "");
}

int matrix_make(struct matrix *matrix, const struct offcore_options *options, struct host *host,
		struct refusal *refusal)
{
	const struct offcore_preset *preset;

	*matrix = (struct matrix){0};
	if (!host->events || !host->events->offcore)
		return refuse_unknown(host, refusal);
	preset = find_preset(host->events->offcore, options->preset, refusal);
	if (!preset && (options->preset || !options->request || !options->response))
		return -1;
	if (add_parts(matrix->requests, &matrix->nr_requests, &request_axis,
		      options->request ? options->request : preset->requests, host, refusal) ||
	    add_parts(matrix->responses, &matrix->nr_responses, &response_axis,
		      options->response ? options->response : preset->responses, host, refusal))
		return -1;
	make_cells(matrix);
	return 0;
}

/* --- events ----------------------------------------------------------------------------------- */

const char *matrix_request(const struct matrix *matrix, const struct matrix_cell *cell)
{
	return cell->request == MATRIX_ALL ? "all" : matrix->requests[cell->request].name;
}

const char *matrix_response(const struct matrix *matrix, const struct matrix_cell *cell)
{
	return cell->response == MATRIX_ALL ? "all" : matrix->responses[cell->response].name;
}

char *matrix_events(const struct matrix *matrix, const struct host *host, const char *modifiers,
		    bool instructions)
{
	__u64 config = host->events->offcore->registers[0].config;
	char *text = NULL;
	size_t size;
	FILE *out = xopen_memstream(&text, &size);

	for (int i = 0; i < matrix->nr_cells; i++)
		fprintf(out, "%scpu/event=%#llx,umask=%#llx,offcore_rsp=%#llx,name=%s.%s/%s", i ? "," : "",
			config & 0xff, config >> 8, matrix->cells[i].bits,
			matrix_request(matrix, &matrix->cells[i]), matrix_response(matrix, &matrix->cells[i]),
			modifiers);
	if (instructions)
		fprintf(out, ",instructions%s%s", modifiers[0] ? ":" : "", modifiers);
	xclose_memstream(out);
	return text;
}
