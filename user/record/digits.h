/* SPDX-License-Identifier: GPL-2.0-only */
/* Decimal digits, written two at a time, because numbers and times are half of the cost of writing a count
 * record. */
#ifndef NHMTAP_DIGITS_H
#define NHMTAP_DIGITS_H

#include <string.h>

/* Writes the two digits of a number below 100. */
static inline void put_two_digits(char *at, unsigned int number)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";

	memcpy(at, pairs + 2 * number, 2);
}

#endif
