// SPDX-License-Identifier: GPL-2.0-only
#include "tables/row_layout.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tables/known_event.h"
#include "tables/loader.h"

/*
 * The members of each struct, all of them and in their order. X is ROW_ for the layout's rows, or ZERO_ for
 * an initialiser of zeros, which the compiler refuses where a member of the struct is not named here.
 */
#define known_event_MEMBERS(X, type)                                                                         \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, description), X##VALUE(TEXT, type, topic),          \
		X##VALUE(UNSIGNED, type, config), X##VALUE(UNSIGNED, type, config1),                         \
		X##VALUE(UNSIGNED, type, default_period), X##VALUE(UNSIGNED, type, counters),                \
		X##VALUE(SIGNED, type, fixed_counter), X##VALUE(UNSIGNED, type, precise),                    \
		X##VALUE(SIGNED, type, architectural), X##VALUE(UNSIGNED, type, umask_field),                \
		X##VALUE(TEXT, type, errata), X##VALUE(TEXT, type, source)
#define known_alias_MEMBERS(X, type)                                                                         \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, of), X##VALUE(TEXT, type, source)
#define offcore_register_MEMBERS(X, type)                                                                    \
	X##VALUE(TEXT, type, name), X##VALUE(UNSIGNED, type, config), X##VALUE(UNSIGNED, type, msr),         \
		X##VALUE(UNSIGNED, type, counters)
#define offcore_part_MEMBERS(X, type)                                                                        \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, description), X##VALUE(UNSIGNED, type, bits),       \
		X##VALUE(UNSIGNED, type, kinds)
#define offcore_preset_MEMBERS(X, type)                                                                      \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, requests), X##VALUE(TEXT, type, responses)
#define known_offcore_MEMBERS(X, type)                                                                       \
	X##LIST(LIST, type, registers, &offcore_register_layout),                                            \
		X##LIST(LIST, type, requests, &offcore_part_layout),                                         \
		X##LIST(LIST, type, responses, &offcore_part_layout),                                        \
		X##LIST(LIST, type, presets, &offcore_preset_layout),                                        \
		X##LIST(LIST, type, aliases, &known_alias_layout), X##VALUE(UNSIGNED, type, reserved),       \
		X##VALUE(UNSIGNED, type, ignored), X##VALUE(TEXT, type, ignored_source),                     \
		X##VALUE(UNSIGNED, type, default_period), X##VALUE(TEXT, type, source)
#define known_data_source_MEMBERS(X, type)                                                                   \
	X##VALUE(UNSIGNED, type, code), X##VALUE(UNSIGNED, type, reserved), X##VALUE(TEXT, type, name),      \
		X##VALUE(TEXT, type, description), X##VALUE(UNSIGNED, type, perf_data_src),                  \
		X##VALUE(TEXT, type, perf)
#define known_branch_kind_MEMBERS(X, type)                                                                   \
	X##VALUE(TEXT, type, filter), X##VALUE(UNSIGNED, type, records), X##VALUE(TEXT, type, note),         \
		X##VALUE(TEXT, type, why), X##VALUE(TEXT, type, source), X##VALUE(TEXT, type, remedy)
#define kernel_rule_MEMBERS(X, type)                                                                         \
	X##VALUE(UNSIGNED, type, mask), X##VALUE(UNSIGNED, type, config),                                    \
		X##VALUE(UNSIGNED, type, counters), X##VALUE(SIGNED, type, fixed_counter),                   \
		X##VALUE(UNSIGNED, type, exclusive), X##VALUE(UNSIGNED, type, several)
#define known_generic_MEMBERS(X, type)                                                                       \
	X##VALUE(TEXT, type, name), X##VALUE(UNSIGNED, type, config), X##VALUE(UNSIGNED, type, config1),     \
		X##VALUE(TEXT, type, note)
#define known_erratum_MEMBERS(X, type)                                                                       \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, description), X##VALUE(UNSIGNED, type, all_events)
#define known_microcode_MEMBERS(X, type)                                                                     \
	X##VALUE(UNSIGNED, type, model), X##VALUE(UNSIGNED, type, stepping),                                 \
		X##VALUE(UNSIGNED, type, revision)
