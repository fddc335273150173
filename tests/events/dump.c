/* SPDX-License-Identifier: GPL-2.0-only */
/* Prints the compiled tables, one row per line, for the tests to compare with the facts. */
#include <stdio.h>
#include "tables/known_event.h"

static void print_aliases(const char *kind, const char *cpu, const struct known_alias *aliases, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		printf("%s\t%s\t%s\t%s\t%s\n", kind, cpu, aliases[i].name, aliases[i].of, aliases[i].source);
}

static void print_parts(const char *kind, const char *cpu, const struct offcore_part *parts, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		printf("%s\t%s\t%s\t%#llx\t%u\t%s\n", kind, cpu, parts[i].name,
		       (unsigned long long)parts[i].bits, parts[i].kinds, parts[i].description);
}

static void print_offcore(const char *cpu, const struct known_offcore *offcore)
{
	printf("offcore\t%s\t%#llx\t%llu\t%s\n", cpu, (unsigned long long)offcore->reserved,
	       (unsigned long long)offcore->default_period, offcore->source);
	for (size_t i = 0; i < offcore->nr_registers; i++) {
		const struct offcore_register *reg = &offcore->registers[i];

		printf("register\t%s\t%s\t%#llx\t%#x\t%#x\n", cpu, reg->name, (unsigned long long)reg->config,
		       reg->msr, reg->counters);
	}
	print_parts("request", cpu, offcore->requests, offcore->nr_requests);
	print_parts("response", cpu, offcore->responses, offcore->nr_responses);
	for (size_t i = 0; i < offcore->nr_presets; i++)
		printf("preset\t%s\t%s\t%s\t%s\n", cpu, offcore->presets[i].name,
		       offcore->presets[i].requests, offcore->presets[i].responses);
	print_aliases("offcore_alias", cpu, offcore->aliases, offcore->nr_aliases);
}

static void print_rules(const char *kind, const char *cpu, const struct kernel_rule *rules, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		printf("%s\t%s\t%#llx\t%#llx\t%#x\t%d\n", kind, cpu, (unsigned long long)rules[i].mask,
		       (unsigned long long)rules[i].config, rules[i].counters, rules[i].fixed_counter);
}

static void print_kernel(const char *cpu, const struct known_kernel *kernel)
{
	printf("kernel\t%s\t%llu\t%s\n", cpu, (unsigned long long)kernel->lowest_period, kernel->source);
	print_rules("precise_rule", cpu, kernel->precise, kernel->nr_precise);
	print_rules("placing_rule", cpu, kernel->placed, kernel->nr_placed);
	for (size_t i = 0; i < kernel->nr_generic; i++)
		printf("generic\t%s\t%s\t%#llx\t%#llx\n", cpu, kernel->generic[i].name,
		       (unsigned long long)kernel->generic[i].config,
		       (unsigned long long)kernel->generic[i].config1);
	for (size_t i = 0; i < kernel->nr_errata; i++)
		printf("erratum\t%s\t%s\t%d\n", cpu, kernel->errata[i].name, kernel->errata[i].all_events);
}

static void print_contradictions(const struct cpu_events *cpu)
{
	for (size_t i = 0; i < cpu->nr_contradictions; i++) {
		const struct known_contradiction *entry = &cpu->contradictions[i];

		printf("contradiction\t%s\t%s\t%s\t%s\t%s\t", cpu->name, entry->id, entry->subject,
		       entry->we_do, entry->why);
		for (size_t j = 0; j < entry->nr_names; j++)
			printf("%s%s", j ? " " : "", entry->names[j]);
		putchar('\t');
		for (size_t j = 0; j < entry->nr_says; j++)
			printf("%s%s", j ? " " : "", entry->says[j].source);
		putchar('\n');
	}
}

static void print_numbers(const struct unit_number *numbers, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		printf("%s%s=%#llx", i ? " " : "", numbers[i].name, (unsigned long long)numbers[i].value);
}

static void print_unit_kind(const char *cpu, const struct known_unit *unit, const struct unit_kind *kind)
{
	printf("unit_kind\t%s\t%s\t%s\t%#llx\t", cpu, unit->name, kind->name,
	       (unsigned long long)kind->always);
	print_numbers(kind->counters, kind->nr_counters);
	printf("\t%s\n", kind->description);
	for (size_t i = 0; i < kind->nr_fields; i++) {
		const struct unit_field *field = &kind->fields[i];

		printf("unit_field\t%s\t%s\t%s\t%s\t%s\t%u\t%u\t%s\t", cpu, unit->name, kind->name,
		       field->name, field->title, field->low, field->high, field->usual ? field->usual : "");
		print_numbers(field->values, field->nr_values);
		printf("\t%s\n", field->description);
	}
}

