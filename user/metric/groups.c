// SPDX-License-Identifier: GPL-2.0-only
#include "metric/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "metric/fit.h"

/* --- a group ---------------------------------------------------------------------------------- */

static bool group_has(const struct group *group, const char *name)
{
	for (size_t i = 0; i < group->nr; i++)
		if (!strcmp(group->names[i], name))
			return true;
	return false;
}

static void group_add(struct group *group, char *const *names, size_t nr)
{
	group->names = xrealloc(group->names, (group->nr + nr) * sizeof(*group->names));
	for (size_t i = 0; i < nr; i++)
		if (!group_has(group, names[i]))
			group->names[group->nr++] = xstrdup(names[i]);
}

static struct group group_copy(const struct group *group)
{
	struct group copy = {.apart = group->apart};

	group_add(&copy, group->names, group->nr);
	return copy;
}

static void group_release(struct group *group)
{
	for (size_t i = 0; i < group->nr; i++)
		free(group->names[i]);
	free(group->names);
}

static void write_group(FILE *file, const struct group *group)
{
	bool braces = group->nr > 1 && !group->apart;

	for (size_t i = 0; i < group->nr; i++)
		fprintf(file, "%s%s%s", i ? "," : "", !i && braces ? "{" : "", group->names[i]);
	fprintf(file, "%s", braces ? "}" : "");
}

/* Whether the group fits the counters: 1 or 0, or -1 with the refusal of one of its events. */
static int group_fits(const struct group *group, struct host *host, struct refusal *refusal)
{
	struct group loose = {group->names, group->nr, .apart = true};
	struct events events = {0};
	char *text = NULL;
	size_t size;
	FILE *file = xopen_memstream(&text, &size);
	int fits;

	write_group(file, &loose);
	xclose_memstream(file);
	fits = events_parse(text, host, &events, refusal) ? -1 : events_fit(&events, host);
	events_release(&events);
	free(text);
	return fits;
}

int groups_fit(char *const *names, size_t nr, struct host *host, struct refusal *refusal)
{
	struct group group = {.names = (char **)names, .nr = nr};

	return group_fits(&group, host, refusal);
}

/* --- all of them ------------------------------------------------------------------------------ */

int groups_add(struct groups *groups, char *const *names, size_t nr, struct host *host,
	       struct refusal *refusal)
{
	struct group alone = {0};
	int fits;

	for (size_t i = 0; i < groups->nr; i++) {
		struct group joined = group_copy(&groups->list[i]);

		group_add(&joined, names, nr);
		fits = joined.apart ? joined.nr == groups->list[i].nr : group_fits(&joined, host, refusal);
		if (fits > 0) {
			group_release(&groups->list[i]);
			groups->list[i] = joined;
			return i;
		}
		group_release(&joined);
		if (fits < 0)
			return -1;
	}
	group_add(&alone, names, nr);
	fits = group_fits(&alone, host, refusal);
	if (fits < 0) {
		group_release(&alone);
		return -1;
	}
	alone.apart = !fits;
	*xappend(groups->list, groups->nr) = alone;
	return groups->nr - 1;
}

char *groups_text(const struct groups *groups)
{
	char *text = NULL;
	size_t size;
	FILE *file = xopen_memstream(&text, &size);

	for (size_t i = 0; i < groups->nr; i++) {
		fprintf(file, "%s", i ? "," : "");
		write_group(file, &groups->list[i]);
	}
	xclose_memstream(file);
	return text;
}

size_t groups_place(const struct groups *groups, size_t group, const char *name)
{
	size_t place = 0;

	for (size_t i = 0; i < group; i++)
		place += groups->list[i].nr;
	for (char **at = groups->list[group].names; strcmp(*at, name); at++)
		place++;
	return place;
}

void groups_release(struct groups *groups)
{
	for (size_t i = 0; i < groups->nr; i++)
		group_release(&groups->list[i]);
	free(groups->list);
	*groups = (struct groups){0};
}
