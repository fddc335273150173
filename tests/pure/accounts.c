// SPDX-License-Identifier: GPL-2.0-only
/* Reads trees of shares with what was measured of each, a line a share and an empty line behind each tree. A
 * line may end with whether the share lies beside the others, and with a cost that was measured. Prints what
 * user/analyze/account.c makes of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/account.h"

#define SHARES_MOST 40

struct line {
	char name[40], parent[40];
	int formula, estimated, explained, there, none;
};

static void print_account(const struct account *account)
{
	if (account_find(account, "nobody"))
		abort();
	for (size_t i = 0; i < account->nr; i++) {
		const struct accounted_share *share = &account->list[i];

		if (account_find(account, share->known->name) != share)
			abort();
		printf("%s %d %.17g %.17g %.17g %.17g\n", share->known->name, share->there, share->share,
		       share->low, share->high, share->serial);
	}
	printf("verdict");
	for (size_t i = 0; i < account->nr_verdict; i++)
		printf(" %s", account->list[account->verdict[i]].known->name);
	printf("\n\n");
}

int main(void)
{
	static struct line lines[SHARES_MOST];
	struct known_share known[SHARES_MOST] = {0};
	struct measured_share measured[SHARES_MOST] = {0};
	struct account account;
	char *text = NULL;
	size_t size, nr = 0;

	while (getline(&text, &size, stdin) > 0) {
		struct line *line = &lines[nr];
		struct cost_range cost = {0};
		int beside = 0;

		if (sscanf(text, "%39s %39s %d %d %d %u %u %u %d %d %lf %lf %lf %d %lf %lf %lf", line->name,
			   line->parent, &line->formula, &line->estimated, &line->explained,
			   &known[nr].cost_low, &known[nr].cost, &known[nr].cost_high, &line->there,
			   &line->none, &measured[nr].value, &measured[nr].low, &measured[nr].high, &beside,
			   &cost.low, &cost.usual, &cost.high) >= 13) {
			cost.samples = cost.high > 0;
			measured[nr].cost = cost;
			known[nr].beside = beside;
			known[nr].name = line->name;
			known[nr].parent = strcmp(line->parent, "-") ? line->parent : NULL;
			known[nr].description = "";
			known[nr].formula = line->formula ? "formula" : NULL;
			known[nr].estimated = line->estimated;
			known[nr].explained = line->explained;
			measured[nr].there = line->there;
			measured[nr].none = line->none;
			strcpy(measured[nr].why, "not counted");
			nr++;
			continue;
		}
		account_make(&account, known, nr, measured);
		print_account(&account);
		account_release(&account);
		nr = 0;
	}
	free(text);
	return 0;
}
