// SPDX-License-Identifier: GPL-2.0-only
#include "top/views.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/visible.h"
#include "output/activities.h"
#include "output/member.h"
#include "output/rows.h"
#include "output/sharing.h"
#include "top/code.h"
#include "view/figures.h"
#include "view/heading.h"
#include "view/shares.h"
#include "view/singles.h"
#include "view/weights.h"

#define ROWS_SHOWN 1000

static const char *const orders_of_shares[] = {"share", "total", "samples", "symbol", "comm", NULL};
static const char *const orders_of_loads[] = {"share", "mean", "max", "samples", "symbol", NULL};
static const char *const no_orders[] = {NULL};

static const struct {
	const char *name;
	const char *types; /* of the records that are shown there */
	const char *const *orders;
	const char *empty; /* what is said if there are none */
} views[VIEWS] = {
	[VIEW_FUNCTIONS] = {"functions", "profile", orders_of_shares,
			    "no samples yet (nhmtap top, or nhmtap top profile)"},
	[VIEW_COUNTS] = {"counts", "count,metric,summary", no_orders, "no counts yet (nhmtap top stat)"},
	[VIEW_LOADS] = {"data sources", "mem", orders_of_loads, "no samples of loads (nhmtap top mem)"},
	[VIEW_OFFCORE] = {"off-core", "offcore", no_orders, "no off-core requests (nhmtap top offcore)"},
	[VIEW_BRANCHES] = {"branches", "branch", orders_of_shares, "no branches (nhmtap top branch)"},
	[VIEW_SHARES] = {"analysis", "analysis", no_orders, "no analysis (nhmtap top analyze)"},
	[VIEW_HEALTH] = {"health", "", no_orders, "nothing is known yet"},
};

const char *view_name(enum top_view view)
{
	return views[view].name;
}

enum top_view view_of(const char *type)
{
	enum top_view view = 0;

	while (view < VIEWS && (!*type || !list_has(views[view].types, type)))
		view++;
	return view;
}

const char *view_order(enum top_view view, size_t i)
{
	for (size_t at = 0; views[view].orders[at]; at++)
		if (at == i)
			return views[view].orders[at];
	return NULL;
}

/* --- tables ----------------------------------------------------------------------------------- */

/* The account of an event: what was expected, and where it is. */
struct health_account {
	const struct measurement *measured;
	double expected, aggregated, lost, throttled, enabled, running;
	bool sampled;
};

enum { OWN_SHARES, SECOND_SHARES, THIRD_SHARES, SHARES_MOST };

struct view_tables {
	struct view_wanted wanted;
	char *function;
	struct condition of_function;
	struct row_filter of_lines; /* only rows of the function */
	struct share_tables *shares[SHARES_MOST];
	struct sampled_code *code; /* of the function; NULL: there is none */
	struct figures *figures;
	struct sharing sharing;
	struct heading_of_stream heading;
	struct activities activities;
	struct health_account *accounts;
	size_t nr_accounts, records;
};

/* A function: its lines, who calls it, what it calls, and its code. */
static void begin_function(struct view_tables *tables)
{
	struct shares_wanted
		lines = {.by = "line,comm", .filter = &tables->of_lines, .least = -1, .top = ROWS_SHOWN},
		callers = {.callers = tables->function, .filter = tables->wanted.filter, .least = -1},
		callees = {.callees = tables->function, .filter = tables->wanted.filter, .least = -1};

	tables->of_function = (struct condition){.key = "symbol", .value = tables->function};
	tables->of_lines = (struct row_filter){&tables->of_function, 1};
	tables->code = code_new(tables->function);
	tables->shares[OWN_SHARES] = shares_new(&lines);
	tables->shares[SECOND_SHARES] = shares_new(&callers);
	tables->shares[THIRD_SHARES] = shares_new(&callees);
}

static void begin_shares(struct view_tables *tables)
{
	struct shares_wanted own = {.sort = tables->wanted.order,
				    .filter = tables->wanted.filter,
				    .least = -1,
				    .top = ROWS_SHOWN,
				    .spread = tables->wanted.view == VIEW_LOADS},
			     sources = own;

	own.children = own.sort && !strcmp(own.sort, "total");
	if (tables->wanted.view == VIEW_LOADS) {
		sources.by = "source";
		tables->shares[OWN_SHARES] = shares_new(&sources);
		tables->shares[SECOND_SHARES] = shares_new(&own);
	} else {
		tables->shares[OWN_SHARES] = shares_new(&own);
	}
}

struct view_tables *view_new(const struct view_wanted *wanted)
{
	struct view_tables *tables = xcalloc(1, sizeof(*tables));

	tables->wanted = *wanted;
	tables->function = wanted->function ? xstrdup(wanted->function) : NULL;
	if (tables->function)
		begin_function(tables);
	else
		begin_shares(tables);
	tables->figures = figures_new(wanted->filter);
	heading_begin(&tables->heading, NULL);
	activities_begin(&tables->activities);
	return tables;
}

