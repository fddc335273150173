// SPDX-License-Identifier: GPL-2.0-only
#include "view/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/visible.h"
#include "output/activities.h"
#include "output/member.h"
#include "output/rows.h"
#include "view/share_tree.h"
#include "view/weights.h"

#define HISTORY 32    /* intervals of the line of a figure */
#define ARROW	" → " /* from a request to its response */

/* How the intervals of a figure make one number. */
enum joined { ADDED, AVERAGED };

/* A figure in a stream. Its bound is low to high. */
struct figure_of {
	double value, low, high; /* sums; of averages, each times the duration */
	double weight;		 /* sum of the durations */
	size_t intervals;
	double last[HISTORY]; /* its values, by the interval's number modulo HISTORY */
	bool estimate;	      /* it is not exact */
	const char *why;      /* interned by the figures' `whys`: why there is no value; NULL */
};

struct figure {
	const struct measurement *measured;
	char *section, *unit;
	enum joined joined;
	double factor; /* of the number that is shown: 100 for a share */
	struct figure_of of[2];
};

struct figures {
	const struct row_filter *filter;
	struct figure *list;
	size_t nr, room;
	struct activities activities;
	json_t *known;	 /* {section, name, activity: index} */
	json_t *whys;	 /* {text: true} */
	json_t *parents; /* of shares: see view/share_tree.h */
	int stream;
};

struct figures *figures_new(const struct row_filter *filter)
{
	struct figures *figures = xcalloc(1, sizeof(*figures));

	figures->filter = filter;
	activities_begin(&figures->activities);
	figures->known = json_object();
	figures->whys = json_object();
	figures->parents = json_object();
	return figures;
}

void figures_release(struct figures *figures)
{
	for (size_t i = 0; i < figures->nr; i++) {
		free(figures->list[i].section);
		free(figures->list[i].unit);
	}
	free(figures->list);
	activities_release(&figures->activities);
	json_decref(figures->known);
	json_decref(figures->whys);
	json_decref(figures->parents);
	free(figures);
}

void figures_second(struct figures *figures)
{
	figures->stream = 1;
	activities_second(&figures->activities);
}

size_t figures_number(const struct figures *figures)
{
	return figures->nr;
}

static struct figure *figure_at(struct figures *figures, const char *section, const json_t *record,
				const char *name, const char *unit, enum joined joined, double factor)
{
	const struct measurement *measured = measurement_in(&figures->activities, name, record);
	char *key = xasprintf("%s\n%s\n%s", section, measured->what, measured->activity);
	json_t *known = json_object_get(figures->known, key);

	if (!known) {
		known = json_integer(figures->nr);
		json_object_set_new_nocheck(figures->known, key, known);
		figures->list = xroom(figures->list, figures->nr, &figures->room, sizeof(*figures->list));
		figures->list[figures->nr++] = (struct figure){
			.section = xstrdup(section),
			.measured = measured,
			.unit = xstrdup(unit),
			.joined = joined,
			.factor = factor,
		};
	}
	free(key);
	return &figures->list[json_integer_value(known)];
}

/* Adds the value of an interval, with its bound. */
static void add_value(struct figures *figures, struct figure *figure, const json_t *record, double value,
		      double low, double high)
{
	struct figure_of *of = &figure->of[figures->stream];
	double weight = figure->joined == ADDED ? 1 : fmax(integer(record, "duration_ns"), 1);

	of->value += weight * value;
	of->low += weight * low;
	of->high += weight * high;
	of->weight += weight;
	of->last[of->intervals++ % HISTORY] = value;
	of->estimate |= low != high;
}

static void add_reason(struct figures *figures, struct figure *figure, const json_t *of)
{
	const char *why = *string(of, "why") ? string(of, "why") : "it was not counted";

	json_object_set_new(figures->whys, why, json_true());
	figure->of[figures->stream].why = json_object_iter_key(json_object_iter_at(figures->whys, why));
}

/* Adds the count of a record or of one of its cells, or why there is none. */
static void add_scaled(struct figures *figures, struct figure *figure, const json_t *record, const json_t *of)
{
	const json_t *bound = json_object_get(of, "bound");
	double value = integer(of, "scaled");

	if (!json_object_get(of, "scaled"))
		add_reason(figures, figure, of);
	else
		add_value(figures, figure, record, value, real_member(bound, "low", value),
			  real_member(bound, "high", bound ? INFINITY : value));
}

static void take_count(struct figures *figures, const json_t *record)
{
	char *name = row_title(record, string(record, "event"));

	add_scaled(figures,
		   figure_at(figures, FIGURES_COUNTS, record, name, string(record, "unit"), ADDED, 1), record,
		   record);
	free(name);
}

