// SPDX-License-Identifier: GPL-2.0-only
/*
 * objects: a store to a page that is touched for the first time in each of some functions of C++. Their names say
 * what they are given, and what is said of the store is known by construction.
 */
#include <cstddef>
#include <memory>
#include <sys/mman.h>

#define PAGE  4096
#define APART extern "C" __attribute__((noinline))

struct root {
	virtual ~root()
	{
	}
	long id;
};

struct left : root {
	long own;
};

struct right {
	long low, high;
};

struct both : left, right {
	double weight;
};

template <class T, int N> struct box {
	T list[N];
	T value;
	box *next;
};

union either {
	double real;
	struct {
		char text[12];
		short mark;
	} inside;
};

struct slice {
	right *first;
	long nr;
};

struct bits {
	unsigned few : 3, more : 9;
	int whole;
};

struct item {
	short kind;
	int list[3];
};

struct table {
	item items[10];
	item **behind;
};

static char *next;

/* Memory of which no page was touched. */
template <class T> static T *page()
{
	next += PAGE;
	return (T *)next;
}

APART void first_base(both *to)
{
	to->id = 1;
}

APART void second_base(both &to)
{
	to.high = 1;
}

APART void own_member(both *to)
{
	to->weight = 1;
}

APART void of_template(box<short, 7> *to)
{
	to->value = 1;
}

APART void of_union(either *to)
{
	to->inside.mark = 1;
}

APART void beside_bits(bits *to)
{
	to->whole = 1;
}

APART void bit_field(bits *to)
{
	to->more = 1;
}

APART void in_array(table *to, long i)
{
	to->items[i].list[1] = 1;
}

APART void of_array(item *to, long i)
{
	to[i].kind = 1;
}

APART void behind_pointer(item **to)
{
	(*to)->kind = 1;
}

/* What is inlined has pointers to the parts that a smart pointer begins with, and to its base classes that are empty. */
APART void by_unique(std::unique_ptr<right> &to)
{
	to->high = 1;
}

APART void by_shared(std::shared_ptr<right> &to)
{
	to->high = 1;
}

/* Which member is known at run time only. */
APART void any_member(both *to, long right::*which)
{
	to->*which = 1;
}

APART void at_bytes(right *to, long offset)
{
	*(long *)((char *)to + offset) = 1;
}

/* The pointer is the index, and there is no base that the instruction before could have written. */
APART void by_index(right *to)
{
	asm volatile("nop\n\tmovq $1, %c1(,%0,1)" ::"r"(to), "i"(offsetof(right, high)) : "memory");
}

/* The two members of what is passed are in registers of their own. */
APART void by_slice(slice to)
{
	to.first->high = to.nr;
}

/* It may lead to any class derived from right: the one that handle has a name for is no iterator's. */
struct farther : right {
	long more;
};

struct handle {
	using preferred = farther;
	right *to;
};

APART void by_handle(handle of, handle::preferred *)
{
	of.to->high = 1;
}

/* Where it ends is no variable of its own in the program. */
APART void by_iterator(right *to)
{
	right *end = to + 1;

	to->high = 1;
	asm volatile("" ::"r"(end));
}

/* What is wider than a byte is no byte. */
APART void behind_bytes(char *to)
{
	*(long *)to = 1;
}

APART void of_bytes(char *to)
{
	to[1] = 1;
}

static left used;
static both used_too;

int main()
{
	std::unique_ptr<right> unique;
	std::shared_ptr<right> shared;
	item *one;

	/* Without a use, there is no description of a class with virtual functions. */
	asm volatile("" ::"r"(&used), "r"(&used_too));
	next = (char *)mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	first_base(page<both>());
	second_base(*page<both>());
	own_member(page<both>());
	of_template(page<box<short, 7>>());
	of_union(page<either>());
	beside_bits(page<bits>());
	bit_field(page<bits>());
	in_array(page<table>(), 3);
	of_array(page<item>(), 5);
	one = page<item>();
	behind_pointer(&one);
	unique.reset(page<right>());
	by_unique(unique);
	unique.release();
	shared.reset(page<right>(), [](right *) {});
	by_shared(shared);
	any_member(page<both>(), &right::high);
	at_bytes(page<right>(), sizeof(long));
	by_index(page<right>());
	by_slice(slice{page<right>(), 1});
	by_handle(handle{page<right>()}, nullptr);
	by_iterator(page<right>());
	behind_bytes(page<char>());
	of_bytes(page<char>());
	return 0;
}