void view_release(struct view_tables *tables)
{
	for (size_t i = 0; i < SHARES_MOST; i++)
		if (tables->shares[i])
			shares_release(tables->shares[i]);
	code_release(tables->code);
	figures_release(tables->figures);
	heading_release(&tables->heading);
	activities_release(&tables->activities);
	free(tables->accounts);
	free(tables->function);
	free(tables);
}

static struct health_account *account_of(struct view_tables *tables, const json_t *record)
{
	char *title = row_title(record, string(record, "event"));
	const struct measurement *measured = measurement_in(&tables->activities, title, record);
	struct health_account *account;

	free(title);
	for (size_t i = 0; i < tables->nr_accounts; i++)
		if (tables->accounts[i].measured == measured)
			return &tables->accounts[i];
	account = xappend(tables->accounts, tables->nr_accounts);
	*account = (struct health_account){.measured = measured};
	return account;
}

static void take_health(struct view_tables *tables, const json_t *record)
{
	const json_t *samples = json_object_get(record, "samples");
	struct health_account *account;
	json_t *count;
	const char *cause;

	if (!*string(record, "event") || integer(record, "part") > 1 ||
	    !json_object_get(record, "enabled_ns"))
		return;
	account = account_of(tables, record);
	account->sampled |= samples != NULL;
	account->expected += real_member(samples, "expected", 0);
	account->aggregated += real_member(samples, "aggregated", 0);
	account->throttled += real_member(samples, "throttled", 0);
	account->enabled += real_member(record, "enabled_ns", 0);
	account->running += real_member(record, "running_ns", 0);
	json_object_foreach(json_object_get(samples, "lost"), cause, count)
		account->lost += json_number_value(count);
}

/* What a single sample stands for. */
static void take_single(void *tables, const json_t *record)
{
	view_take(tables, record);
}

void view_take(struct view_tables *tables, const json_t *record)
{
	const char *type = string(record, "type");
	bool frames = !strcmp(type, "frames"), own = view_of(type) == tables->wanted.view;

	if (!strcmp(type, "sample")) {
		single_take(record, take_single, tables);
		return;
	}
	tables->records += own || tables->wanted.view == VIEW_HEALTH;
	if (tables->wanted.view == VIEW_HEALTH) {
		heading_take(&tables->heading, record);
		take_health(tables, record);
	}
	for (size_t i = 0; i < SHARES_MOST && (own || frames); i++)
		if (tables->shares[i])
			shares_take(tables->shares[i], record);
	if (tables->code && (own || frames))
		code_take(tables->code, record);
	if (own)
		figures_take(tables->figures, record);
	sharing_take(&tables->sharing, record);
}

void view_end(struct view_tables *tables, const struct stored_end *end)
{
	tables->heading.end = *end;
}

/* --- lines ------------------------------------------------------------------------------------ */

static void add_text(struct screen_lines *lines, struct text *text, int width, enum line_style style)
{
	lines_add_words(lines, text->bytes, width, style);
	free(text->bytes);
	*text = (struct text){0};
}

static void add_blank(struct screen_lines *lines)
{
	if (lines->nr)
		lines_add(lines, "\n", LINE_PLAIN);
}

/* Adds the title that a view gives its tables. Of several events, each table says of which it is, by the
 * first line of what comes before it. */
static void add_title(const struct share_tables *shares, const char *title, const struct text *before,
		      struct screen_lines *lines)
{
	char *whole;

	if (shares_tables(shares) == 1) {
		lines_add(lines, title, LINE_TITLE);
		return;
	}
	whole = xasprintf("%s: %.*s", title, (int)strcspn(before->bytes, "\n"), before->bytes);
	lines_add(lines, whole, LINE_TITLE);
	free(whole);
}

static void add_shares(const struct share_tables *shares, const char *title, struct screen_lines *lines,
		       int width, const char *wanted)
{
	for (size_t i = 0; shares && i < shares_tables(shares); i++) {
		struct text before = {0}, after = {0};
		struct sheet sheet = {0};

		shares_table(shares, i, &before, &sheet, &after);
		if (!title || sheet.nr)
			add_blank(lines);
		if (!title)
			add_text(lines, &before, width, LINE_TITLE);
		else if (sheet.nr)
			add_title(shares, title, &before, lines);
		if (sheet.nr)
			lines_add_sheet(lines, &sheet, width, wanted);
		add_text(lines, &after, width, LINE_PLAIN);
		free(before.bytes);
		sheet_release(&sheet);
	}
}

static void add_function(const struct view_tables *tables, struct screen_lines *lines, int width,
			 const char *wanted)
{
	static const char *const titles[] = {"lines of the function that samples are on", "callers",
					     "callees"};
	char *title = xasprintf("function %s", tables->function);
	struct text code = {0};

	lines_add(lines, title, LINE_TITLE);
	free(title);
	for (size_t i = 0; i < SHARES_MOST; i++)
		add_shares(tables->shares[i], titles[i], lines, width, wanted);
	code_print(tables->code, tables->wanted.annotator, &code);
	if (code.bytes) {
		add_blank(lines);
		lines_add(lines, "code", LINE_TITLE);
		lines_add(lines, code.bytes, LINE_PLAIN);
		free(code.bytes);
	}
	if (lines->nr == 1)
		lines_add(lines, "# no samples of it are in these records", LINE_REMARK);
}

