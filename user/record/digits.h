/* SPDX-License-Identifier: GPL-2.0-only */
/* Digits, written two at a time, because numbers and times are half of the cost of writing a count
 * record. */
#pragma once

#include <string.h>

/* Writes the two digits of a number below 100. */
static inline void put_two_digits(char *at, unsigned int number)
{
	static const char pairs[] = "000102030405060708091011121314151617181920212223242526272829303132333435"
				    "363738394041424344454647484950515253545556575859606162636465666768697071"
				    "72737475767778798081828384858687888990919293949596979899";

	memcpy(at, pairs + 2 * number, 2);
}

/* Writes the two hexadecimal digits of a byte. */
static inline void put_two_hex_digits(char *at, unsigned int byte)
{
#define WITH(high)                                                                                           \
	high "0" high "1" high "2" high "3" high "4" high "5" high "6" high "7" high "8" high "9" high       \
	     "a" high "b" high "c" high "d" high "e" high "f"
	static const char pairs[] = WITH("0") WITH("1") WITH("2") WITH("3") WITH("4") WITH("5") WITH("6")
		WITH("7") WITH("8") WITH("9") WITH("a") WITH("b") WITH("c") WITH("d") WITH("e") WITH("f");
#undef WITH

	memcpy(at, pairs + 2 * byte, 2);
}

/* A number's digits are made from the last one, before they are moved to their place. NUMBER_MOST bytes are
 * copied there, since a fixed number takes no call and no loop. The longest number is
 * "-9223372036854775808", and the longest address "\"0xffffffffffffffff\"". */
#define NUMBER_MOST 20
#define NUMBER_ROOM 24

struct digits {
	char text[2 * NUMBER_MOST];
};

static inline char *move_digits(char *at, const struct digits *digits, const char *first)
{
	memcpy(at, first, NUMBER_MOST);
	return at + (digits->text + NUMBER_MOST - first);
}

/* Writes a number. Returns the end of what was written. There must be NUMBER_ROOM bytes. */
static inline char *put_unsigned(char *at, unsigned long long number)
{
	struct digits digits;
	char *first = digits.text + NUMBER_MOST;

	if (number < 10) {
		*at = '0' + number;
		return at + 1;
	}
	for (; number >= 100; number /= 100)
		put_two_digits(first -= 2, number % 100);
	if (number >= 10)
		put_two_digits(first -= 2, number);
	else
		*--first = '0' + number;
	return move_digits(at, &digits, first);
}

static inline char *put_number(char *at, long long number)
{
	if (number >= 0)
		return put_unsigned(at, number);
	*at = '-';
	return put_unsigned(at + 1, -(unsigned long long)number);
}

/* Writes "0x1c0" with its quotes, as put_unsigned(). */
static inline char *put_hex(char *at, unsigned long long number)
{
	struct digits digits;
	char *first = digits.text + NUMBER_MOST;

	*--first = '"';
	do
		put_two_hex_digits(first -= 2, number & 0xff);
	while (number >>= 8);
	first += *first == '0';
	memcpy(first -= 2, "0x", 2);
	*--first = '"';
	return move_digits(at, &digits, first);
}
