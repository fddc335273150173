/* SPDX-License-Identifier: GPL-2.0-only */
/* The members of the structs of known_event.h, by which their rows are read from the tables' JSON, and
 * written as C by events/compile.c. */
#pragma once

#include <stddef.h>
#include <jansson.h>

struct loader;

enum row_member_kind { MEMBER_TEXT, MEMBER_UNSIGNED, MEMBER_SIGNED, MEMBER_TEXTS, MEMBER_LIST, MEMBER_ONE };

struct row_member {
	enum row_member_kind kind;
	const char *name;
	size_t offset;
	size_t size;		     /* of MEMBER_UNSIGNED and MEMBER_SIGNED */
	size_t nr;		     /* of MEMBER_TEXTS and MEMBER_LIST: where their number is */
	const struct row_layout *of; /* of MEMBER_LIST and MEMBER_ONE: what they point at */
};

struct row_layout {
	const char *type; /* "struct known_event" */
	size_t size;
	const struct row_member *members;
	size_t nr;
};

extern const struct row_layout known_event_layout, known_alias_layout, offcore_register_layout,
	offcore_part_layout, offcore_preset_layout, known_offcore_layout, known_data_source_layout,
	known_branch_kind_layout, kernel_rule_layout, known_generic_layout, known_erratum_layout,
	known_microcode_layout, known_kernel_layout, unit_number_layout, unit_field_layout, unit_start_layout,
	unit_counter_layout, unit_escr_layout, unit_metric_layout, unit_kind_layout, known_unit_layout,
	source_claim_layout, known_contradiction_layout, known_metric_layout, known_share_layout,
	known_identity_layout, cpu_model_layout, known_section_layout, known_processor_layout,
	cpu_events_layout, known_source_layout;

/* Reads what an entry says of a row into the row's members of the same names: texts; numbers, which may be
 * hexadecimal digits, a flag, or a list of bits; and lists, which the loader owns. The others stay as they
 * are, and so do those for which the entry has an object. */
void row_read(struct loader *loader, const struct row_layout *layout, const json_t *entry, void *row);