#define known_kernel_MEMBERS(X, type)                                                                        \
	X##LIST(LIST, type, precise, &kernel_rule_layout), X##LIST(LIST, type, placed, &kernel_rule_layout), \
		X##LIST(LIST, type, generic, &known_generic_layout),                                         \
		X##LIST(LIST, type, errata, &known_erratum_layout), X##VALUE(UNSIGNED, type, lowest_period), \
		X##VALUE(UNSIGNED, type, beyond_period), X##VALUE(UNSIGNED, type, access_bits),              \
		X##VALUE(UNSIGNED, type, own_registers), X##VALUE(UNSIGNED, type, precise_cycles),           \
		X##VALUE(TEXT, type, record), X##LIST(LIST, type, microcode, &known_microcode_layout),       \
		X##VALUE(TEXT, type, source)
#define unit_number_MEMBERS(X, type) X##VALUE(TEXT, type, name), X##VALUE(UNSIGNED, type, value)
#define unit_field_MEMBERS(X, type)                                                                          \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, title), X##VALUE(TEXT, type, description),          \
		X##VALUE(UNSIGNED, type, low), X##VALUE(UNSIGNED, type, high), X##VALUE(TEXT, type, usual),  \
		X##VALUE(TEXT, type, usual_smt), X##VALUE(UNSIGNED, type, sets),                             \
		X##LIST(LIST, type, values, &unit_number_layout)
#define unit_start_MEMBERS(X, type) X##VALUE(UNSIGNED, type, counter), X##VALUE(TEXT, type, by)
#define unit_counter_MEMBERS(X, type)                                                                        \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, cccr), X##VALUE(UNSIGNED, type, msr),               \
		X##VALUE(UNSIGNED, type, cccr_msr), X##LIST(LIST, type, after, &unit_start_layout),          \
		X##VALUE(TEXT, type, unusable)
#define unit_escr_MEMBERS(X, type)                                                                           \
	X##VALUE(TEXT, type, name), X##VALUE(UNSIGNED, type, msr), X##VALUE(UNSIGNED, type, counters)
#define unit_metric_MEMBERS(X, type)                                                                         \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, description), X##VALUE(UNSIGNED, type, enable),     \
		X##VALUE(UNSIGNED, type, matrix)
#define unit_kind_MEMBERS(X, type)                                                                           \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, description), X##VALUE(UNSIGNED, type, always),     \
		X##LIST(LIST, type, counters, &unit_number_layout),                                          \
		X##LIST(LIST, type, fields, &unit_field_layout),                                             \
		X##LIST(LIST, type, escrs, &unit_escr_layout),                                               \
		X##LIST(LIST, type, metrics, &unit_metric_layout)
#define known_unit_MEMBERS(X, type)                                                                          \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, description), X##VALUE(TEXT, type, source),         \
		X##VALUE(UNSIGNED, type, scope), X##VALUE(UNSIGNED, type, count_bits),                       \
		X##VALUE(UNSIGNED, type, wraps_in_ms), X##VALUE(UNSIGNED, type, rdpmc),                      \
		X##VALUE(TEXT, type, control), X##VALUE(UNSIGNED, type, control_msr),                        \
		X##VALUE(UNSIGNED, type, freeze), X##VALUE(UNSIGNED, type, unfreeze),                        \
		X##VALUE(UNSIGNED, type, reset), X##VALUE(UNSIGNED, type, select),                           \
		X##VALUE(UNSIGNED, type, status), X##LIST(LIST, type, counters, &unit_counter_layout),       \
		X##LIST(LIST, type, fields, &unit_field_layout),                                             \
		X##LIST(LIST, type, replay, &unit_number_layout),                                            \
		X##LIST(LIST, type, kinds, &unit_kind_layout)
#define source_claim_MEMBERS(X, type) X##VALUE(TEXT, type, source), X##VALUE(TEXT, type, claim)
#define known_contradiction_MEMBERS(X, type)                                                                 \
	X##VALUE(TEXT, type, id), X##VALUE(TEXT, type, subject), X##LIST(TEXTS, type, names, NULL),          \
		X##LIST(LIST, type, says, &source_claim_layout), X##VALUE(TEXT, type, we_do),                \
		X##VALUE(TEXT, type, why)
