/* SPDX-License-Identifier: GPL-2.0-only */
/* Types of data, and the fields in them, from the DWARF that lines have opened. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <elfutils/libdw.h>
#include <linux/types.h>

#include "confined/lines.h"

#define TYPE_TEXT 256 /* bytes; longer ones are cut */

struct typed {
	char type[TYPE_TEXT]; /* "struct node", "long int", "char*"; of an array, what its elements are */
	/* "next", "key.low", "slots[].count"; "a|b" if it may be either: members of a union, bit-fields of
	 * one unit, or what an instruction chooses from. "": the type has no fields, or none is there. */
	char field[TYPE_TEXT];
	/* The variable that it is in, if an instruction tells: "own", or "function::local" as debuggers have
	 * it;
	 * "": none is known. */
	char variable[TYPE_TEXT];
	__u64 offset; /* in the variable */
	bool indexed; /* the offset is not known */
};

/* A variable, and a place in it. */
struct in_variable {
	Dwarf_Die die;	    /* .addr is NULL: none is known */
	Dwarf_Die function; /* that has it, perhaps inlined; .addr is NULL: none */
	Dwarf_Die type;
	__u64 offset;
};

/* All return NULL, or why there is no type: TYPE_… of naming/untyped.h. */

/* The type and the field of the byte at an address (before relocation) of a variable that has a fixed one. */
const char *type_of_variable(struct lines *lines, __u64 address, struct typed *typed);

/* The same for the byte at an offset of data of a type, given by its entry. */
const char *type_of_field(struct lines *lines, Dwarf_Die *type, __u64 offset, struct typed *typed);

/* The same for what a pointer to this type, plus an offset, points to. */
const char *type_of_pointed(struct lines *lines, Dwarf_Die *type, __u64 offset, struct typed *typed);

/* Tells a pointer to this type, which need not be described itself. */
void type_of_pointer(struct lines *lines, const Dwarf_Die *type, struct typed *typed);

/* Says that it may also be another field: "a|b". */
void type_add_field(struct typed *typed, const char *field);

/* Goes to the type of what begins at an offset of data of a type: that of a member, or of an element. */
const char *type_of_begin(struct lines *lines, Dwarf_Die *type, __u64 offset);

/* The variable at a fixed address. */
const char *variable_at(struct lines *lines, __u64 address, struct in_variable *found);

/* The same for the variable of threads that is at an offset in each thread's copies of them. */
const char *thread_variable_at(struct lines *lines, __u64 at, struct in_variable *found);

/* The type of the struct that Go keeps of each goroutine; false: this is no program of Go. */
bool type_of_goroutine(struct lines *lines, Dwarf_Die *type);

/* Whether a compiler of Go made this entry's code. */
bool type_is_go(Dwarf_Die die);

/* Sets the variable of `typed`. */
void type_name_variable(const struct lines *lines, const struct in_variable *in, bool indexed,
			struct typed *typed);

/* Whether this is a class without members. */
bool type_is_empty(struct lines *lines, Dwarf_Die type);

/* Whether data of another type begin at an offset of the data of a type: as a member, its first member, and
 * so on.
 */
bool type_has_at(struct lines *lines, Dwarf_Die whole, __u64 offset, Dwarf_Die part);

/* Goes from a base class to the only class derived from it that an iterator's class has a name for: iterators
 * have a pointer to a base class of their container's nodes, and a name for these. Other classes stay what
 * they are: the data may be of any class derived from it. */
void type_of_derived(struct lines *lines, Dwarf_Die of, Dwarf_Die *base);

/* Bytes of an element, if data at an offset of a type begins in the first element of an array, or of one in
 * it: where an index counts from. 0: it does not. */
__u64 type_element(struct lines *lines, Dwarf_Die type, __u64 offset);

/* Whether a function that returns data of this type returns their begin in a register, and not their address.
 */
bool type_is_in_register(struct lines *lines, Dwarf_Die type);

/* Whether two types are the same but for qualifiers and typedefs, also those of what they point to. */
bool type_is_same(const struct lines *lines, Dwarf_Die a, Dwarf_Die b);

/* Bytes of a type; 0: not known. */
__u64 type_size(struct lines *lines, const Dwarf_Die *type);

/* How far elements of a type are apart; 0: not known, or there are none, since it ends in an open array. */
__u64 type_stride(struct lines *lines, const Dwarf_Die *type);

/* Goes from a variable, parameter or member to its type. */
bool type_of_entry(const struct lines *lines, Dwarf_Die *die);

/* Goes through typedefs and qualifiers to the type itself. Returns false if there is none, as for void. */
bool type_peel(const struct lines *lines, Dwarf_Die *type);