static void take_metric(struct figures *figures, const json_t *record)
{
	const json_t *bound = json_object_get(record, "bound");
	char *name = row_title(record, string(record, "metric"));
	struct figure *figure =
		figure_at(figures, FIGURES_METRICS, record, name, string(record, "unit"), AVERAGED, 1);
	double value = real_member(record, "value", NAN);

	free(name);
	if (isnan(value))
		add_reason(figures, figure, record);
	else
		add_value(figures, figure, record, value,
			  real_member(bound, "low", bound ? -INFINITY : value),
			  real_member(bound, "high", bound ? INFINITY : value));
}

/* The mean of several executions, with the interval that their spread gives. */
static void take_summary(struct figures *figures, const json_t *record)
{
	bool metric = json_object_get(record, "metric");
	char *name = row_title(record, string(record, metric ? "metric" : "event"));
	struct figure *figure =
		figure_at(figures, FIGURES_MEANS, record, name, string(record, "unit"), AVERAGED, 1);
	double mean = real_member(record, "mean", NAN), error;
	json_int_t counted = integer(record, "counted");

	free(name);
	if (!counted || isnan(mean)) {
		add_reason(figures, figure, record);
		return;
	}
	error = weight_mean_error(real_member(record, "stddev_of_mean", INFINITY), counted);
	add_value(figures, figure, record, mean, mean - error, mean + error);
}

static void take_cells(struct figures *figures, const json_t *record)
{
	json_t *cell;
	size_t i;

	json_array_foreach(json_object_get(record, "cells"), i, cell) {
		char *keys = row_title(record, ""), *name;

		name = xasprintf("%s" ARROW "%s%s", string(cell, "request"), string(cell, "response"), keys);
		add_scaled(figures, figure_at(figures, FIGURES_OFFCORE, record, name, "", ADDED, 1), record,
			   cell);
		free(keys);
		free(name);
	}
}

static void take_analysis(struct figures *figures, const json_t *record)
{
	const json_t *shares = json_object_get(record, "shares");
	json_t *share;
	size_t i;

	share_tree_take(figures->parents, record);
	json_array_foreach(shares, i, share) {
		char *keys = row_title(record, "");
		int depth = share_tree_depth(figures->parents, string(share, "name"));
		char *name = xasprintf("%*s%s%s", 2 * depth, "", string(share, "name"), keys);
		struct figure *figure =
			figure_at(figures, FIGURES_ANALYSIS, record, name, "%", AVERAGED, 100);

		free(keys);
		free(name);
		if (!json_object_get(share, "share"))
			add_reason(figures, figure, share);
		else
			add_value(figures, figure, record, real_member(share, "share", 0),
				  real_member(share, "low", 0), real_member(share, "high", 1));
	}
}

void figures_take(struct figures *figures, const json_t *record)
{
	static const struct {
		const char *type;
		void (*take)(struct figures *figures, const json_t *record);
	} takers[] = {{"count", take_count},
		      {"metric", take_metric},
		      {"summary", take_summary},
		      {"offcore", take_cells},
		      {"analysis", take_analysis}};
	struct cell_source cells = {.record = record, .entry = record};

	if (!strcmp(string(record, "type"), "start"))
		activities_start(&figures->activities, record);
	for (size_t i = 0; i < ARRAY_SIZE(takers); i++)
		if (!strcmp(takers[i].type, string(record, "type")) &&
		    (!figures->filter || row_filter_takes(figures->filter, &cells)))
			takers[i].take(figures, record);
}

/* --- printing --------------------------------------------------------------------------------- */

/* The value, low or high of a figure in a stream; NAN if it has none. */
static double joined_value(const struct figure *figure, const struct figure_of *of, double sum)
{
	if (!of->intervals)
		return NAN;
	return figure->factor * (figure->joined == ADDED ? sum : sum / of->weight);
}

/* "1,234,567", "0.998", "12.3": whole numbers as such. */
static void number_cell(struct sheet *sheet, const struct figure *figure, double number)
{
	char text[400];

	if (isnan(number))
		snprintf(text, sizeof(text), "-");
	else if (isinf(number))
		snprintf(text, sizeof(text), "?");
	else if (figure->factor == 100)
		snprintf(text, sizeof(text), "%.1f", number);
	else if (fabs(number) >= 1e5 || number == rint(number))
		row_grouped((json_int_t)fmax(fmin(rint(number), 9e18), -9e18), text, sizeof(text));
	else
		snprintf(text, sizeof(text), fabs(number) < 0.001 ? "%.3g" : "%.3f", number);
	sheet_add(sheet, "%s", text);
}