/* Says what tells more about lines that cores share. */
static void add_sharing(const struct view_tables *tables, struct screen_lines *lines, int width)
{
	double share = sharing_untold(&tables->sharing);
	struct text text = {0};

	if (!share)
		return;
	text_add(&text,
		 "# %.1f%% of the loads found their line modified by another core: nhmtap mem --shared says "
		 "which lines, and who uses them\n",
		 100 * share);
	add_text(lines, &text, width, LINE_REMARK);
}

static void add_figures(const struct view_tables *tables, const char *section, struct screen_lines *lines,
			int width, const char *wanted)
{
	struct sheet sheet = {0};

	figures_history(tables->figures, section, &sheet);
	if (sheet.nr) {
		add_blank(lines);
		lines_add(lines, section, LINE_TITLE);
		lines_add_sheet(lines, &sheet, width, wanted);
	}
	sheet_release(&sheet);
}

static void add_matrix(const struct view_tables *tables, struct screen_lines *lines, int width,
		       const char *wanted)
{
	struct sheet sheet = {0};

	figures_matrix(tables->figures, &sheet);
	if (sheet.nr) {
		lines_add(lines, "requests by kind (rows) and by what answered them (columns)", LINE_TITLE);
		lines_add_sheet(lines, &sheet, width, wanted);
	}
	sheet_release(&sheet);
}

/* Of an event that is only counted, nothing is expected. */
static void number_of_samples(struct sheet *sheet, const struct health_account *account, double number)
{
	char text[40];

	sheet_add(sheet, "%s",
		  account->sampled ? row_grouped((json_int_t)fmin(number, 9e18), text, sizeof(text)) : "");
}

static void add_accounts(const struct view_tables *tables, struct screen_lines *lines, int width,
			 const char *wanted)
{
	static const char *const headings[] = {"samples expected", "in the tables", "lost", "paused",
					       "counted"};
	struct sheet sheet = {0};
	char shown[300];

	for (size_t i = 0; i < ARRAY_SIZE(headings); i++)
		sheet_column(&sheet, headings[i], true);
	sheet_column(&sheet, "event", false);
	for (size_t i = 0; i < tables->nr_accounts; i++) {
		const struct health_account *account = &tables->accounts[i];
		char *title = measurement_title(&tables->activities, account->measured);

		number_of_samples(&sheet, account, account->expected);
		number_of_samples(&sheet, account, account->aggregated);
		number_of_samples(&sheet, account, account->lost);
		number_of_samples(&sheet, account, account->throttled);
		sheet_add(&sheet, account->enabled ? "%.1f%% of the time" : "-",
			  100 * account->running / fmax(account->enabled, 1));
		visible(shown, sizeof(shown), title);
		free(title);
		sheet_add(&sheet, "%s", shown);
		sheet_tag(&sheet, "");
	}
	if (sheet.nr) {
		add_blank(lines);
		lines_add(lines, "accounts", LINE_TITLE);
		lines_add_sheet(lines, &sheet, width, wanted);
	}
	sheet_release(&sheet);
}

static void add_health(const struct view_tables *tables, struct screen_lines *lines, int width,
		       const char *wanted)
{
	struct text text = {0};

	heading_print(&tables->heading, &text);
	if (!tables->heading.gaps && !json_array_size(tables->heading.warnings))
		text_add(&text, "no record is missing, and there are no warnings\n");
	add_text(lines, &text, width, LINE_PLAIN);
	add_accounts(tables, lines, width, wanted);
}

void view_lines(const struct view_tables *tables, struct screen_lines *lines, int width, const char *wanted)
{
	enum top_view view = tables->wanted.view;

	if (!tables->records) {
		lines_add_words(lines, views[view].empty, width, LINE_PLAIN);
		return;
	}
	if (view == VIEW_HEALTH) {
		add_health(tables, lines, width, wanted);
		return;
	}
	if (tables->function) {
		add_function(tables, lines, width, wanted);
		return;
	}
	if (view == VIEW_OFFCORE)
		add_matrix(tables, lines, width, wanted);
	if (view == VIEW_LOADS)
		add_sharing(tables, lines, width);
	for (size_t i = 0; i < SHARES_MOST; i++)
		add_shares(tables->shares[i], NULL, lines, width, wanted);
	add_figures(tables, FIGURES_COUNTS, lines, width, wanted);
	add_figures(tables, FIGURES_METRICS, lines, width, wanted);
	add_figures(tables, FIGURES_MEANS, lines, width, wanted);
	add_figures(tables, FIGURES_OFFCORE, lines, width, wanted);
	add_figures(tables, FIGURES_ANALYSIS, lines, width, wanted);
	if (!lines->rows && (*wanted || (tables->wanted.filter && tables->wanted.filter->nr)))
		lines_add(lines, "no row is for the filter (Esc: show all)", LINE_REMARK);
}