#define known_metric_MEMBERS(X, type)                                                                        \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, formula), X##VALUE(TEXT, type, unit),               \
		X##VALUE(UNSIGNED, type, most), X##VALUE(TEXT, type, description),                           \
		X##VALUE(TEXT, type, source)
#define known_share_MEMBERS(X, type)                                                                         \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, parent), X##VALUE(TEXT, type, description),         \
		X##VALUE(TEXT, type, formula), X##VALUE(UNSIGNED, type, cost_low),                           \
		X##VALUE(UNSIGNED, type, cost), X##VALUE(UNSIGNED, type, cost_high),                         \
		X##VALUE(UNSIGNED, type, estimated), X##VALUE(UNSIGNED, type, explained),                    \
		X##VALUE(UNSIGNED, type, beside), X##VALUE(UNSIGNED, type, unmodelled),                      \
		X##VALUE(UNSIGNED, type, of_time), X##VALUE(UNSIGNED, type, in_latency),                     \
		X##VALUE(TEXT, type, sources), X##VALUE(TEXT, type, meaning), X##VALUE(TEXT, type, locate),  \
		X##VALUE(TEXT, type, source)
#define known_identity_MEMBERS(X, type)                                                                      \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, left), X##VALUE(TEXT, type, right),                 \
		X##VALUE(UNSIGNED, type, percent), X##VALUE(UNSIGNED, type, left_may_be_more),               \
		X##VALUE(TEXT, type, withdraws), X##VALUE(TEXT, type, source)
#define cpu_model_MEMBERS(X, type)	 X##VALUE(UNSIGNED, type, family), X##VALUE(UNSIGNED, type, model)
#define known_processor_MEMBERS(X, type) X##VALUE(TEXT, type, pattern)
#define known_section_MEMBERS(X, type)	 X##VALUE(TEXT, type, facility), X##VALUE(TEXT, type, number)
#define cpu_events_MEMBERS(X, type)                                                                          \
	X##VALUE(TEXT, type, name), X##VALUE(TEXT, type, title), X##VALUE(TEXT, type, vendor),               \
		X##VALUE(TEXT, type, libpfm4), X##LIST(LIST, type, processors, &known_processor_layout),     \
		X##LIST(LIST, type, models, &cpu_model_layout), X##VALUE(UNSIGNED, type, third_level_cache), \
		X##VALUE(UNSIGNED, type, perfmon), X##LIST(LIST, type, guide, &known_section_layout),        \
		X##VALUE(UNSIGNED, type, branch_depth), X##VALUE(UNSIGNED, type, general_counters),          \
		X##VALUE(UNSIGNED, type, fixed_counters), X##VALUE(UNSIGNED, type, general_counters_smt),    \
		X##VALUE(TEXT, type, loads), X##VALUE(TEXT, type, stores),                                   \
		X##VALUE(UNSIGNED, type, precise_store), X##VALUE(UNSIGNED, type, load_latency),             \
		X##VALUE(UNSIGNED, type, latency_least), X##VALUE(UNSIGNED, type, latency_most),             \
		X##VALUE(TEXT, type, latency_source), X##VALUE(UNSIGNED, type, cmask_most),                  \
		X##VALUE(TEXT, type, cmask_source), X##LIST(LIST, type, events, &known_event_layout),        \
		X##LIST(LIST, type, aliases, &known_alias_layout),                                           \
		X##ONE(type, offcore, &known_offcore_layout), X##ONE(type, kernel, &known_kernel_layout),    \
		X##LIST(LIST, type, data_sources, &known_data_source_layout),                                \
		X##LIST(LIST, type, branches, &known_branch_kind_layout),                                    \
		X##LIST(LIST, type, units, &known_unit_layout),                                              \
		X##LIST(LIST, type, contradictions, &known_contradiction_layout),                            \
		X##LIST(LIST, type, metrics, &known_metric_layout),                                          \
		X##LIST(LIST, type, shares, &known_share_layout),                                            \
		X##LIST(LIST, type, identities, &known_identity_layout)
#define known_source_MEMBERS(X, type) X##VALUE(TEXT, type, key), X##VALUE(TEXT, type, title)

#define ROW_VALUE(which, type, member)                                                                       \
	{                                                                                                    \
		.kind = MEMBER_##which, .name = #member, .offset = offsetof(struct type, member),            \
		.size = sizeof(((struct type *)0)->member)                                                   \
	}
