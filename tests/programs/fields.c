// SPDX-License-Identifier: GPL-2.0-only
/*
 * fields: stores to fields of variables, each on a page of its own that is touched for the first time, so
 * that each store gives one fault.
 */
#define PAGE	 4096
#define OWN_PAGE __attribute__((aligned(PAGE)))

struct pair {
	long low OWN_PAGE;
	long high OWN_PAGE;
};

struct whole {
	int first OWN_PAGE;
	struct pair pairs[2];
	union {
		long number;
		double real;
	} either OWN_PAGE;
	union {
		long one;
		char other[8];
	} OWN_PAGE;
	unsigned int few : 3, more : 5;
	struct {
		const char *text OWN_PAGE;
	};
	short list[4] OWN_PAGE;
};

typedef struct {
	unsigned long member OWN_PAGE;
} unnamed;

enum colour { RED, GREEN };
typedef long number;
union both {
	struct pair pair;
	long alone;
};

volatile struct whole whole;
volatile struct pair pairs[3];
static volatile unnamed alias;
volatile enum colour colour OWN_PAGE;
volatile number numbers[4][PAGE / sizeof(number)] OWN_PAGE;
struct pair *volatile pointer OWN_PAGE;
void (*volatile function)(void) OWN_PAGE;
volatile union both both;

/* `few` and `more` share a unit with no other member, but the page of the union before them. */
static void store(void)
{
	static volatile double inside OWN_PAGE;

	whole.first = 1;
	whole.pairs[0].low = whole.pairs[1].low = 1;
	whole.pairs[1].high = 1;
	whole.either.number = 1;
	whole.more = 1;
	whole.text = "text";
	whole.list[2] = 1;
	for (int i = 0; i < 3; i++)
		pairs[i].high = 1;
	alias.member = 1;
	colour = GREEN;
	for (int i = 0; i < 4; i++)
		numbers[i][i] = 1;
	pointer = 0;
	function = 0;
	both.pair.high = 1;
	inside = 0;
	(void)inside;
}

int main(void)
{
	store();
	return 0;
}
