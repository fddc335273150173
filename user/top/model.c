// SPDX-License-Identifier: GPL-2.0-only
#include "top/model.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/memory.h"
#include "output/member.h"
#include "top/tape.h"
#include "top/views.h"
#include "view/singles.h"

#define FILTER_MOST   200
#define MESSAGES_MOST 200
#define LEAST_COLUMNS 20
#define LEAST_ROWS    4
#define NARROW	      60	    /* columns, of which the view and the state take the first */
#define LONGEST_WAIT  1000000000ULL /* ns; longer pauses of a stream that is replayed are shortened */
#define MESSAGES      VIEWS	    /* the view behind the others: what was written for people */

static const double speeds[] = {0.25, 0.5, 1, 2, 4, 8, 16, 64};
#define USUAL_SPEED 2

static const struct {
	int seconds; /* 0: all */
	const char *name;
} windows[] = {{0, "all"}, {60, "last 60 s"}, {10, "last 10 s"}};

struct top_model {
	bool replay, utf8;
	struct tape tape;
	struct summed_up summed;
	size_t position; /* records before it are shown */
	bool frozen;	 /* the position does not move by itself */
	bool has_content, chosen_by_user;
	size_t speed;		 /* index of `speeds` */
	__u64 stream_ns, now_ns; /* replay: the time in the stream that belongs to the time now */
	__u64 due_ns;		 /* when the next record is shown at the latest */
	char *ended;		 /* why no more records come; NULL: they do */
	struct stored_end end;	 /* how what is replayed ends */

	int view;
	size_t order[VIEWS], window;
	char *function; /* the function that is looked into; NULL: none */
	char filter[FILTER_MOST + 1],
		filter_before[FILTER_MOST + 1]; /* before: of the list, as chosen_before */
	bool typing, help, moved;		/* moved: the user has chosen a row */
	char note[600];				/* what is said once above the keys */
	struct row_filter conditions;

	struct annotator *annotator;
	struct view_tables *tables;	    /* NULL: to be made anew */
	size_t from, taken;		    /* records that are in `tables` */
	struct screen_lines lines;	    /* of the view */
	bool stale;			    /* `lines` are to be made anew */
	bool changed;			    /* the screen is to be drawn */
	size_t chosen, first;		    /* the line that is chosen, and the first one on the screen */
	size_t chosen_before, first_before; /* those of the list that a function was chosen from */
	struct screen_lines messages, screen;
	int columns, rows;
};

struct top_model *top_new(bool replay, bool utf8)
{
	struct top_model *top = xcalloc(1, sizeof(*top));

	*top = (struct top_model){.replay = replay,
				  .utf8 = utf8,
				  .lines.ascii = !utf8,
				  .speed = USUAL_SPEED,
				  .annotator = annotator_new(),
				  .columns = 80,
				  .rows = 24,
				  .stale = true,
				  .changed = true};
	return top;
}

/* What is shown has to be made from the records again. */
static void begin_anew(struct top_model *top)
{
	if (top->tables)
		view_release(top->tables);
	top->tables = NULL;
	top->stale = top->changed = true;
}

void top_release(struct top_model *top)
{
	begin_anew(top);
	annotator_release(top->annotator);
	tape_release(&top->tape);
	summed_up_release(&top->summed);
	lines_release(&top->lines);
	lines_release(&top->messages);
	lines_release(&top->screen);
	row_filter_release(&top->conditions);
	free(top->function);
	free(top->ended);
	free(top);
}

/* --- what comes in ---------------------------------------------------------------------------- */

void top_take(struct top_model *top, const char *line, size_t size)
{
	json_t *record = json_loadb(line, size, 0, NULL);
	const char *type = string(record, "type");
	enum top_view view = view_of(!strcmp(type, "sample") ? single_type(record) : type);

	if (record && *type && !is_summed_up(&top->summed, record))
		tape_add(&top->tape, line, size, record);
	if (view < VIEWS && !top->chosen_by_user && (!top->has_content || (int)view < top->view)) {
		top->view = view;
		begin_anew(top);
	}
	top->has_content |= view < VIEWS;
	json_decref(record);
	top->changed = true;
}

bool top_has_content(const struct top_model *top)
{
	return top->has_content;
}

