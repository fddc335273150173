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

static inline void put_nine_digits(char *at, unsigned int number)
{
	for (int i = 7; i > 0; i -= 2, number /= 100)
		put_two_digits(at + i, number % 100);
	*at = '0' + number;
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

/* The longest number is "-9223372036854775808", and the longest address "\"0xffffffffffffffff\"". */
#define NUMBER_ROOM 24

static inline unsigned int significant_bits(unsigned long long number)
{
	return 64 - __builtin_clzll(number | 1);
}

static inline unsigned int decimal_digits(unsigned long long number)
{
	static const unsigned long long powers[] = {
		0, /* of which 0 is none, so that it has a digit */
		10ULL,
		100ULL,
		1000ULL,
		10000ULL,
		100000ULL,
		1000000ULL,
		10000000ULL,
		100000000ULL,
		1000000000ULL,
		10000000000ULL,
		100000000000ULL,
		1000000000000ULL,
		10000000000000ULL,
		100000000000000ULL,
		1000000000000000ULL,
		10000000000000000ULL,
		100000000000000000ULL,
		1000000000000000000ULL,
		10000000000000000000ULL,
	};
	unsigned int digits = significant_bits(number) * 1233 / 4096; /* log10(2); one less at most */

	return digits + (number >= powers[digits]);
}

/* Writes a number. Returns the end of what was written. There must be NUMBER_ROOM bytes. The digits are
 * written from the last one where they belong: to move them there would wait for each of them. */
static inline char *put_unsigned(char *at, unsigned long long number)
{
	char *end, *last;

	if (number < 10) { /* most are */
		*at = '0' + number;
		return at + 1;
	}
	end = last = at + decimal_digits(number);
	for (; number >= 100; number /= 100)
		put_two_digits(last -= 2, number % 100);
	if (number >= 10)
		put_two_digits(last - 2, number);
	else
		*at = '0' + number;
	return end;
}

static inline char *put_number(char *at, long long number)
{
	if (number >= 0)
		return put_unsigned(at, number);
	*at = '-';
	return put_unsigned(at + 1, -(unsigned long long)number);
}

static inline unsigned int hex_digits(unsigned long long number)
{
	return (significant_bits(number) + 3) / 4;
}

/* Writes "0x1c0" with its quotes, as put_unsigned(). */
static inline char *put_hex(char *at, unsigned long long number)
{
	char *first = mempcpy(at, "\"0x", 3), *end = first + hex_digits(number), *last = end;

	for (; last - first >= 2; number >>= 8)
		put_two_hex_digits(last -= 2, number & 0xff);
	if (last > first)
		*first = "0123456789abcdef"[number];
	*end = '"';
	return end + 1;
}