static void print_unit(const char *cpu, const struct known_unit *unit)
{
	printf("unit\t%s\t%s\t%u\t%u\t%u\t%u\t%s\t%#x\t%u\t%u\t%u\t%u\t%u\t%s\t%s\n", cpu, unit->name,
	       unit->scope, unit->count_bits, unit->wraps_in_ms, unit->rdpmc, unit->control,
	       unit->control_msr, unit->freeze, unit->unfreeze, unit->reset, unit->select, unit->status,
	       unit->source, unit->description);
	for (size_t i = 0; i < unit->nr_kinds; i++)
		print_unit_kind(cpu, unit, &unit->kinds[i]);
}

static void print_metrics(const char *cpu, const struct known_metric *metrics, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		printf("metric\t%s\t%s\t%s\t%s\n", cpu, metrics[i].name, metrics[i].formula, metrics[i].unit);
}

static void print_shares(const struct cpu_events *cpu)
{
	for (size_t i = 0; i < cpu->nr_shares; i++) {
		const struct known_share *share = &cpu->shares[i];

		printf("share\t%s\t%s\t%s\t%s\t%u\t%u\n", cpu->name, share->name,
		       share->parent ? share->parent : "", share->formula ? share->formula : "",
		       share->beside, share->unmodelled);
	}
	for (size_t i = 0; i < cpu->nr_identities; i++)
		printf("identity\t%s\t%s\t%s\t%s\n", cpu->name, cpu->identities[i].name,
		       cpu->identities[i].left, cpu->identities[i].right);
}

static void print_cpu(const struct cpu_events *cpu)
{
	printf("cpu\t%s\t%s\t%u\t%u\n", cpu->name, cpu->vendor, cpu->general_counters, cpu->fixed_counters);
	for (size_t i = 0; i < cpu->nr_models; i++)
		printf("model\t%s\t%#x\t%#x\n", cpu->name, cpu->models[i].family, cpu->models[i].model);
	for (size_t i = 0; i < cpu->nr_events; i++) {
		const struct known_event *event = &cpu->events[i];

		printf("event\t%s\t%s\t%#llx\t%#llx\t%llu\t%#x\t%d\t%u\t%d\t%s\t%s\t%s\t%s\n", cpu->name,
		       event->name, (unsigned long long)event->config, (unsigned long long)event->config1,
		       (unsigned long long)event->default_period, event->counters, event->fixed_counter,
		       event->precise, event->architectural, event->errata ? event->errata : "", event->topic,
		       event->source, event->description);
	}
	print_aliases("alias", cpu->name, cpu->aliases, cpu->nr_aliases);
	if (cpu->offcore)
		print_offcore(cpu->name, cpu->offcore);
	if (cpu->kernel)
		print_kernel(cpu->name, cpu->kernel);
	for (size_t i = 0; i < cpu->nr_data_sources; i++) {
		const struct known_data_source *source = &cpu->data_sources[i];

		printf("data_source\t%s\t%u\t%d\t%s\t%#llx\t%s\n", cpu->name, source->code, source->reserved,
		       source->name, (unsigned long long)source->perf_data_src, source->perf);
	}
	for (size_t i = 0; i < cpu->nr_branches; i++) {
		const struct known_branch_kind *kind = &cpu->branches[i];

		printf("branch_kind\t%s\t%s\t%#x\t%s\t%s\n", cpu->name, kind->filter, kind->records,
		       kind->note ? kind->note : "", kind->why ? kind->why : "");
	}
	for (size_t i = 0; i < cpu->nr_units; i++)
		print_unit(cpu->name, &cpu->units[i]);
	print_contradictions(cpu);
	print_metrics(cpu->name, cpu->metrics, cpu->nr_metrics);
	print_shares(cpu);
}

static void print_generic(const struct known_metric *metrics, size_t nr)
{
	print_metrics("generic", metrics, nr);
}

int main(void)
{
	for (size_t i = 0; i < nr_known_cpus; i++)
		print_cpu(&known_cpus[i]);
	print_generic(generic_metrics, nr_generic_metrics);
	for (size_t i = 0; i < nr_known_sources; i++)
		printf("source\t%s\t%s\n", known_sources[i].key, known_sources[i].title);
	return 0;
}
