/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The members of an aggregation's keys and values, and how its tables lie in memory. Both are read from the
 * BTF of its BPF object, so that a new file in bpf/ needs no code here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct btf;

/* A member of the key or value struct. Names are constant while the aggregation is open. */
struct member {
	const char *name; /* "ip" */
	const char *type; /* its typedef's name, "address_t"; "" if it has none */
	size_t offset, size;
	bool optional; /* keys: used only on request */
	bool shown;    /* keys: used in this run and shown in records */
	bool streamed; /* keys: shown in each sample of the stream */
	bool maximum;  /* values: merged by the maximum, not the sum */
};

struct layout {
	struct member *keys, *values;
	size_t nr_keys, nr_values;
	size_t key_size, value_size;
	const char **by; /* the keys used in this run, of those that can be switched on */
	size_t nr_by;
};

/* How the table of one CPU lies in memory: struct table in bpf/table.bpf.h. All are bytes but nr_slots. */
struct table_layout {
	size_t size;
	size_t generations, order, slots; /* offsets in the table */
	size_t nr_slots;		  /* of one generation */
	size_t slot_size, key, value;	  /* offsets in a slot */
};

/* Reads struct table and the types of its members. All keys are marked as shown; `by` is left empty. Returns
 * 0, or -EINVAL if the object has no such tables. */
int layout_read(struct layout *layout, struct table_layout *table, const struct btf *btf);
void layout_release(struct layout *layout);

/* The key's member of this name, of the given length; NULL if there is none. */
struct member *layout_key(const struct layout *layout, const char *name, size_t length);

struct member *layout_key_named(const struct layout *layout, const char *name);

/* The key's first member of this type ("stack_id_t"); NULL if there is none. */
const struct member *layout_key_of_type(const struct layout *layout, const char *type);