void top_say(struct top_model *top, const char *text, size_t size)
{
	char *copy = strndup(text, size);

	had(copy);
	lines_add(&top->messages, copy, LINE_PLAIN);
	free(copy);
	for (; top->messages.nr > MESSAGES_MOST; top->messages.nr--) {
		free(top->messages.list[0].text);
		memmove(top->messages.list, top->messages.list + 1,
			(top->messages.nr - 1) * sizeof(*top->messages.list));
	}
	top->stale = top->changed = true;
}

void top_replays(struct top_model *top, const struct stored_end *end)
{
	top->end = *end;
	top_ended(top, "the end of the stream");
}

void top_ended(struct top_model *top, const char *how)
{
	free(top->ended);
	top->ended = xstrdup(how);
	top->changed = true;
}

void top_resize(struct top_model *top, int columns, int rows)
{
	columns = columns > LEAST_COLUMNS ? columns : LEAST_COLUMNS;
	rows = rows > LEAST_ROWS ? rows : LEAST_ROWS;
	if (columns == top->columns && rows == top->rows)
		return;
	top->columns = columns;
	top->rows = rows;
	top->stale = top->changed = true;
}

/* --- time ------------------------------------------------------------------------------------- */

static void move_to(struct top_model *top, size_t position)
{
	if (position == top->position)
		return;
	top->position = position;
	top->stream_ns = tape_time(&top->tape, position);
	top->due_ns = 0;
	top->stale = top->changed = true;
}

/* Whether records at the position have their time. */
static bool is_due(struct top_model *top)
{
	__u64 until = tape_at(&top->tape, top->position)->until_ns;

	return until <= top->stream_ns || !top->stream_ns || (top->due_ns && top->due_ns <= top->now_ns);
}

static void play(struct top_model *top, __u64 passed_ns)
{
	size_t before = top->position;

	top->stream_ns += top->stream_ns ? (__u64)(passed_ns * speeds[top->speed]) : 0;
	while (top->position < top->tape.end && is_due(top)) {
		__u64 until = tape_at(&top->tape, top->position)->until_ns;

		top->stream_ns = until > top->stream_ns ? until : top->stream_ns;
		top->due_ns = 0;
		top->position++;
	}
	if (top->position < top->tape.end && !top->due_ns)
		top->due_ns = top->now_ns + LONGEST_WAIT;
	if (top->position != before)
		top->stale = top->changed = true;
}

bool top_tick(struct top_model *top, __u64 now_ns)
{
	__u64 passed = top->now_ns && now_ns > top->now_ns ? now_ns - top->now_ns : 0;

	top->now_ns = now_ns;
	if (top->position < top->tape.first)
		top->position = top->tape.first;
	if (top->frozen)
		return top->changed;
	if (top->replay)
		play(top, passed);
	else
		move_to(top, top->tape.end);
	return top->changed;
}

static void seek(struct top_model *top, int direction)
{
	top->frozen = true;
	move_to(top, tape_step(&top->tape, top->position, direction));
	top->changed = true;
}

static void seek_end(struct top_model *top, bool end)
{
	top->frozen = !end || top->replay;
	move_to(top, end ? top->tape.end : tape_step(&top->tape, top->tape.first, 1));
}

/* --- tables ----------------------------------------------------------------------------------- */

/* The first record of the time that is looked at. */
static size_t window_begin(const struct top_model *top)
{
	__u64 now = tape_time(&top->tape, top->position),
	      length = windows[top->window].seconds * 1000000000ULL;

	return length && now > length ? tape_seek(&top->tape, now - length) : top->tape.first;
}

static void make_tables(struct top_model *top)
{
	struct view_wanted wanted = {
		.view = top->view,
		.order = view_order(top->view, top->order[top->view]),
		.filter = &top->conditions,
		.function = top->function,
		.annotator = top->annotator,
	};
	size_t from = window_begin(top);

	if (top->tables && (top->taken > top->position || (top->window && top->from != from)))
		begin_anew(top);
	if (!top->tables) {
		top->tables = view_new(&wanted);
		top->from = top->taken = from;
	}
	if (top->taken < top->tape.first)
		top->taken = top->tape.first;
	for (; top->taken < top->position; top->taken++) {
		json_t *record = tape_record(&top->tape, top->taken);

		if (record)
			view_take(top->tables, record);
		json_decref(record);
	}
}

