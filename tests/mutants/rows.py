# SPDX-License-Identifier: GPL-2.0-only
"""The faults of the program: see program_mutants.py. One changed operator, bound or order, one swapped
member, one thing forgotten. A fault belongs here if users would get wrong numbers, names or ends by it."""
import dataclasses

import mutation


@dataclasses.dataclass(frozen=True)
class Mutant(mutation.Mutant):
    sanitize: bool = False  # it is seen in the build with ASan and UBSan only


MUTANTS = [
    # --- what the BPF programs count -----------------------------------------------------------------
    Mutant(
        "distance-beyond-forgotten",
        "bpf/table.bpf.h", "\t\treturn period + period_beyond;\n\tif", "\t\treturn period;\n\tif",
        "machine/test_precise_distance.py::test_periods_add_up_to_what_was_executed_and_samples_are_evenly_spread",
    ),
    Mutant(
        "period-held-ignored",
        "bpf/table.bpf.h", "period = table->head.period_held;", ";",
        "live/test_cpu_share.py::test_samples_of_a_clock_weigh_the_period_that_holds_not_the_one_that_it_was_opened_with",
    ),
    Mutant(
        "software-sample-weighs-the-next-period",
        "bpf/table.bpf.h", "\tif (count_offset)\n", "\tif (count_offset && paced)\n",
        "live/test_bursts.py::test_each_sample_stands_for_what_came_since_the_one_before",
    ),
    Mutant(
        "full-table-uncounted",
        "bpf/table.bpf.h", "table->generations[which & 1].table_full++;", ";",
        "live/test_accounting.py::test_a_full_table_counts_what_it_has_no_slot_for",
    ),
    Mutant(
        "filling-table-wakes-nobody",
        "bpf/table.bpf.h", "generation->used >= FILLING(TABLE_SLOTS)", "generation->used > TABLE_SLOTS",
        "live/test_accounting.py::test_a_table_that_fills_is_emptied_before_it_is_full",
    ),
    Mutant(
        "wake-without-force",
        "bpf/wake.bpf.h", "BPF_RB_FORCE_WAKEUP", "BPF_RB_NO_WAKEUP",
        "live/test_accounting.py::test_a_table_that_fills_is_emptied_before_it_is_full",
    ),
    Mutant(
        "thread-ids-at-the-process",
        "bpf/profile.bpf.c", "(by_tid ? ids << 32 : 0);\n\t\tset_word(&key.pid, ids);\n\t\thash",
        "(by_tid ? ids >> 32 << 32 : 0);\n\t\tset_word(&key.pid, ids);\n\t\thash",
        "live/test_profile.py::test_threads_are_told_apart_by_tid_and_are_one_by_pid",
    ),
    Mutant(
        "page-unmasked",
        "bpf/mem.bpf.c", "key->page = load->address & ~PAGE_MASK;", "key->page = load->address & ~CACHELINE_MASK;",
        "live/test_mem.py::test_every_fault_is_found_at_its_address",
    ),
    Mutant(
        "latency-minimum",
        "bpf/mem.bpf.c", "if (latency > value->latency_max)", "if (latency < value->latency_max)",
        "machine/test_mem_on_nehalem.py::test_the_maximum_of_an_interval_is_of_its_own_loads",
    ),
    Mutant(
        "stream-wakes-nobody",
        "bpf/ring.bpf.h", "if (!(ring->head.written & FILLING(ring_mask)))", "if (0)",
        "live/test_mem.py::test_a_ring_that_fills_is_read_before_it_is_full",
    ),
    Mutant(
        "throttling-uncounted",
        "bpf/mem.bpf.c", "table->generations[which].throttled++;", ";",
        "machine/test_mem_on_nehalem.py::test_throttling_is_counted",
    ),
    Mutant(
        "throttling-unseen",
        "bpf/table.bpf.h", "generation->throttled++;", ";",
        "machine/test_throttling_on_nehalem.py::test_a_throttled_profile_says_that_its_value_is_the_least_that_there_was",
    ),
    Mutant(
        "mispredicted-inverted",
        "bpf/branch.bpf.c", "? BRANCH_MISSED : BRANCH_EDGE", "? BRANCH_EDGE : BRANCH_MISSED",
        "machine/test_branch_on_nehalem.py::test_mispredictions_are_where_the_target_changes",
    ),
    Mutant(
        "range-of-the-branch-itself",
        "bpf/branch.bpf.c", "add_range(table, which, sample, before->to, branch->from);",
        "add_range(table, which, sample, before->from, branch->from);",
        "machine/test_branch_on_nehalem.py::test_ranges_sum_up_to_the_instructions_that_were_executed",
    ),
    Mutant(
        "user-addresses-without-their-process",
        "bpf/branch.bpf.c", "(is_user(from) || is_user(to))", "(is_user(from) && !is_user(to))",
        "machine/test_branch_on_nehalem.py::test_processes_are_told_apart_if_that_is_asked_for "
        "machine/test_branch_on_nehalem.py::test_processes_that_run_the_same_program_share_its_edges",
    ),
    Mutant(
        "stack-without-its-process",
        "bpf/stack.bpf.h", "stack->pid = user ? current_ids() >> 32 : 0;", "stack->pid = 0;",
        "live/test_stacks.py::test_frames_have_the_names_of_their_functions",
    ),
    Mutant(
        "stacks-wake-nobody",
        "bpf/stack.bpf.h", "if (end >= FILLING(STACK_WORDS) && !stacks->head.told)", "if (0)",
        "live/test_stacks.py::test_stacks_are_read_before_their_room_is_full",
    ),

    # --- sums ----------------------------------------------------------------------------------------
    Mutant(
        "slot-not-emptied",
        "user/aggregation/table_reader.c", "\n\t\tmemset(value, 0, reader->layout->value_size);", "",
        "live/test_accounting.py::test_intervals_add_up_to_the_whole",
    ),
    Mutant(
        "losses-of-the-last-cpu-only",
        "user/aggregation/table_reader.c", "counts->table_full += head->table_full;", "counts->table_full = head->table_full;",
        "live/test_accounting.py::test_losses_of_intervals_add_up_to_the_whole",
    ),
    Mutant(
        "generation-that-is-written",
        "user/aggregation/table_reader.c", "take_generation(reader, cpu, !current_generation(reader, cpu));",
        "take_generation(reader, cpu, current_generation(reader, cpu));",
        "live/test_accounting.py::test_intervals_add_up_to_the_whole",
    ),
    Mutant(
        "values-of-the-last-reading-kept",
        "user/aggregation/table_reader.c", "\tsums_clear(&reader->sums);\n", "",
        "live/test_accounting.py::test_an_interval_has_only_the_keys_that_changed_in_it",
    ),
    Mutant(
        "shed-keys-uncounted",
        "user/aggregation/table_reader.c", "\tcounts->nr_shed++;\n", "",
        "live/test_limits.py::test_keys_beyond_the_limit_are_summed_up",
    ),
    Mutant(
        "smallest-keys-kept",
        "user/aggregation/sums.c", "return x->weight < y->weight ? 1 : -1;", "return x->weight < y->weight ? -1 : 1;",
        "live/test_limits.py::test_a_run_without_end_of_new_addresses_takes_64_mib_and_has_the_largest",
    ),
    Mutant(
        "overwritten-sample-uncounted",
        "user/aggregation/rings.c", "skipped = rings->read[cpu] - rings->known[cpu];", "skipped = rings->read[cpu] - rings->known[cpu] - 1;",
        "live/test_mem.py::test_samples_that_nobody_read_in_time_are_counted",
    ),
    Mutant(
        "sums-leak",
        "user/aggregation/sums.c", "\tfree(sums->values);\n\tfree(sums->maximum);", "\tfree(sums->maximum);",
        "live/test_profile.py::test_every_fault_is_a_sample_at_its_instruction",
        sanitize=True,
    ),

    # --- base ----------------------------------------------------------------------------------------
    Mutant(
        "last-cpu-of-a-range-left-out",
        "user/base/cpus.c", "cpu <= last; cpu++", "cpu < last; cpu++",
        "pure/test_scope_plans.py::test_targets_that_make_no_sense "
        "live/test_targets.py::test_all_cpus_are_the_cpus_that_are_online",
    ),
    Mutant(
        "dots-overrun-the-list",
        "user/base/list.c", '+ strlen(", ...") >= size', ">= size",
        "pure/test_appended.py::test_a_list_without_room_ends_in_dots_and_stays_in_its_buffer",
    ),
    Mutant(
        "file-of-anybody-taken",
        "user/base/guarded.c", "return own || public ? 0 : EKEYREJECTED;", "return 0;",
        "pure/test_naming.py::test_a_map_has_to_be_the_users_own",
    ),
    Mutant(
        "failed-file-never-read-again",
        "user/naming/naming.c", "source_is_for_later(source) || source_worker_failed(source);", "source_is_for_later(source);",
        "pure/test_worker.py::test_a_file_on_which_it_failed_is_read_again_after_pauses_that_double",
    ),
    Mutant(
        "last-line-of-a-map-waits-for-ever",
        "user/naming/naming.c", "return !writer->ended && (", "return (true || ",
        "pure/test_naming.py::test_a_last_line_of_a_map_needs_no_line_feed_if_nothing_follows",
    ),
    Mutant(
        "half-of-a-line-taken",
        "user/naming/naming.c", "map->size >= BUFFER_LEAST || ", "",
        "pure/test_naming.py::test_a_line_of_a_map_counts_when_it_is_whole",
    ),
    Mutant(
        "size-limit-of-files-ignored",
        "user/base/guarded.c", "if ((__u64)stat.st_size > guard->most)", "if (0)",
        "pure/test_naming.py::test_a_map_larger_than_what_is_kept_finds_no_room",
    ),
    Mutant(
        "key-lost-behind-a-removed-one",
        "user/base/map.c", ">= ((at - gap) & mask)",
        "> ((at - gap) & mask)",
        "pure/test_map.py::test_it_finds_and_removes_what_a_dictionary_would",
    ),
    Mutant(
        "quotes-unescaped",
        "user/record/compact.c", 'HAS_LESS(word ^ EACH(\'"\'), 1) | ',
        "",
        "pure/test_compact.py::test_texts_of_any_length_with_any_byte_at_any_place",
    ),

    # --- counting ------------------------------------------------------------------------------------
    Mutant(
        "count-before-offline-lost",
        "user/collection/counters.c", "\tcount_add(&cell->before, &cell->last);\n", "",
        "machine/test_hotplug.py::test_a_cpu_that_comes_back_is_counted_again_to_the_last_event",
    ),
    Mutant(
        "readings-of-cgroups-swapped",
        "user/collection/counters.c", "(place % cpus * counters->reader_cgroups + place / cpus)",
        "(place / cpus * counters->reader_cgroups + place % cpus)",
        "live/test_reading.py::test_several_cgroups_on_several_cpus_are_not_mixed_up",
    ),
    Mutant(
        "counters-stay-open",
        "user/collection/counters.c", "\t} else if (cell->fd >= 0) {\n\t\tclose(cell->fd);\n\t}", "\t}",
        "live/test_cgroups_that_come_and_go.py::test_however_often_it_is_made_again_no_descriptor_stays",
    ),
    Mutant(
        "named-twice-measured-twice",
        "user/collection/places.c", "\t\tif (places->list[i].tid == tid)\n\t\t\treturn;", "\t\t;",
        "live/test_targets.py::test_what_is_named_twice_is_measured_once",
    ),
    Mutant(
        "status-of-orphans-taken",
        "user/collection/child.c", "if (ended.si_pid == child->pid && !child->exited)", "if (!child->exited)",
        "live/test_ends.py::test_as_pid_1_orphans_leave_no_zombies_and_the_commands_status_is_kept",
    ),
    Mutant(
        "group-alone-twice",
        "user/collection/solo.c", "solo->leaders[card] = solo->leaders[solo->left];",
        ";",
        "pure/test_solo.py::test_before_a_group_comes_again_each_of_the_others_does",
    ),
    Mutant(
        "groups-alone-without-end",
        "user/collection/solo.c", " && solo->in_a_row < most;",
        ";",
        "pure/test_solo.py::test_after_half_of_the_groups_all_take_turns_again",
    ),
    Mutant(
        "time-alone-added-twice",
        "user/collection/solo.c", "\there->since_ns += missed;\n",
        "",
        "pure/test_solo.py::test_time_that_the_others_have_missed_is_added_once",
    ),

    # --- plans ---------------------------------------------------------------------------------------
    Mutant(
        "watchdogs-counter-taken",
        "user/event/placement.c", "unsigned long long tried = taken;", "unsigned long long tried = 0;",
        "pure/test_grouping.py::test_the_watchdogs_counter_is_left_to_it",
    ),
    Mutant(
        "cmask-one-too-wide",
        "user/plan/rules.c", "cmask <= s->cpu->cmask_most", "cmask <= s->cpu->cmask_most + 1",
        "pure/test_rules.py::test_a_request_that_breaks_a_rule_is_refused_with_rule_and_source",
    ),
    Mutant(
        "shortest-period-refused",
        "user/plan/rules.c", "attr->sample_period >= least)", "attr->sample_period > least)",
        "pure/test_rules.py::test_the_least_period_of_a_nehalem_is_32",
    ),
    Mutant(
        "same-register-value-contested",
        "user/plan/rules.c", "\t\tif (reg->value(&that) == reg->value(s))\n\t\t\treturn false;", "\t\t;",
        "pure/test_rules.py::test_equal_offcore_values_share_the_register",
    ),
    Mutant(
        "force-does-all",
        "user/plan/rules.c", "!(force && rules[r].yields)", "!force",
        "pure/test_rules.py::test_force_does_not_insist_on_what_the_kernel_refuses",
    ),
    Mutant(
        "precise-distance-unshortened",
        "user/plan/sampling.c", "EVENT_SET(event, sample_period, asked - event->beyond,", "EVENT_SET(event, sample_period, asked,",
        "pure/test_plan.py::test_samples_are_as_far_apart_as_was_asked_though_a_precise_one_takes_an_event_more_than_the_kernels_period",
    ),
    Mutant(
        "frequency-limit-ignored",
        "user/plan/sampling.c", "if (event->attr.freq && event->attr.sample_freq > (__u64)host->max_sample_rate)", "if (0)",
        "pure/test_plan.py::test_a_frequency_over_the_machines_limit_is_refused",
    ),
    Mutant(
        "group-one-too-long",
        "user/plan/grouping.c", "fit_together(events, first, end + 1, host))", "fit_together(events, first, end, host))",
        "pure/test_grouping.py::test_a_longer_one_makes_groups_of_as_many_as_fit",
    ),
    Mutant(
        "weak-groups-stay",
        "user/plan/grouping.c", "group.list[i].group = -1;", ";",
        "pure/test_grouping.py::test_a_weak_group_that_does_not_fit_is_taken_apart_and_says_so",
    ),
    Mutant(
        "tracepoint-of-users-side-not-looked-for",
        "user/plan/sides.c", "if (one_side(&event->attr))", "if (event->attr.exclude_user)",
        "pure/test_sides_of_pmus.py::test_a_tracepoint_counts_on_the_side_where_it_is_passed",
    ),
    Mutant(
        "side-that-counts-nothing-accepted",
        "user/plan/sides.c", "return attr->exclude_user && attr->exclude_kernel && !event->sideless &&", "return attr->exclude_user && !event->sideless &&",
        "pure/test_sides.py::test_a_side_that_is_asked_for_and_counts_nothing_is_refused",
    ),

    # --- activities ----------------------------------------------------------------------------------
    Mutant(
        "expected-without-what-failed",
        "user/record/samples.c", "samples.aggregated + samples.table_full +", "samples.aggregated +",
        "live/test_accounting.py::test_a_full_table_counts_what_it_has_no_slot_for",
    ),
    Mutant(
        "uncertainty-taken-for-lost",
        "user/record/samples.c", "counted - read->runs - read->contexts : 0;", "counted - read->runs : 0;",
        "pure/test_samples.py::test_what_lacks_beyond_the_uncertainty_is_missed",
    ),
    Mutant(
        "missed-shrinks",
        "user/record/samples.c", "lack > before->missed ? lack : before->missed,", "lack,",
        "pure/test_samples.py::test_what_was_missed_once_stays_missed_and_is_new_once",
    ),
    Mutant(
        "changed-period-from-the-beginning",
        "user/record/samples.c", "read->samples_before + (read->count - read->count_before)", "read->samples_before + read->count",
        "pure/test_samples.py::test_a_changed_period_counts_from_its_change",
    ),
    Mutant(
        "missed-beyond-uncounted",
        "user/record/samples.c", "(recorded ? account->missed : 0)", "0",
        "pure/test_samples.py::test_what_the_counter_lacks_is_beyond_the_period_of_each_sample",
    ),
    Mutant(
        "rest-forgotten",
        "user/activity/sampling.c", "if (top < nr || nr_shed)", "if (nr_shed)",
        "live/test_profile.py::test_top_keeps_the_largest_and_sums_up_the_rest",
    ),
    Mutant(
        "interval-counts-from-the-beginning",
        "user/activity/sampling.c", "\tstate->events[i].before = read[i].count;\n", "",
        "live/test_accounting.py::test_intervals_add_up_to_the_whole live/test_control.py::test_samples_obey_too_and_their_account_closes",
    ),
    Mutant(
        "count-reported-twice",
        "user/activity/tally.c", "row->reported[i] = row->now[i];", ";",
        "live/test_stat.py::test_intervals_are_differences_that_add_up",
    ),
    Mutant(
        "rows-of-cores-without-their-socket",
        "user/activity/tally.c", "per & (PER_SOCKET | PER_CORE) ? at.socket : -1", "per & PER_SOCKET ? at.socket : -1",
        "live/test_scopes.py::test_cores_and_sockets_are_those_of_sysfs",
    ),
    Mutant(
        "interval-too-many",
        "user/activity/life.c", "if (activity->intervals_left == 1) {", "if (activity->intervals_left == ~0ULL) {",
        "live/test_control.py::test_so_many_intervals_and_no_more",
    ),
    Mutant(
        "retired-in-a-cycle-swapped",
        "user/activity/plausible.c", "instructions->count.value <= PER_CYCLE_MOST * cycles->count.value + BETWEEN_READINGS",
        "cycles->count.value <= PER_CYCLE_MOST * instructions->count.value + BETWEEN_READINGS",
        "pure/test_plausible.py::test_a_count_that_no_processor_has_is_told",
    ),
    Mutant(
        "other-sides-compared",
        "user/activity/plausible.c", "one->sides != other->sides ||\n",
        "\n",
        "pure/test_plausible.py::test_what_is_rare_but_true_is_believed",
    ),
    Mutant(
        "short-times-doubted",
        "user/activity/plausible.c", "one->kind == COUNTS_OTHERS || !is_long(count))",
        "one->kind == COUNTS_OTHERS)",
        "pure/test_plausible.py::test_what_is_rare_but_true_is_believed",
    ),

    # --- sessions ------------------------------------------------------------------------------------
    Mutant(
        "share-halved",
        "user/session/share_control.c", "return control->factor * 2;", "return control->factor / 2;",
        "pure/test_share.py::test_where_fewer_samples_help_nhmtap_itself_there_are_fewer",
    ),
    Mutant(
        "memory-limit-exclusive",
        "user/session/limits.c", "number >= MEMORY_LEAST &&", "number > MEMORY_LEAST &&",
        "live/test_limits.py::test_the_least_size_is_a_size_though_nothing_fits_into_it",
    ),
    Mutant(
        "longest-latency-refused",
        "user/plan/rules.c", "threshold <= most", "threshold < most",
        "pure/test_rules.py::test_a_latency_is_taken_up_to_its_bounds",
    ),
    Mutant(
        "reload-ends-what-stays",
        "user/run/reload.c", "if (same < request->nr_entries) {", "if (0) {",
        "live/test_session.py::test_the_same_entry_goes_on_over_hup_without_a_gap",
    ),
    Mutant(
        "bad-file-at-hup-taken",
        "user/run/reload.c", "check_others(run, &request, &refusal) ||\n", "",
        "live/test_session.py::test_a_bad_file_at_hup_is_told_and_changes_nothing",
    ),
    Mutant(
        "attributes-with-a-mistake-kept",
        "user/run/resource.c", "\tjson_object_clear(attributes);\n", "",
        "live/test_resource.py::test_a_variable_with_a_mistake_is_told_and_left_out_as_a_whole",
    ),

    # --- stat, metrics, off-core ---------------------------------------------------------------------
    Mutant(
        "limit-itself-met",
        "user/metric/expectation.c", "met = high < limit;", "met = high <= limit;",
        "live/test_expect.py::test_an_expectation_compares_the_count",
    ),
    Mutant(
        "failed-weighs-less",
        "user/stat/stat.c", "if (expectation_status(outcome) > activity->session->verdict)",
        "if (expectation_status(outcome) < activity->session->verdict)",
        "live/test_expect.py::test_one_that_fails_among_many_decides live/test_expect.py::test_an_expectation_compares_the_count",
    ),
    Mutant(
        "variance-of-the-population",
        "user/metric/moments.c", "moments->squares / (moments->n - 1)", "moments->squares / moments->n",
        "live/test_stat.py::test_repeats_end_with_their_mean_and_variance",
    ),
    Mutant(
        "bound-below-the-count",
        "user/metric/bound.c", "bound->low = fmax(bound->low, counts[event].value);", ";",
        "pure/test_bound.py::test_a_bound_is_never_below_what_was_counted",
    ),
    Mutant(
        "absences-not-ended",
        "user/metric/bound.c", "\tif (since->running_ns)\n\t\tabsence->now_ns = 0;", "\t;",
        "pure/test_bound.py::test_the_time_without_a_counter_is_that_between_two_turns_or_longer_if_it_was_seen_to_be",
    ),
    Mutant(
        "sums-of-less-time-limit-cells",
        "user/offcore/cells.c", "return sum->enabled_ns >= 0.99 * part->enabled_ns;", "return true;",
        "pure/test_cells.py::test_a_sum_that_was_enabled_for_less_time_limits_no_cell",
    ),
    Mutant(
        "cells-limit-their-sums",
        "user/offcore/cells.c", "return !(cell->bits & ~sum->bits);", "return !(sum->bits & ~cell->bits);",
        "pure/test_cells.py::test_a_cell_is_at_most_the_sum_that_includes_it",
    ),
    Mutant(
        "differences-swapped",
        "user/tables/formula.c", "return left - right;", "return right - left;",
        "pure/test_formula.py::test_a_formula_has_the_value_of_hand",
    ),

    # --- analyze -----------------------------------------------------------------------------------
    Mutant(
        "bounds-at-the-wrong-end",
        "user/analyze/account.c", "low * (low < 0 ? share->cost.high : share->cost.low);",
        "low * share->cost.low;",
        "pure/test_account.py::test_a_bound_below_nothing_is_as_far_below_as_the_highest_cost_takes_it",
    ),
    Mutant(
        "withdrawn-cause-takes-nothing",
        "user/analyze/account.c", "return measured[i].none ? 0 : whole;",
        "return 0;",
        "pure/test_account.py::test_what_is_withdrawn_may_be_all_that_stalls",
    ),
    Mutant(
        "verdict-of-the-first-alone",
        "user/analyze/account.c", "least = fmax(least, shares[i].low);",
        "least = fmax(least, shares[i].share);",
        "pure/test_account.py::test_the_true_share_is_within_the_bounds_if_nothing_overlaps",
    ),
    Mutant(
        "verdict-of-what-is-too-small",
        "user/analyze/account.c", "largest_part(shares, nr, together) - ROUNDED;",
        "0;",
        "pure/test_account.py::test_what_is_less_than_the_rest_has_to_share_is_not_the_largest",
    ),

    # --- views of stored records -------------------------------------------------------------------
    Mutant(
        "error-of-the-others-only",
        "user/output/share.c", "(1 - share) * (1 - share) * square + share",
        "share * share * square + share",
        "pure/test_show.py::test_a_share_has_the_error_of_its_number_of_samples",
    ),
    Mutant(
        "others-met-by-a-negated-condition",
        "user/view/filter.c", "!strcmp(text, condition->value) != condition->not",
        "!strcmp(text, condition->value)",
        "pure/test_show.py::test_a_filter_leaves_the_rows_that_meet_all_conditions",
    ),
    Mutant(
        "recursion-counted-twice",
        "user/view/shares.c", "if (row->seen == shares->entries)",
        "if (0)",
        "pure/test_show.py::test_children_have_what_they_call_once",
    ),
    Mutant(
        "samples-of-all-times-at-the-first",
        "user/view/digest.c", "event->nodes[node].line.v[bucket] += weight.sum;\n}",
        "event->nodes[node].line.v[0] += weight.sum;\n}",
        "live/test_report.py::test_functions_and_the_flame_graph_are_those_of_the_chosen_time",
    ),

    # --- outputs -----------------------------------------------------------------------------------
    Mutant(
        "short-write-taken-for-whole",
        "user/output/sink.c", "queue_advance(queue, n);", "queue_advance(queue, queue_waiting(queue));",
        "live/test_seeded_sessions.py::test_whatever_happens_to_a_session_its_accounts_close[2009]",
    ),
    Mutant(
        "total-begins-anew",
        "user/output/flat.c", "total->sum += json_integer_value(value);", "total->sum = json_integer_value(value);",
        "live/test_flat.py::test_the_total_of_a_series_grows_by_each_value[stat]",
    ),
    Mutant(
        "cgroup-of-the-entry-before",
        "user/record/entry.c", "columns->owner.length && columns->owner.cgroup == cgroup", "columns->owner.length",
        "live/test_flat.py::test_a_container_is_told_by_its_cgroup",
    ),
    Mutant(
        "keys-of-the-entry-before",
        "user/output/flatten.c", "\trow->keys.used = rows->keys_shared;\n", "",
        "live/test_flat.py::test_lines_are_the_same_whether_entries_are_still_text_or_another_output_has_read_them[line]",
    ),
    Mutant(
        "series-beyond-the-limit",
        "user/output/meters.c", "\t\tif (meters->used >= meters->limit) {",
        "\t\tif (meters->used > meters->limit) {",
        "pure/test_series.py::test_what_is_too_much_is_in_other",
    ),
    Mutant(
        "profile-of-others",
        "user/output/otlp_profiles.c", "integer(row->from, adding->measures[i].member)",
        "integer(row->from, adding->measures[0].member)",
        "live/test_otlp_profiles.py::test_the_sums_are_those_of_the_records",
    ),
    Mutant(
        "innermost-inlined-outermost",
        "user/output/flamegraph.c", "flamegraph->reverse ? i : calls - 1 - i)",
        "i)",
        "live/test_flamegraph.py::test_what_is_inlined_lies_below_what_it_is_inlined_in",
    ),

    # --- naming and unwinding ----------------------------------------------------------------------
    Mutant(
        "end-of-a-function-in-it",
        "user/confined/eh_frame.c", "\tadd_row(run);\n\trun->address += by * run->cie->code_factor;",
        "\trun->address += by * run->cie->code_factor;\n\tadd_row(run);",
        "pure/test_unwind_tables.py::test_each_row_of_a_file_is_what_libdw_says",
    ),
    Mutant(
        "weak-names-preferred",
        "user/naming/symbols.c", "return a->weak - b->weak;", "return b->weak - a->weak;",
        "pure/test_naming.py::test_of_names_at_one_address_the_best_known_is_shown",
    ),
    Mutant(
        "labels-hide-their-function",
        "user/naming/symbols.c", "\t\tif (inside(symbol, reach))\n\t\t\tcontinue;\n", "",
        "pure/test_naming.py::test_a_label_in_a_function_of_assembly_does_not_hide_it",
    ),
    Mutant(
        "what-is-between-functions-is-the-former",
        "user/naming/spans.c", "if (sweep.left == 1 || sweep.next.high < sweep.follows.low)", "if (sweep.left == 1)",
        "pure/test_naming.py::test_what_is_between_functions_has_no_name",
    ),
    Mutant(
        "checksum-of-debug-link-ignored",
        "user/naming/debug_file.c", "return sum == expected;", "return true;",
        "pure/test_naming.py::test_a_debug_link_with_another_checksum_is_not_followed",
    ),
    Mutant(
        "build-id-of-debug-file-ignored",
        "user/naming/debug_file.c", "return !strcmp(own, build_id);", "return true;",
        "pure/test_naming.py::test_a_debug_file_with_another_build_id_is_not_taken",
    ),
    Mutant(
        "later-code-of-the-kernel-without-size",
        "user/naming/ksymbols.c", ".end = note->begin + note->size,", ".end = note->begin,",
        "live/test_names.py::test_a_bpf_program_that_is_loaded_later_is_named_by_itself",
    ),
    Mutant(
        "needed-table-given-back",
        "user/unwind/cache.c", "file->state == FILE_READY && !file->users &&", "file->state == FILE_READY &&",
        "pure/test_unwind_tables.py::test_a_table_that_is_needed_stays",
    ),
    Mutant(
        "interpreter-of-a-script-not-needed",
        "user/unwind/needed.c", 'if (!strncmp(begin, "#!", 2)) {', 'if (!strncmp(begin, "#!", 3)) {',
        "pure/test_needed.py::test_a_script_needs_its_interpreter_and_an_argument_its_own",
    ),
    Mutant(
        "folders-before-the-run-path",
        "user/unwind/needed.c", "if (cached)\n\t\tlook_at_file(search, cached);", "if (!cached)\n\t\tlook_at_file(search, cached);",
        "pure/test_needed.py::test_a_programs_libraries_are_those_that_the_dynamic_linker_finds",
    ),

    # --- this machine, and what is asked of it -----------------------------------------------------
    Mutant(
        "two-stars-fit-the-cgroup-itself",
        "user/host/cgroup_pattern.c", "return *path;", "return true;",
        "pure/test_cgroup_patterns.py::test_a_pattern_fits_what_it_says",
    ),
    Mutant(
        "last-form-of-a-container-counts",
        "user/host/cgroup_owner.c", "if (found.at > id.at) {", "if (found.at >= id.at) {",
        "pure/test_cgroup_owners.py::test_containers",
    ),
    Mutant(
        "extended-model-left-out",
        "user/host/processor.c", ".extended_model = eax >> 16 & 0xf,", ".extended_model = 0,",
        "pure/test_doctor_facts.py::test_the_signature_is_decoded_as_the_guide_has_it",
    ),
    Mutant(
        "versions-compared-without-their-major",
        "user/host/kernel.c", "return found[0] > major || (found[0] == major && found[1] >= minor);", "return found[1] >= minor;",
        "pure/test_doctor_facts.py::test_locked_memory_is_in_the_way_on_kernels_that_count_tables_as_such",
    ),
    Mutant(
        "processes-without-their-first-thread-left-out",
        "user/host/processes.c", "return living ? living : number;", "return number;",
        "live/test_targets.py::test_a_process_whose_first_thread_has_ended_has_names",
    ),
    Mutant(
        "command-s-options-taken",
        "user/option/option.c", 'sprintf(shorts, "%s:", stops ? "+" : "");', 'sprintf(shorts, "%s:", stops ? "" : "");',
        "live/test_targets.py::test_options_behind_the_command_are_the_commands",
    ),
    Mutant(
        "highest-number-refused",
        "user/option/option.c", "&& *value >= row->least && *value <= row->most)", "&& *value >= row->least && *value < row->most)",
        "pure/test_loads.py::test_a_threshold_is_taken_up_to_its_bounds",
    ),
    Mutant(
        "counterpart-of-perf-not-told",
        "user/option/meant.c", "if (counterpart)\n\t\treturn", "if (!counterpart)\n\t\treturn",
        "pure/test_plan.py::test_a_command_or_option_that_does_not_exist_gets_what_may_be_meant",
    ),
    Mutant(
        "globs-of-one-case",
        "user/command/list.c", "return !fnmatch(pattern, text, FNM_CASEFOLD);", "return !fnmatch(pattern, text, 0);",
        "pure/test_list.py::test_an_event_is_found_by_any_part_of_what_it_is_called",
    ),
    Mutant(
        "kernels-of-other-boots-named",
        "user/command/symbolize.c", "if (boot && id && !strcmp(boot, symbolizing->boot_id))", "if (boot && id)",
        "pure/test_symbolize.py::test_kernel_addresses_of_another_boot_are_not",
    ),
    Mutant(
        "newer-records-read",
        "user/command/symbolize.c", "return atoi(text_of(record, \"schema_version\")) <= atoi(SCHEMA_VERSION);", "return true;",
        "pure/test_symbolize.py::test_records_of_another_major_version_pass_and_are_counted",
    ),
    Mutant(
        "largest-change-of-a-remedy",
        "user/facility/summary.c", "(!size || changes[i].size < size)", "(!size || changes[i].size > size)",
        "pure/test_diagnosis.py::test_the_smallest_change_that_helps_comes_first",
    ),
    Mutant(
        "reason-told-for-each",
        "user/facility/summary.c", "if (!strcmp(string(one, member), text))", "if (0)",
        "pure/test_doctor_facts.py::test_every_reason_is_told_once_for_all_that_it_stops",
    ),
    Mutant(
        "counts-above-what-is-known-passed",
        "user/selftest/judges.c", "value >= counted->least && value <= counted->most &&", "value >= counted->least &&",
        "pure/test_judges.py::test_a_count_has_to_be_within_its_bounds_and_whole",
    ),
    Mutant(
        "few-samples-are-enough",
        "user/selftest/judges.c", "return shares->all >= least &&", "return ",
        "pure/test_judges.py::test_samples_lie_where_the_code_has_it",
    ),
    Mutant(
        "samples-beyond-the-period-passed",
        "user/selftest/judges.c", "samples * 100 <= expected * 102;", "1;",
        "pure/test_judges.py::test_a_period_gives_so_many_samples",
    ),
    Mutant(
        "counts-in-turns-judged",
        "user/selftest/judges.c", "return !strcmp(status, \"counted\");", "return true;",
        "pure/test_judges.py::test_a_count_has_to_be_within_its_bounds_and_whole",
    ),

    # --- profile and mem ---------------------------------------------------------------------------
    Mutant(
        "profile-by-comm-alone",
        "user/profile/profile.c", '.default_keys = "comm,symbol",', '.default_keys = "comm",',
        "live/test_profile.py::test_without_an_event_the_start_record_says_which_was_taken_and_why",
    ),
    Mutant(
        "latency-of-stores",
        "user/mem/plan.c", "if (own->ldlat && own->stores && !own->loads) {", "if (0) {",
        "pure/test_loads.py::test_options_that_exclude_each_other",
    ),
    Mutant(
        "line-of-each-address",
        "bpf/mem.bpf.c", "key->cacheline = load->address & ~CACHELINE_MASK;", "key->cacheline = load->address;",
        "machine/test_mem_on_nehalem.py::test_words_that_share_a_line_are_shown_with_who_loads_which",
    ),
    Mutant(
        "latency-bucket-beside",
        "bpf/mem.bpf.c", "bucket += shift;", "bucket += shift - (shift == 1);",
        "machine/test_mem_on_nehalem.py::test_a_chain_is_found_where_it_fits[l2-l2_hit-8-10]",
    ),
    Mutant(
        "latency-of-the-last-load",
        "bpf/mem.bpf.c", "value->latency_sum += latency;", "value->latency_sum = latency;",
        "machine/test_mem_on_nehalem.py::test_a_chain_is_found_where_it_fits[l2-l2_hit-8-10]",
    ),
    Mutant(
        "remote-memory-is-here",
        "bpf/mem.bpf.c", "return NODE_OTHER | NODE_IS", "return NODE_IS",
        "machine/test_mem_on_nehalem.py::test_memory_is_local_to_the_package_it_belongs_to",
    ),
    Mutant(
        "modified-are-the-others",
        "user/mem/mem.c", "line->modified += modified ? samples : 0;", "line->modified += modified ? 0 : samples;",
        "machine/test_mem_on_nehalem.py::test_words_that_share_a_line_are_shown_with_who_loads_which",
    ),
    Mutant(
        "no-offset-in-common",
        "user/mem/mem.c", "thread[offset] = tid;", ";",
        "machine/test_mem_on_nehalem.py::test_a_line_that_two_cores_write_in_turn_is_shown_with_who_loads_it",
    ),
    Mutant(
        "where-less-is-at-most",
        "bpf/where.bpf.h", "return value < term->value;", "return value <= term->value;",
        "live/test_where.py::test_a_condition_lets_through_what_it_says",
    ),
    Mutant(
        "where-and-goes-on",
        "user/plan/where.c", "put_node(condition, node->left, right, no);", "put_node(condition, node->left, right, yes);",
        "live/test_where.py::test_a_condition_lets_through_what_it_says",
    ),
    Mutant(
        "stream-newest-first",
        "user/activity/streaming.c", "flow->next.time < found->next.time", "flow->next.time > found->next.time",
        "live/test_stream.py::test_samples_of_several_events_and_cpus_are_in_the_order_of_time",
    ),
    Mutant(
        "rings-out-of-turn",
        "user/aggregation/rings.c", "moved.time <= rings->turns[child].time", "moved.time >= rings->turns[child].time",
        "pure/test_rings.py::test_samples_come_in_the_order_of_time_and_what_is_missing_was_counted",
    ),
    Mutant(
        "place-of-before",
        "user/naming/codes.c", "codes->changes + mappings_changes(codes->mappings)", "codes->changes",
        "pure/test_mapped.py::test_an_address_is_found_in_what_is_mapped_there_now_or_was_before",
    ),
    Mutant(
        "line-with-former-names",
        "user/record/fields.c", "fields->shape && fields->nr == fields->had", "fields->shape",
        "pure/test_compact.py::test_a_line_that_differs_from_the_one_before_in_any_place_is_written_as_if_it_were_the_first",
    ),
]
