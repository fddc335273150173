// SPDX-License-Identifier: GPL-2.0-only
/* usage: solo GROUPS TURNS: prints who has the counters alone in each turn, by the group's number; -1:
 * nobody. Then, in a line of its own, the time that the others have missed at 5, 7 and 6 ns of enabled time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "collection/solo.h"

/* Groups of two events each. */
bool event_leads(const struct events *events, size_t i)
{
	return !(i % 2);
}

int main(int argc, char **argv)
{
	size_t nr = 2 * atoi(argv[1]);
	struct event *events = calloc(nr, sizeof(*events));
	struct plan plan = {.events = {.list = events, .nr = nr}};
	int *fds = calloc(nr, sizeof(*fds));
	struct solo solo;

	for (size_t i = 0; i < nr; i++) {
		events[i].attr.type = PERF_TYPE_RAW;
		events[i].attr.disabled = !(i % 2);
		fds[i] = -1;
	}
	solo_begin(&solo, &plan);
	for (int turn = atoi(argv[2]); turn--;) {
		solo_choose(&solo, true);
		solo_switch(&solo, 0, fds, 3);
		for (size_t i = 0; i < nr; i++)
			if (solo_silences(&solo, &plan, i, 0) !=
			    (solo.alone != SOLO_NONE && i / 2 != solo.alone / 2))
				return 1;
		printf("%d ", solo.alone == SOLO_NONE ? -1 : (int)solo.alone / 2);
	}
	printf("\n");
	while (solo.nr && !solo_is_on(&solo, 0)) {
		solo_choose(&solo, true);
		solo_switch(&solo, 0, fds, 3);
	}
	if (solo.nr) {
		printf("%llu ", solo_missed_ns(&solo, 0, 5));
		printf("%llu ", solo_missed_ns(&solo, 0, 7));
		printf("%llu\n", solo_missed_ns(&solo, 0, 6));
	}
	solo_release(&solo);
	free(events);
	free(fds);
	return 0;
}