static void make_messages(struct top_model *top)
{
	for (size_t i = 0; i < top->messages.nr; i++)
		lines_add_words(&top->lines, top->messages.list[i].text, top->columns, LINE_PLAIN);
	if (!top->messages.nr)
		lines_add_words(&top->lines, "neither nhmtap nor COMMAND has written anything", top->columns,
				LINE_PLAIN);
}

static const char *const help_text =
	"keys\n"
	"  1 … 7      functions, counts, data sources, off-core, branches, analysis,\n"
	"             health\n"
	"  8          what nhmtap and COMMAND have written\n"
	"  Tab        the next view\n"
	"  ↑ ↓ j k    choose a row; PgUp PgDn, Home End or g G: faster\n"
	"  Enter      look into a function: lines, callers, callees, code\n"
	"  Esc        back\n"
	"  /          filter: a text that rows have, or comm=…, module~…, symbol!=…;\n"
	"             in a function: find\n"
	"  n N        the next row, or the one before, that the filter is for\n"
	"  s          sort by the next order; total has what functions call, too\n"
	"  w          all the time, the last minute, the last 10 seconds\n"
	"  Space z    freeze, or go on; data are taken in meanwhile\n"
	"  ← → h l    an interval back or on in time\n"
	"  0 e        the first interval, the newest one\n"
	"  < >        slower, faster (when a FILE is replayed)\n"
	"  ?          this help\n"
	"  q          quit\n"
	"\n"
	"± is how far a share may be off, by 95 %. ~ marks an estimate. Lines that\n"
	"begin with # say what is missing. The view of health says whether the\n"
	"numbers can be trusted.\n";

/* Whether all is shown that there will be. */
static bool is_at_end(const struct top_model *top)
{
	return top->ended && top->position == top->tape.end;
}

/* Until the user has moved, the cursor is on the first function. */
static void choose_function(struct top_model *top)
{
	for (top->chosen = 0; top->chosen < top->lines.nr; top->chosen++)
		if (top->lines.list[top->chosen].function)
			return;
	top->chosen = 0;
}

static void make_lines(struct top_model *top)
{
	lines_release(&top->lines);
	if (top->help) {
		lines_add_words(&top->lines, help_text, top->columns, LINE_PLAIN);
	} else if (top->view == MESSAGES) {
		make_messages(top);
	} else {
		make_tables(top);
		/* What is looked for in a function is shown with what is around it. */
		if (is_at_end(top))
			view_end(top->tables, &top->end);
		view_lines(top->tables, &top->lines, top->columns,
			   top->conditions.nr || top->function ? "" : top->filter);
	}
	top->stale = false;
	if (!top->moved)
		choose_function(top);
	if (top->chosen >= top->lines.nr)
		top->chosen = top->lines.nr ? top->lines.nr - 1 : 0;
}

/* --- keys ------------------------------------------------------------------------------------- */

static void show_view(struct top_model *top, int view)
{
	top->view = view;
	top->chosen_by_user = true;
	top->help = false;
	top->chosen = top->first = 0;
	top->moved = false;
	free(top->function);
	top->function = NULL;
	begin_anew(top);
}

static bool apply_filter(struct top_model *top)
{
	struct texts given = {.list = {top->filter}, .nr = 1};
	struct refusal refusal = {0};

	row_filter_release(&top->conditions);
	begin_anew(top);
	top->moved = false;
	top->first = 0;
	if (!*top->filter || !strpbrk(top->filter, "=~"))
		return true;
	if (!row_filter_parse(&top->conditions, &given, &refusal))
		return true;
	row_filter_release(&top->conditions);
	snprintf(top->note, sizeof(top->note), "%s", refusal.why);
	return false;
}

/* Whether the line is a row that '/' was for. Of conditions, all rows that are left meet them. */
static bool is_found(const struct top_model *top, const struct screen_line *line)
{
	if (top->conditions.nr)
		return line->function;
	return line->style == LINE_PLAIN && strcasestr(line->text, top->filter);
}

/* Goes to the next row that is found, from the last one on to the first. */
static void find_next(struct top_model *top, int direction)
{
	size_t nr = top->lines.nr, at = top->chosen;

	for (size_t i = 0; i < nr && *top->filter; i++) {
		at = (at + nr + direction) % nr;
		if (is_found(top, &top->lines.list[at])) {
			top->chosen = at;
			top->moved = true;
			return;
		}
	}
	if (*top->filter)
		snprintf(top->note, sizeof(top->note), "no row has '%s'", top->filter);
	else
		snprintf(top->note, sizeof(top->note),
			 "/ TEXT first, then n goes to the next row that has it");
}