#define ROW_LIST(which, type, member, layout)                                                                \
	{                                                                                                    \
		.kind = MEMBER_##which, .name = #member, .offset = offsetof(struct type, member),            \
		.nr = offsetof(struct type, nr_##member), .of = layout                                       \
	}
#define ROW_ONE(type, member, layout)                                                                        \
	{                                                                                                    \
		.kind = MEMBER_ONE, .name = #member, .offset = offsetof(struct type, member), .of = layout   \
	}
#define ZERO_VALUE(which, type, member)	       0
#define ZERO_LIST(which, type, member, layout) 0, 0
#define ZERO_ONE(type, member, layout)	       0

#define LAYOUT(type)                                                                                         \
	static const struct row_member type##_rows[] = {type##_MEMBERS(ROW_, type)};                         \
	const struct row_layout type##_layout = {"struct " #type, sizeof(struct type), type##_rows,          \
						 ARRAY_SIZE(type##_rows)};                                   \
	static const struct type type##_zero __attribute__((unused)) = {type##_MEMBERS(ZERO_, type)}

#pragma GCC diagnostic error "-Wmissing-field-initializers"
LAYOUT(known_event);
LAYOUT(known_alias);
LAYOUT(offcore_register);
LAYOUT(offcore_part);
LAYOUT(offcore_preset);
LAYOUT(known_offcore);
LAYOUT(known_data_source);
LAYOUT(known_branch_kind);
LAYOUT(kernel_rule);
LAYOUT(known_generic);
LAYOUT(known_erratum);
LAYOUT(known_microcode);
LAYOUT(known_kernel);
LAYOUT(unit_number);
LAYOUT(unit_field);
LAYOUT(unit_start);
LAYOUT(unit_counter);
LAYOUT(unit_escr);
LAYOUT(unit_metric);
LAYOUT(unit_kind);
LAYOUT(known_unit);
LAYOUT(source_claim);
LAYOUT(known_contradiction);
LAYOUT(known_metric);
LAYOUT(known_share);
LAYOUT(known_identity);
LAYOUT(cpu_model);
LAYOUT(known_section);
LAYOUT(known_processor);
LAYOUT(cpu_events);
LAYOUT(known_source);

/* --- reading ---------------------------------------------------------------------------------- */

/* A number, hexadecimal digits, a flag, or the numbers of bits. */
static __u64 number_of(const json_t *value)
{
	const json_t *bit;
	__u64 number = 0;
	size_t i;

	if (json_is_string(value))
		return strtoull(json_string_value(value), NULL, 16);
	json_array_foreach(value, i, bit)
		number |= 1ULL << json_integer_value(bit);
	return json_is_integer(value) ? (__u64)json_integer_value(value) : number | json_is_true(value);
}

static void *read_list(struct loader *loader, const struct row_member *member, const json_t *entries)
{
	size_t size = member->kind == MEMBER_LIST ? member->of->size : sizeof(const char *);
	char *rows = loader_keep(loader, json_array_size(entries), size);
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry)
		if (member->kind == MEMBER_LIST)
			row_read(loader, member->of, entry, rows + i * size);
		else
			((const char **)rows)[i] = json_string_value(entry);
	return rows;
}

static void read_member(struct loader *loader, const struct row_member *member, const json_t *value,
			char *row)
{
	bool several = member->kind == MEMBER_TEXTS || member->kind == MEMBER_LIST;
	const void *pointer = several ? read_list(loader, member, value) : json_string_value(value);
	size_t nr = json_array_size(value);
	__u64 number = number_of(value);

	if (member->kind == MEMBER_UNSIGNED || member->kind == MEMBER_SIGNED)
		memcpy(row + member->offset, &number, member->size); /* x86 begins with the lowest byte */
	else
		memcpy(row + member->offset, &pointer, sizeof(pointer));
	if (several)
		memcpy(row + member->nr, &nr, sizeof(nr));
}

void row_read(struct loader *loader, const struct row_layout *layout, const json_t *entry, void *row)
{
	for (size_t i = 0; i < layout->nr; i++) {
		const json_t *value = json_object_get(entry, layout->members[i].name);

		if (value && !json_is_object(value))
			read_member(loader, &layout->members[i], value, row);
	}
}