static void name_cells(const struct figures *figures, struct sheet *sheet, const struct figure *figure)
{
	char *title = measurement_title(&figures->activities, figure->measured);
	size_t room = VISIBLE_MAX * strlen(title) + 1;
	char *name = xmalloc(room);

	sheet_add(sheet, "%s", figure->unit);
	visible(name, room, title);
	sheet_add(sheet, "%s", name);
	free(name);
	free(title);
}

static void figure_row(const struct figures *figures, struct sheet *sheet, const struct figure *figure)
{
	const struct figure_of *of = &figure->of[0];

	number_cell(sheet, figure, joined_value(figure, of, of->value));
	sheet_add(sheet, "%s", of->estimate ? "~" : "");
	if (of->estimate) {
		number_cell(sheet, figure, joined_value(figure, of, of->low));
		number_cell(sheet, figure, joined_value(figure, of, of->high));
	} else {
		sheet_add(sheet, "%s", "");
		sheet_add(sheet, "%s", "");
	}
	name_cells(figures, sheet, figure);
	sheet_add(sheet, "%s", of->intervals ? "" : of->why ?: "");
}

/* "+5.3%", or "+5.3" points of a share. The difference is within the bounds if both values may be the same.
 */
static void difference_row(const struct figures *figures, struct sheet *sheet, const struct figure *figure)
{
	const struct figure_of *of = figure->of;
	bool points = figure->factor == 100;
	double before = joined_value(figure, &of[0], of[0].value),
	       now = joined_value(figure, &of[1], of[1].value);
	double least = joined_value(figure, &of[1], of[1].low) - joined_value(figure, &of[0], of[0].high);
	double most = joined_value(figure, &of[1], of[1].high) - joined_value(figure, &of[0], of[0].low);
	double unit = points ? 1 : fabs(before) / 100;

	number_cell(sheet, figure, before);
	number_cell(sheet, figure, now);
	if (isnan(before) || isnan(now) || !unit) {
		for (int i = 0; i < 4; i++)
			sheet_add(sheet, "%s",
				  i || before == now || isnan(before) || isnan(now) ? "" : "new");
	} else {
		sheet_add(sheet, points ? "%+.1f" : "%+.1f%%", (now - before) / unit);
		sheet_add(sheet, isinf(least) ? "?" : "%+.1f", least / unit);
		sheet_add(sheet, isinf(most) ? "?" : "%+.1f", most / unit);
		sheet_add(sheet, "%s", least <= 0 && most >= 0 ? "~" : "");
	}
	name_cells(figures, sheet, figure);
}

/* The last intervals. */
static void bars_cell(struct sheet *sheet, const struct figure_of *of)
{
	size_t nr = of->intervals < HISTORY ? of->intervals : HISTORY;
	double values[HISTORY];

	for (size_t i = 0; i < nr; i++)
		values[i] = of->last[(of->intervals - nr + i) % HISTORY];
	sheet_bars(sheet, values, nr);
}

static void history_row(const struct figures *figures, struct sheet *sheet, const struct figure *figure)
{
	const struct figure_of *of = &figure->of[0];
	double last = of->intervals ? of->last[(of->intervals - 1) % HISTORY] : NAN;

	number_cell(sheet, figure, isnan(last) ? NAN : figure->factor * last);
	number_cell(sheet, figure, joined_value(figure, of, of->value));
	sheet_add(sheet, "%s", of->estimate ? "~" : "");
	for (int high = 0; high < 2; high++)
		if (of->estimate)
			number_cell(sheet, figure, joined_value(figure, of, high ? of->high : of->low));
		else
			sheet_add(sheet, "%s", "");
	bars_cell(sheet, of);
	name_cells(figures, sheet, figure);
	sheet_add(sheet, "%s", of->intervals ? "" : of->why ?: "");
	sheet_tag(sheet, "");
}

static void add_history_columns(struct sheet *sheet, const char *all)
{
	static const char *const numbers[] = {"last", NULL, "", "from", "to", "intervals"};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sheet_column(sheet, numbers[i] ?: all, true);
	sheet_column(sheet, "unit", false);
	sheet_column(sheet, "name", false);
	sheet_column(sheet, "", false);
}

void figures_history(const struct figures *figures, const char *section, struct sheet *sheet)
{
	for (size_t i = 0; i < figures->nr; i++) {
		const struct figure *figure = &figures->list[i];

		if (strcmp(figure->section, section))
			continue;
		if (!sheet->nr_columns)
			add_history_columns(sheet, figure->joined == ADDED ? "sum" : "mean");
		history_row(figures, sheet, figure);
	}
}