static void type_key(struct top_model *top, int key)
{
	size_t length = strlen(top->filter);

	top->stale = true;
	if (key == TOP_ENTER || key == TOP_ESCAPE) {
		top->typing = false;
		if (key == TOP_ESCAPE)
			*top->filter = '\0';
		if (apply_filter(top) && *top->filter && top->function) {
			make_lines(top);
			find_next(top, 1);
		}
	} else if (key == TOP_ERASE) {
		while (length && (top->filter[--length] & 0xc0) == 0x80)
			;
		top->filter[length] = '\0';
	} else if (key >= ' ' && key < 256 && length < FILTER_MOST) {
		top->filter[length] = key;
		top->filter[length + 1] = '\0';
	}
}

static void go_back(struct top_model *top)
{
	if (top->help) {
		top->help = false;
		top->stale = true;
	} else if (top->function) {
		free(top->function);
		top->function = NULL;
		memcpy(top->filter, top->filter_before, sizeof(top->filter));
		apply_filter(top);
		top->chosen = top->chosen_before;
		top->first = top->first_before;
		top->moved = true;
	} else if (*top->filter) {
		*top->filter = '\0';
		apply_filter(top);
	}
}

static void look_into(struct top_model *top)
{
	const char *function = top->chosen < top->lines.nr ? top->lines.list[top->chosen].function : NULL;

	if (!function) {
		snprintf(top->note, sizeof(top->note), "choose the row of a function, then Enter");
		return;
	}
	top->chosen_before = top->chosen;
	top->first_before = top->first;
	memcpy(top->filter_before, top->filter, sizeof(top->filter));
	free(top->function);
	top->function = xstrdup(function);
	top->chosen = top->first = 0;
	top->moved = false;
	begin_anew(top);
}

static void sort_next(struct top_model *top)
{
	if (top->view == MESSAGES || !view_order(top->view, 0)) {
		snprintf(top->note, sizeof(top->note), "the rows of this view have one order");
		return;
	}
	top->order[top->view]++;
	if (!view_order(top->view, top->order[top->view]))
		top->order[top->view] = 0;
	begin_anew(top);
}

static void move(struct top_model *top, long lines)
{
	long to = (long)top->chosen + lines;

	top->moved = true;
	top->chosen = to < 0 ? 0 : (size_t)to >= top->lines.nr ? top->lines.nr - !!top->lines.nr : (size_t)to;
}

static void change_speed(struct top_model *top, int faster)
{
	if (!top->replay)
		snprintf(top->note, sizeof(top->note), "only a FILE is replayed faster or slower");
	else if (faster > 0 ? top->speed + 1 < ARRAY_SIZE(speeds) : top->speed > 0)
		top->speed += faster;
	top->due_ns = 0;
}

static void freeze(struct top_model *top)
{
	top->frozen = !top->frozen;
	top->due_ns = 0;
}

static void move_by_key(struct top_model *top, int key)
{
	int page = top->rows - 3;

	switch (key) {
	case TOP_UP:
	case 'k':
		move(top, -1);
		break;
	case TOP_DOWN:
	case 'j':
		move(top, 1);
		break;
	case TOP_PAGE_UP:
		move(top, -page);
		break;
	case TOP_PAGE_DOWN:
		move(top, page);
		break;
	case TOP_HOME:
	case 'g':
		move(top, -(long)top->lines.nr);
		break;
	case TOP_END:
	case 'G':
		move(top, top->lines.nr);
		break;
	case TOP_LEFT:
	case 'h':
		seek(top, -1);
		break;
	case TOP_RIGHT:
	case 'l':
		seek(top, 1);
		break;
	case '0':
		seek_end(top, false);
		break;
	case 'e':
		seek_end(top, true);
		break;
	case '<':
	case '>':
		change_speed(top, key == '>' ? 1 : -1);
		break;
	default:
		break;
	}
}

