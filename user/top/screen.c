// SPDX-License-Identifier: GPL-2.0-only
#include "top/screen.h"

#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Macros of ncurses lead around functions that are loaded late. */
#define NCURSES_NOMACROS
#include <curses.h>

#include "base/array.h"
#include "base/late.h"
#include "output/text.h"
#include "top/model.h"

/* term.h would make columns, lines and other words macros. */
int setupterm(const char *name, int fd, int *found);
char *tigetstr(const char *name);
struct term *set_curterm(struct term *terminal);
int del_curterm(struct term *terminal);

#define FUNCTIONS(X)                                                                                         \
	X(curs_set)                                                                                          \
	X(curses_version)                                                                                    \
	X(del_curterm)                                                                                       \
	X(delscreen)                                                                                         \
	X(endwin)                                                                                            \
	X(getmaxx)                                                                                           \
	X(getmaxy)                                                                                           \
	X(has_colors)                                                                                        \
	X(init_pair)                                                                                         \
	X(keypad)                                                                                            \
	X(newterm)                                                                                           \
	X(newwin)                                                                                            \
	X(nodelay)                                                                                           \
	X(noecho)                                                                                            \
	X(raw)                                                                                               \
	X(set_curterm)                                                                                       \
	X(set_escdelay)                                                                                      \
	X(setupterm)                                                                                         \
	X(start_color)                                                                                       \
	X(tigetstr)                                                                                          \
	X(use_default_colors)                                                                                \
	X(waddnstr)                                                                                          \
	X(wattrset)                                                                                          \
	X(wgetch)                                                                                            \
	X(wmove)                                                                                             \
	X(wrefresh)

static const char *ncurses_version(void)
{
	return curses_version();
}

DEFINE_LATE(libncurses, LIBNCURSES_SONAME, "libncursesw6", FUNCTIONS, ncurses_version);

static struct {
	FILE *in, *out;
	SCREEN *screen;
	WINDOW *window;
	bool colours;
} opened;

static int refuse_terminal(const char *why, const char *remedy, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "command 'top'");
	because(refusal, "%s", why);
	return instead(refusal, "%s", remedy);
}

/* The terminal: that of stdin and stdout, or else the process's own, since these may be anything. */
static bool open_terminal(void)
{
	bool own = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	int in = own ? dup(STDIN_FILENO) : open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	int out = own ? dup(STDOUT_FILENO) : in < 0 ? -1 : dup(in);

	opened.in = in < 0 ? NULL : fdopen(in, "r");
	opened.out = out < 0 ? NULL : fdopen(out, "w");
	return opened.in && opened.out;
}

/* Whether text can be placed on the screen. *found is 1 if the terminal's type is known. */
static bool places_text(int *found)
{
	struct term *description;
	bool places;

	if (setupterm(NULL, fileno(opened.out), found) != OK)
		return false;
	places = tigetstr("cup") && tigetstr("cup") != (char *)-1;
	description = set_curterm(NULL); /* newterm() makes one of its own */
	if (description)
		del_curterm(description);
	return places;
}

static int check_terminal(struct refusal *refusal)
{
	const char *name = getenv("TERM");
	char why[200];
	int found;

	if (!open_terminal())
		return refuse_terminal("it needs a terminal, and there is none",
				       "nhmtap profile --format table prints its tables without one",
				       refusal);
	if (places_text(&found))
		return 0;
	snprintf(why, sizeof(why), "the terminal's type, TERM=%.60s, %s", name ? name : "(not set)",
		 found == 1 ? "can't place text on the screen" : "is not known here");
	return refuse_terminal(why, "set TERM to what the terminal is, xterm or vt100, or use nhmtap profile",
			       refusal);
}

/* The locale of the user, or another one of UTF-8 if it is not installed. */
static bool choose_locale(void)
{
	if (!setlocale(LC_CTYPE, "") && text_takes_utf8())
		setlocale(LC_CTYPE, "C.UTF-8");
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

static const short colours[LINE_STYLES] = {
	[LINE_TITLE] = COLOR_GREEN, [LINE_COLUMNS] = COLOR_CYAN, [LINE_REMARK] = COLOR_YELLOW};

/* NO_COLOR: see no-color.org. */
static void begin_colours(void)
{
	const char *none = getenv("NO_COLOR");

	opened.colours = !(none && *none) && has_colors() && start_color() == OK;
	if (!opened.colours)
		return;
	use_default_colors();
	for (int style = 0; style < LINE_STYLES; style++)
		if (colours[style])
			init_pair(style, colours[style], -1);
}

static void close_screen(void)
{
	if (opened.screen) {
		endwin();
		delscreen(opened.screen);
	}
	if (opened.in)
		fclose(opened.in);
	if (opened.out)
		fclose(opened.out);
	memset(&opened, 0, sizeof(opened));
}

static int open_screen(bool *utf8, int *fd, struct refusal *refusal)
{
	if (late_need(&libncurses, "command", "top", refusal))
		return -1;
	*utf8 = choose_locale();
	if (check_terminal(refusal)) {
		close_screen();
		return -1;
	}
	opened.screen = newterm(NULL, opened.out, opened.in);
	opened.window = opened.screen ? newwin(0, 0, 0, 0) : NULL;
	if (!opened.window) {
		close_screen();
		return refuse_terminal("ncurses can't use the terminal", "use nhmtap profile", refusal);
	}
	raw();
	noecho();
	curs_set(0);
	set_escdelay(25);
	keypad(opened.window, TRUE);
	nodelay(opened.window, TRUE);
	begin_colours();
	*fd = fileno(opened.in);
	return 0;
}

static void screen_size(int *columns, int *rows)
{
	*columns = getmaxx(opened.window);
	*rows = getmaxy(opened.window);
}

static int style_of(enum line_style style)
{
	static const int plain[LINE_STYLES] = {[LINE_TITLE] = A_BOLD,
					       [LINE_COLUMNS] = A_BOLD,
					       [LINE_BAR] = A_REVERSE,
					       [LINE_CHOSEN] = A_REVERSE};

	return plain[style] | (opened.colours && colours[style] ? (int)NCURSES_BITS(style, 0) : 0);
}

static void draw_screen(const struct screen_lines *lines)
{
	for (size_t i = 0; i < lines->nr; i++) {
		wattrset(opened.window, style_of(lines->list[i].style));
		wmove(opened.window, i, 0);
		waddnstr(opened.window, lines->list[i].text, -1);
	}
	wrefresh(opened.window);
}

static int screen_key(void)
{
	static const struct {
		int ncurses, ours;
	} keys[] = {{KEY_UP, TOP_UP},		{KEY_DOWN, TOP_DOWN},	  {KEY_LEFT, TOP_LEFT},
		    {KEY_RIGHT, TOP_RIGHT},	{KEY_PPAGE, TOP_PAGE_UP}, {KEY_NPAGE, TOP_PAGE_DOWN},
		    {KEY_HOME, TOP_HOME},	{KEY_END, TOP_END},	  {KEY_ENTER, TOP_ENTER},
		    {KEY_BACKSPACE, TOP_ERASE}, {'\b', TOP_ERASE},	  {'\r', TOP_ENTER}};
	int key = wgetch(opened.window);

	if (key == ERR)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].ncurses == key)
			return keys[i].ours;
	return key < 256 ? key : 0;
}

const struct terminal_screen terminal_screen = {.open = open_screen,
						.size = screen_size,
						.draw = draw_screen,
						.key = screen_key,
						.close = close_screen};