/* The number of a text in a list, to which it is added unless it is in there. */
static size_t place_in(json_t *list, const char *text, size_t length)
{
	size_t i;
	json_t *known;

	json_array_foreach(list, i, known)
		if (json_string_length(known) == length && !strncmp(json_string_value(known), text, length))
			return i;
	json_array_append_new(list, json_stringn_nocheck(text, length));
	return i;
}

/* cells: {title: index}. */
static void matrix_cell(const struct figures *figures, struct sheet *sheet, const json_t *cells,
			const char *request, const char *response)
{
	char *title = xasprintf("%s" ARROW "%s", request, response), number[40];
	const json_t *known = json_object_get(cells, title);
	const struct figure *figure = known ? &figures->list[json_integer_value(known)] : NULL;
	const struct figure_of *of = figure ? &figure->of[0] : NULL;

	free(title);
	if (!of || !of->intervals)
		sheet_add(sheet, "%s", of ? "-" : "");
	else
		sheet_add(
			sheet, "%s%s", of->estimate ? "~" : "",
			row_grouped((json_int_t)fmax(fmin(of->value, 9e18), -9e18), number, sizeof(number)));
}

void figures_matrix(const struct figures *figures, struct sheet *sheet)
{
	json_t *requests = json_array(), *responses = json_array(), *request, *response;
	json_t *cells = json_object();
	size_t i, j;

	for (i = 0; i < figures->nr; i++) {
		const struct figure *figure = &figures->list[i];
		char *title = measurement_title(&figures->activities, figure->measured);
		const char *arrow = strstr(title, ARROW);

		if (!strcmp(figure->section, FIGURES_OFFCORE) && arrow) {
			place_in(requests, title, arrow - title);
			place_in(responses, arrow + strlen(ARROW), strlen(arrow + strlen(ARROW)));
			json_object_set_new_nocheck(cells, title, json_integer(i));
		}
		free(title);
	}
	sheet_column(sheet, "request", false);
	json_array_foreach(responses, i, response)
		sheet_column(sheet, json_string_value(response), true);
	json_array_foreach(requests, i, request) {
		char shown[200];

		visible(shown, sizeof(shown), json_string_value(request));
		sheet_add(sheet, "%s", shown);
		json_array_foreach(responses, j, response)
			if (j + 1 < SHEET_COLUMNS)
				matrix_cell(figures, sheet, cells, json_string_value(request),
					    json_string_value(response));
		sheet_tag(sheet, "");
	}
	json_decref(requests);
	json_decref(responses);
	json_decref(cells);
}

static void add_figure_columns(struct sheet *sheet, bool diff)
{
	static const char *const of_diff[] = {"first", "second", "change", "from", "to", ""};
	static const char *const of_one[] = {"value", "", "from", "to"};

	for (size_t i = 0; i < (diff ? ARRAY_SIZE(of_diff) : ARRAY_SIZE(of_one)); i++)
		sheet_column(sheet, diff ? of_diff[i] : of_one[i], true);
	sheet_column(sheet, "unit", false);
	sheet_column(sheet, "name", false);
	if (!diff)
		sheet_column(sheet, "", false);
}

static void print_section(const struct figures *figures, size_t first, bool diff, struct text *text,
			  int width)
{
	const char *section = figures->list[first].section;
	struct sheet sheet = {0};
	size_t intervals = 0;

	add_figure_columns(&sheet, diff);
	for (size_t i = first; i < figures->nr; i++) {
		const struct figure *figure = &figures->list[i];

		if (strcmp(figure->section, section))
			continue;
		intervals = figure->of[0].intervals > intervals ? figure->of[0].intervals : intervals;
		if (diff)
			difference_row(figures, &sheet, figure);
		else
			figure_row(figures, &sheet, figure);
	}
	text_add(text, "%s", section);
	if (intervals > 1)
		text_add(text, ", %s %zu intervals",
			 figures->list[first].joined == ADDED ? "sums of" : "means of", intervals);
	text_add(text, "\n");
	sheet_print(&sheet, text, width);
	sheet_release(&sheet);
}

void figures_print(const struct figures *figures, bool diff, struct text *text, int width)
{
	for (size_t i = 0; i < figures->nr; i++) {
		bool printed = false;

		for (size_t j = 0; j < i && !printed; j++)
			printed = !strcmp(figures->list[j].section, figures->list[i].section);
		if (printed)
			continue;
		if (text->used)
			text_add(text, "\n");
		print_section(figures, i, diff, text, width);
	}
}