bool top_key(struct top_model *top, int key)
{
	top->changed = true;
	if (top->stale)
		make_lines(top);
	*top->note = '\0';
	if (top->typing) {
		type_key(top, key);
		return true;
	}
	if (key >= '1' && key <= '1' + MESSAGES) {
		show_view(top, key - '1');
		return true;
	}
	switch (key) {
	case 'q':
	case 'Q':
	case 3:
		return false;
	case '\t':
		show_view(top, (top->view + 1) % (MESSAGES + 1));
		break;
	case '?':
		top->help = !top->help;
		top->stale = true;
		top->moved = false;
		top->first = 0;
		break;
	case TOP_ENTER:
		look_into(top);
		break;
	case TOP_ESCAPE:
	case TOP_ERASE:
		go_back(top);
		break;
	case '/':
		top->typing = true;
		*top->filter = '\0';
		apply_filter(top);
		break;
	case 'n':
	case 'N':
		find_next(top, key == 'n' ? 1 : -1);
		break;
	case 's':
		sort_next(top);
		break;
	case 'w':
		top->window = (top->window + 1) % ARRAY_SIZE(windows);
		begin_anew(top);
		break;
	case ' ':
	case 'z':
		freeze(top);
		break;
	default:
		move_by_key(top, key);
	}
	return true;
}

/* --- the screen ------------------------------------------------------------------------------- */

static void put_line(struct top_model *top, const char *text, enum line_style style)
{
	struct screen_lines *screen = &top->screen;

	screen->list = xroom(screen->list, screen->nr, &screen->room, sizeof(*screen->list));
	screen->list[screen->nr++] =
		(struct screen_line){line_fitting(text, top->columns, top->utf8), style, NULL};
}

/* The time that is shown, as people read it. */
static void shown_time(const struct top_model *top, char *text, size_t size)
{
	__u64 ns = tape_time(&top->tape, top->position);
	time_t seconds = ns / 1000000000;
	struct tm tm;

	if (!ns || !gmtime_r(&seconds, &tm) || !strftime(text, size, "%H:%M:%S UTC", &tm))
		snprintf(text, size, "no interval yet");
}

static void state_text(const struct top_model *top, char *text, size_t size)
{
	size_t behind = top->tape.end - top->position;

	if (top->frozen && !top->replay)
		snprintf(text, size, "FROZEN, %zu newer records", behind);
	else if (top->replay)
		snprintf(text, size, "%s ×%g, %zu%%",
			 is_at_end(top) ? "END"
			 : top->frozen	? "PAUSED"
					: "PLAYING",
			 speeds[top->speed],
			 top->tape.end > top->tape.first
				 ? 100 * (top->position - top->tape.first) / (top->tape.end - top->tape.first)
				 : 0);
	else
		snprintf(text, size, "%s", top->ended ?: "LIVE");
}

static void put_title(struct top_model *top)
{
	const char *order = top->view < VIEWS ? view_order(top->view, top->order[top->view]) : NULL;
	char time[40], state[300], *title;

	shown_time(top, time, sizeof(time));
	state_text(top, state, sizeof(state));
	title = xasprintf(" %s%d %s │ %s │ %s │ %s%s%s%s%s", top->columns < NARROW ? "" : "nhmtap top │ ",
			  top->view + 1, top->view < VIEWS ? view_name(top->view) : "messages", state, time,
			  windows[top->window].name, order ? " │ by " : "", order ?: "",
			  *top->filter ? " │ /" : "", top->filter);
	put_line(top, title, LINE_BAR);
	free(title);
}

static void put_footer(struct top_model *top)
{
	char *footer;

	if (top->typing)
		footer = xasprintf(" /%s_   Enter: take it, Esc: no filter", top->filter);
	else if (*top->note)
		footer = xasprintf(" %s", top->note);
	else
		footer = xasprintf(" q quit  ? help  1-8 views  Enter into  %s  s sort  z freeze",
				   *top->filter ? "n N next  Esc clear" : "Esc back  / filter");
	put_line(top, footer, LINE_BAR);
	free(footer);
}

const struct screen_lines *top_draw(struct top_model *top)
{
	size_t room = top->rows - 2;

	if (top->stale)
		make_lines(top);
	lines_release(&top->screen);
	if (top->chosen < top->first)
		top->first = top->chosen;
	if (top->chosen >= top->first + room)
		top->first = top->chosen - room + 1;
	put_title(top);
	for (size_t i = top->first; i < top->first + room; i++)
		if (i >= top->lines.nr)
			put_line(top, "", LINE_PLAIN);
		else
			put_line(top, top->lines.list[i].text,
				 i == top->chosen ? LINE_CHOSEN : top->lines.list[i].style);
	put_footer(top);
	top->changed = false;
	return &top->screen;
}
