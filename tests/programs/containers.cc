// SPDX-License-Identifier: GPL-2.0-only
/* containers N: loads what N nodes and elements of containers have, several times each, by what is inlined. */
#include <cstdlib>
#include <list>
#include <map>
#include <vector>

#define APART extern "C" __attribute__((noinline))

struct point {
	long low, high;
};

static std::map<long, point> map;
static std::vector<point> vector;
static std::list<point> list;

volatile long result;

/* Where the next node is, the library finds: its loads are its own. */
APART long sum_map(const std::map<long, point> &from)
{
	long sum = 0;

	for (auto &pair : from)
		sum += pair.first + pair.second.low;
	return sum;
}

APART long find_map(const std::map<long, point> &from, long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++) {
		auto found = from.find(i * 7 % n);

		if (found != from.end())
			sum += found->second.high;
	}
	return sum;
}

APART long sum_vector(const std::vector<point> &from)
{
	long sum = 0;

	for (auto &one : from)
		sum += one.low - one.high;
	return sum;
}

APART long sum_list(const std::list<point> &from)
{
	long sum = 0;

	for (auto &one : from)
		sum += one.low - one.high;
	return sum;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000, few = n / 16 + 1;

	for (long i = 0; i < few; i++) {
		map[i] = {i, i};
		vector.push_back({i, 1});
		list.push_back({i, 1});
	}
	for (int turn = 0; turn < 8; turn++)
		result += sum_map(map) + find_map(map, few) + sum_vector(vector) + sum_list(list);
	return 0;
}
