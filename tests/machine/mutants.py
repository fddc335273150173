#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Breaks the emulator in small ways, one at a time: each fault must make a test fail.

usage: mutants.py [-j N] [NAME...]     (after `make machine`; all of them without NAME)

A fault in a header that all of Bochs includes has no effect: its makefiles do not track these
headers.

Exit status: 0 all were noticed; 1 some survived (they are listed at the end);
2 a fault does not fit the source any more, or does not compile.
"""
import argparse
import concurrent.futures
import dataclasses
import os
import shutil
import subprocess
import sys
import time

import mutation
import nehalem

SOURCES = nehalem.HERE + "/src/nhm"


@dataclasses.dataclass(frozen=True)
class Mutant(mutation.Mutant):
    # The test of `nhmtap doctor --selftest` that must notice it, TEST or TEST@MODEL; `unseen` says
    # why none can. A fault concerns the selftest if it changes a number that follows from a
    # program's text alone, on one core or two of a package, and that the program's user can measure
    # by perf_event.
    selftest: str = ""
    unseen: str = ""


PAIRS = "the selftest's programs have no instruction with two accesses"
MACHINE = "no program's text says how long this takes, how much has room or what is chosen"
KERNEL = "the kernel does not let it happen"
PACKAGES = "it takes two packages"
THREADS = "what the core's other thread does is not the program's"
CPUID = "the machine is what it says of itself"
WRITES = "the selftest writes no registers by itself"

PMU, MEM, GLUE, UNCORE = "nhm_pmu.cc", "nhm_mem.cc", "nhm_glue.cc", "nhm_uncore.cc"
PMU_HEADER = "nhm_pmu.h"
MODELS = "nhm_models.inc"
MUTANTS = [
    Mutant(
        "pebs-address-offset",
        PMU, "record[0x98 / 8] =", "record[0x90 / 8] =",
        "machine/test_data_sources.py::test_load_latency_says_which_load_where_and_how_long",
        selftest="l1",
    ),
    Mutant(
        "pebs-source-offset",
        PMU, "record[0xA0 / 8] =", "record[0x98 / 8] =",
        "machine/test_data_sources.py::test_load_latency_says_which_load_where_and_how_long",
        selftest="l2",
    ),
    Mutant(
        "pebs-ip-of-the-instruction",
        PMU, "record[0x90 / 8] = status;", "record[0x90 / 8] = status, record[0x08 / 8] = retirement->rip;",
        "machine/test_pebs.py::test_records_name_the_next_instruction_and_the_lbr_takes_linux_back",
        selftest="records",
    ),
    Mutant(
        "pebs-reset-forgotten",
        PMU, "counter[n] = reset & counter_mask;", "counter[n] = 0;",
        "machine/test_pebs.py::test_records_name_the_next_instruction_and_the_lbr_takes_linux_back",
        unseen="the kernel sets the counter anew at each of nhmtap's records",
    ),
    Mutant(
        "pebs-for-imprecise-events",
        PMU, ">> a.index & 1) && a.precise;", ">> a.index & 1);",
        "machine/test_pebs.py::test_an_event_that_pebs_cannot_record_leaves_no_record",
        unseen="nhmtap refuses precise samples of such events",
    ),
    Mutant(
        "pebs-arms-nothing",
        PMU, "pebs_armed |= 1u << a.index;", ";",
        "machine/test_pebs.py::test_an_event_that_pebs_cannot_record_leaves_no_record",
        selftest="precise",
    ),
    Mutant(
        "latency-off-by-one",
        PMU_HEADER, "ll_latency = latency;", "ll_latency = latency + 1;",
        "machine/test_data_sources.py::test_a_load_behind_a_prefetch_waits_for_the_rest",
        unseen=MACHINE,
    ),
    Mutant(
        "latency-threshold-inclusive",
        PMU, "latency > core->ld", "latency >= core->ld",
        "machine/test_data_sources.py::test_only_loads_above_the_threshold_count",
        selftest="threshold",
    ),
    Mutant(
        "every-eighth-load-tagged",
        PMU_HEADER, "(lfsr >> 13 & 0xF) == 0xF", "(lfsr >> 14 & 7) == 7",
        "machine/test_pebs.py::test_all_loads_are_tagged_on_request",
        unseen=MACHINE,
    ),
    Mutant(
        "interrupt-lost",
        PMU, "if (late || (pmi && !settings.skid))", "if (late)",
        "machine/test_pebs.py::test_without_skid_the_interrupt_comes_at_the_next_instruction",
        selftest="period",
    ),
    Mutant(
        "skid-off-by-one",
        PMU, "pmi_delay = settings.skid;", "pmi_delay = settings.skid + 1;",
        "machine/test_pebs.py::test_skid_moves_interrupts_but_not_records",
        unseen=MACHINE,
    ),
    Mutant(
        "levels-swapped",
        PMU, "of.retirement->cpl ? a.usr : a.os", "of.retirement->cpl ? a.os : a.usr",
        "machine/test_counts.py::test_each_number_in_the_program_is_what_perf_counts",
        selftest="counts",
    ),
    Mutant(
        "levels-of-quiet-instructions-swapped",
        PMU, "counter[a.index] += quiet[user];", "counter[a.index] += quiet[!user];",
        "machine/test_counts.py::test_each_number_in_the_program_is_what_perf_counts",
        selftest="counts",
    ),
    Mutant(
        "overflow-among-quiet-instructions-missed",
        PMU, "by_trace ? with_hits : room;", "by_trace ? with_hits : UINT32_MAX;",
        "machine/test_doctor_on_nehalem.py::test_every_facility_of_the_core_works_for_root",
        selftest="period",
    ),
    Mutant(
        "faults-and-repetitions-counted-by-the-trace",
        "nhm_retire.h", "count - since - unretired;", "count - since;",
        "machine/test_counts.py::test_each_number_in_the_program_is_what_perf_counts",
        selftest="counts",
    ),
    Mutant(
        "repetitions-at-once-counted-by-the-trace",
        GLUE, "    retirement.unretired += n;\n", "",
        "machine/test_counts.py::test_each_number_in_the_program_is_what_perf_counts",
        selftest="counts",
    ),
    Mutant(
        "time-of-repetitions-at-once",
        GLUE, "icount_last_sync += told;", "icount_last_sync += told - 1;",
        "machine/test_counts.py::test_string_instructions_leave_what_a_loop_leaves_and_take_the_same_time_at_once_and_one_by_one",
        unseen=MACHINE,
    ),
    Mutant(
        "overflow-in-a-trace-missed",
        "nhm_retire.h", "count + room - TRACE;", "UINT64_MAX;",
        "machine/test_doctor_on_nehalem.py::test_every_facility_of_the_core_works_for_root",
        selftest="period",
    ),
    Mutant(
        "hits-of-a-faulting-instruction-counted",
        PMU, "hits[hit_level][hit_kind]--;", "",
        "machine/test_counts.py::test_each_number_in_the_program_is_what_perf_counts",
        unseen=PAIRS,
    ),
    Mutant(
        "second-hit-of-an-instruction-takes-it-for-another",
        PMU, "hooks == NHM_HOOK_TRACE && hit_count != *retirement->count", "hooks == NHM_HOOK_TRACE",
        "machine/test_counts.py::test_each_number_in_the_program_is_what_perf_counts",
        unseen=PAIRS,
    ),
    Mutant(
        "overflow-among-hits-missed",
        PMU, "if (a.of_hits && fits / MOST_OF_HIT < with_hits)", "if (false)",
        "machine/test_pebs.py::test_samples_are_the_count_divided_by_the_period",
        unseen="the selftest samples no loads or stores that hit",
    ),
    Mutant(
        "end-of-a-trace-fetched-for",
        GLUE, "if (!i->ilen()) return;", "",
        "machine/test_counts.py::test_each_number_in_the_program_is_what_perf_counts",
        unseen=MACHINE,
    ),
    Mutant(
        "page-of-a-linked-trace-forgotten",
        "instrument.h", "if ((BX_CPU_THIS_PTR nhm_hooks & NHM_HOOK_MEM) && ", "if (false && ",
        "machine/test_counts.py::test_each_number_in_the_program_is_what_perf_counts",
        unseen=MACHINE,
    ),
    Mutant(
        "levels-of-traces-confused",
        GLUE, "nhm_retirement[cpu].cpl = hosts[cpu]->cpl();", "nhm_retirement[cpu].cpl = 3;",
        "machine/test_counts.py::test_each_number_in_the_program_is_what_perf_counts",
        selftest="counts",
    ),
    Mutant(
        "read-without-the-quiet-instructions",
        PMU, "bool Pmu::rdpmc(uint32_t index, uint64_t *value) {\n  settle();",
        "bool Pmu::rdpmc(uint32_t index, uint64_t *value) {",
        "machine/test_counts.py::test_rdpmc_counts_around_a_loop",
        selftest="reading",
    ),
    Mutant(
        "cmask-exclusive",
        PMU, "x >= a.cmask", "x > a.cmask",
        "machine/test_counts.py::test_cmask_counts_instructions_of_at_least_so_many_uops",
        selftest="masks",
    ),
    Mutant(
        "edges-ignored",
        PMU, "a.edge = sel >> 18 & 1;", "a.edge = false;",
        "machine/test_counts.py::test_edge_detection_counts_runs_of_branches",
        selftest="beginnings",
    ),
    Mutant(
        "all-counters-count-the-l1d",
        PMU, "return n < 2 ||", "return true ||",
        "machine/test_registers.py::test_the_first_level_cache_is_counted_on_two_counters_only",
        unseen=KERNEL,
    ),
    Mutant(
        "counters-take-no-sign",
        PMU, "(uint64_t)(int64_t)(int32_t)value", "(uint32_t)value",
        "machine/test_registers.py::test_counters_take_32_bits_and_their_sign",
        selftest="edges",
    ),
    Mutant(
        "reserved-bit-taken",
        PMU, "RESERVED(value, 0xFFF); fixed", "RESERVED(value, 0x1FFF); fixed",
        "machine/test_registers.py::test_every_reserved_bit_faults_and_every_other_is_taken",
        unseen=KERNEL,
    ),
    Mutant(
        "pin-control-taken",
        PMU, "0x1FF7FFFFull", "0x1FFFFFFFull",
        "machine/test_registers.py::test_every_reserved_bit_faults_and_every_other_is_taken",
        unseen=KERNEL,
    ),
    Mutant(
        "status-not-cleared",
        PMU, "global_status &= ~value;", ";",
        "machine/test_registers.py::test_overflow_status_is_cleared_by_its_own_register",
        selftest="period",
    ),
    Mutant(
        "counters-do-not-freeze",
        PMU, "FRZ_PERFMON_ON_PMI) global_ctrl = 0;", "FRZ_PERFMON_ON_PMI) ;",
        "machine/test_registers.py::test_counters_freeze_on_an_interrupt_when_told_to",
        unseen=KERNEL,
    ),
    Mutant(
        "lbr-does-not-freeze",
        PMU, "debugctl &= ~(uint64_t)DEBUGCTL_LBR;", ";",
        "machine/test_registers.py::test_the_lbr_freezes_on_an_interrupt_when_told_to",
        selftest="frozen",
    ),
    Mutant(
        "capability-missing",
        MODELS, "0x11C3, 0x0000000F0000000F", "0x1183, 0x0000000F0000000F",
        "machine/test_registers.py::test_capabilities_are_those_of_table_3",
        selftest="precise",
    ),
    Mutant(
        "lbr-filter-ignored",
        PMU, "if (core->lbr_select & kind) return;", "",
        "machine/test_lbr.py::test_each_filter_bit_keeps_out_its_kind_and_no_other",
        selftest="filter",
    ),
    Mutant(
        "lbr-level-filter-swapped",
        PMU, "(cpl == 0 ? 1 : 2)", "(cpl == 0 ? 2 : 1)",
        "machine/test_lbr.py::test_each_filter_bit_keeps_out_its_kind_and_no_other",
        selftest="edges",
    ),
    Mutant(
        "lbr-eight-deep",
        PMU, "(lbr_tos + 1) % n_lbr", "(lbr_tos + 1) % 8",
        "machine/test_lbr.py::test_the_user_level_filter_leaves_the_kernels_branches",
        selftest="filter",
    ),
    Mutant(
        "lbr-flag-inverted",
        PMU, "(uint64_t)mispredicted << 63", "(uint64_t)!mispredicted << 63",
        "machine/test_lbr.py::test_mispredicted_entries_are_where_the_code_cannot_be_foretold",
        selftest="edges",
    ),
    Mutant(
        "bts-target-lost",
        PMU, "write_linear(index + 8, to)", "write_linear(index + 8, from)",
        "machine/test_lbr.py::test_branch_trace_store_has_every_call",
        selftest="trace",
    ),
    Mutant(
        "returns-mispredicted",
        MEM, "c.ras_top = (c.ras_top - 1) & 15;", "",
        "machine/test_lbr.py::test_returns_are_foretold",
        selftest="edges",
    ),
    Mutant(
        "indirect-calls-always-right",
        MEM, "c.btb_target[k] == to;\n", "true;\n",
        "machine/test_lbr.py::test_indirect_calls_are_mispredicted_when_their_target_changes",
        selftest="unforeseen",
    ),
    Mutant(
        "offcore-dram-bits-swapped",
        MODELS, "0x106A5, nehalem, OF_NEHALEM,     0x44, 0xFFFF, 14, 13,", "0x106A5, nehalem, OF_NEHALEM,     0x44, 0xFFFF, 13, 14,",
        "machine/test_offcore.py::test_demand_requests_go_to_memory_under_their_own_bit",
        selftest="from_memory",
    ),
    Mutant(
        "offcore-response-ignored",
        PMU, "(bits & sel & 0xFF) && (bits & sel & 0xFF00)", "(bits & sel & 0xFF)",
        "machine/test_offcore.py::test_each_response_bit_alone_and_only_the_right_one_counts",
        selftest="from_memory",
    ),
    Mutant(
        "write-backs-lost",
        MEM, "add_offcore(out, WB | UNCORE_HIT);", "",
        "machine/test_offcore.py::test_write_backs",
        selftest="write_backs",
    ),
    Mutant(
        "prefetcher-one-line-ahead",
        MEM, "k <= 2; k++", "k <= 1; k++",
        "machine/test_offcore.py::test_the_prefetcher_stays_two_lines_ahead",
        unseen=MACHINE,
    ),
    Mutant(
        "l1d-nine-ways",
        "nhm_mem.h", "TagArray<64, 8>   l1d", "TagArray<64, 9>   l1d",
        "machine/test_data_sources.py::test_a_chain_is_found_where_it_fits",
        unseen=MACHINE,
    ),
    Mutant(
        "stlb-too-large",
        "nhm_mem.h", "TagArray<128, 4>  stlb", "TagArray<1024, 4>  stlb",
        "machine/test_data_sources.py::test_page_strides_miss_the_second_level_tlb",
        selftest="walks",
    ),
    Mutant(
        "modified-line-called-clean",
        MEM, "out.source = SRC_OTHER_CORE_HITM;", "out.source = SRC_OTHER_CORE_CLEAN;",
        "machine/test_data_sources.py::test_lines_of_another_core",
        selftest="modified",
    ),
    Mutant(
        "fill-buffers-forgotten",
        MEM, "if (left > lat.l1)", "if (false)",
        "machine/test_data_sources.py::test_a_line_on_its_way_is_found_in_a_fill_buffer",
        selftest="fills",
    ),
    Mutant(
        "home-and-afar-swapped",
        MEM, "far && !remote", "far && remote",
        "machine/test_data_sources.py::test_lines_of_another_package",
        unseen=PACKAGES,
    ),
    Mutant(
        "any-thread-ignored",
        PMU, "if (!own && !a.any) continue;", "if (!own) continue;",
        "machine/test_threads.py::test_any_thread_counts_the_sibling_and_nobody_else",
        unseen=THREADS,
    ),
    Mutant(
        "any-thread-always",
        PMU, "if (!own && !a.any) continue;", "",
        "machine/test_threads.py::test_an_event_beside_one_with_any_thread_does_not_count_the_sibling",
        unseen=THREADS,
    ),
    Mutant(
        "registers-not-shared",
        GLUE, "design().shared_registers ? core : cpu", "design().shared_registers ? cpu : cpu",
        "machine/test_threads.py::test_a_shared_register_has_one_value_a_core",
        unseen=KERNEL,
    ),
    Mutant(
        "uncore-hits-are-misses",
        UNCORE, "{ 0x08, 0x01, UEV_LLC_HIT_READ }", "{ 0x08, 0x01, UEV_LLC_MISS_READ }",
        "machine/test_uncore.py::test_reads_and_write_backs_that_the_llc_satisfies",
        selftest="uncore",
    ),
    Mutant(
        "scalar-called-packed",
        GLUE, '{ "sd", nhm::EV_SSE_SD }', '{ "sd", nhm::EV_SSE_PD }',
        "machine/test_counts.py::test_each_number_in_the_program_is_what_perf_counts",
        selftest="doubles",
    ),
    Mutant(
        "store-counted-as-load",
        PMU, "    ev[EV_STORES] = 1;", "    ev[EV_LOADS] = ev[EV_STORES] = 1;",
        "machine/test_counts.py::test_each_number_in_the_program_is_what_perf_counts",
        selftest="accesses",
    ),
    Mutant(
        "fixed-counter-by-rdpmc",
        PMU, "counter[N_GENERAL + (index & 3)]", "counter[N_GENERAL]",
        "machine/test_counts.py::test_rdpmc_reads_the_fixed_counters",
        selftest="masks",
    ),
    Mutant(
        "westmere-memory-bits-as-nehalem",
        MODELS, "OF_WESTMERE,    0x04, 0xFFFF, 13, 14,", "OF_WESTMERE,    0x04, 0xFFFF, 14, 13,",
        "machine/test_westmere.py::test_the_remote_share_is_that_of_the_other_package[westmere-home0-0]",
        selftest="from_memory@westmere",
    ),
    Mutant(
        "westmere-modified-afar-unknown",
        MEM, "m.remote_hitm ? SRC_REMOTE_HITM : SRC_UNKNOWN", "SRC_UNKNOWN",
        "machine/test_westmere.py::test_lines_of_another_core_are_told_by_where_and_how_it_has_them[westmere-dp-dirty]",
        unseen=PACKAGES,
    ),
    Mutant(
        "westmere-modified-afar-under-no-bit",
        MEM, "m.remote_hitm ? REMOTE_CACHE_HITM : 0", "0",
        "machine/test_westmere.py::test_lines_of_the_other_package_answer_under_their_bit[westmere-ex-dirty]",
        unseen=PACKAGES,
    ),
    Mutant(
        "westmere-mispredictions-imprecise",
        PMU, "if (event == 0xC5 && model().set != OF_NEHALEM) return true;", ";",
        "machine/test_westmere.py::test_any_mispredicted_branch_is_sampled_precisely[westmere]",
        selftest="mispredicted@westmere",
    ),
    Mutant(
        "westmere-walks-take-no-time",
        PMU, "ev[EV_DTLB_WALK_CYCLES] += t.latency;", "ev[EV_DTLB_WALK_CYCLES]++;",
        "machine/test_westmere.py::test_page_walks_are_counted_with_their_cycles[westmere]",
        unseen=MACHINE,
    ),
    Mutant(
        "westmere-lacks-nehalems-events",
        GLUE, "leaf->ebx = p.ebx;", ";",
        "machine/test_westmere.py::test_its_table_is_found_by_its_signature_and_every_facility_of_the_core_works[westmere]",
        selftest="unforeseen@westmere",
    ),
    Mutant(
        "westmere-second-register-idle",
        PMU, "for (unsigned r = 0; r < 2; r++) {", "for (unsigned r = 0; r < 1; r++) {",
        "machine/test_westmere.py::test_a_group_holds_two_off_core_values_and_no_third[westmere]",
        selftest="from_memory@westmere",
    ),
    Mutant(
        "perfmon-by-hand-ignored",
        "nhm_model.cc", "if (by_hand) sscanf", "if (0) sscanf",
        "machine/test_perfmon.py::test_doctor_says_what_there_is_of_version_1",
        unseen=CPUID,
    ),
    Mutant(
        "store-address-of-the-first",
        PMU, "store_address = laddr;", "if (!store_address) store_address = laddr;",
        "machine/test_sandybridge.py::test_each_sampled_store_has_its_address_and_its_instruction",
        selftest="stores@sandybridge",
    ),
    Mutant(
        "store-hit-inverted",
        PMU, "store_status = out.l1_hit | bits;", "store_status = !out.l1_hit | bits;",
        "machine/test_sandybridge.py::test_a_store_behind_a_flush_misses_the_first_level_cache",
        selftest="stores@sandybridge",
    ),
    Mutant(
        "store-without-its-enable-bit",
        PMU, "(pebs_enable & PEBS_STORES) && (fired & 8)", "(pebs_enable & PEBS_STORES) && (fired & 1)",
        "machine/test_sandybridge.py::test_each_sampled_store_has_its_address_and_its_instruction",
        selftest="stores@sandybridge",
    ),
    Mutant(
        "stlb-bit-where-the-lock-is",
        PMU, "!t.second_hit << 4 | kind.locked << 5", "!t.second_hit << 5 | kind.locked << 4",
        "machine/test_sandybridge.py::test_load_latency_tells_locks_and_tlb_misses",
        selftest="translations@sandybridge",
    ),
    Mutant(
        "locks-forgotten",
        GLUE, "nhm_retirement[cpu].locked,", "false,",
        "machine/test_sandybridge.py::test_each_sampled_store_has_its_address_and_its_instruction",
        selftest="stores@sandybridge",
    ),
    Mutant(
        "split-at-the-last-byte",
        GLUE, "+ length > nhm::LINE", "+ length >= nhm::LINE",
        "machine/test_sandybridge.py::test_loads_and_stores_are_counted_exactly",
        selftest="splits@sandybridge",
    ),
    Mutant(
        "sandybridge-snoop-not-asked",
        PMU, "(selected & a.supplier) && (selected & a.snoop)", "(selected & a.supplier)",
        "machine/test_sandybridge.py::test_an_off_core_response_has_a_supplier_and_a_snoop_or_is_any",
        selftest="from_l3@sandybridge",
    ),
    Mutant(
        "sandybridge-any-response-is-none",
        PMU, "if (!asked || (selected & ANY)) return asked;", "if (!asked) return asked;",
        "machine/test_sandybridge.py::test_an_off_core_response_has_a_supplier_and_a_snoop_or_is_any",
        selftest="write_backs@sandybridge",
    ),
    Mutant(
        "sandybridge-memory-swapped",
        PMU, "{ REMOTE_DRAM, REMOTE, MISS }, { LOCAL_DRAM, LOCAL, MISS }", "{ REMOTE_DRAM, LOCAL, MISS }, { LOCAL_DRAM, REMOTE, MISS }",
        "machine/test_sandybridge_with_nhmtap.py::test_the_remote_share_is_that_of_the_other_package",
        selftest="from_memory@sandybridge",
    ),
    Mutant(
        "sandybridge-has-nehalems-snoop-codes",
        PMU, "source == SRC_OTHER_CORE_CLEAN ? 0x6", "source == SRC_OTHER_CORE_CLEAN ? 0x5",
        "machine/test_sandybridge.py::test_the_codes_of_another_core_are_those_that_linux_reads",
        selftest="clean@sandybridge",
    ),
    Mutant(
        "four-counters-for-a-thread-alone",
        "nhm_model.cc", "topology.threads > 1 ? d.general : d.general_alone", "d.general",
        "machine/test_sandybridge.py::test_a_thread_alone_on_its_core_has_eight_counters",
        unseen=CPUID,
    ),
    Mutant(
        "threads-share-what-is-theirs",
        MODELS, "0xB0, 16, 0x680, 0x6C0, false, true,  true,  false, false)", "0xB0, 16, 0x680, 0x6C0, true, true,  true, false, false)",
        "machine/test_sandybridge.py::test_threads_share_no_such_register",
        unseen=THREADS,
    ),
    Mutant(
        "full-width-writes-take-a-sign",
        PMU, "    RESERVED(value, counter_mask);\n    counter[n] = value;", "    counter[n] = value;",
        "machine/test_sandybridge.py::test_every_reserved_bit_faults",
        unseen=KERNEL,
    ),
    Mutant(
        "microcode-not-told",
        PMU, "*value = (uint64_t)model().microcode << 32;", "*value = 0;",
        "machine/test_sandybridge.py::test_the_driver_keeps_pebs_off_with_early_microcode",
        selftest="precise@sandybridge",
    ),
    Mutant(
        "core-2-with-48-bits",
        MODELS, "NHM_DESIGN(core2,       2, 2, 40,", "NHM_DESIGN(core2,       2, 2, 48,",
        "machine/test_sandybridge.py::test_core_2_counts_on_two_counters_of_40_bits",
        unseen=CPUID,
    ),
    Mutant(
        "core-2-with-nehalems-record",
        MODELS, "0x90,  4, 0x040, 0x060, true,  false, false, false, false)", "0xB0,  4, 0x040, 0x060, true,  false, false, false, false)",
        "machine/test_sandybridge.py::test_core_2_records_on_the_first_counter_alone",
        unseen="none of the program's branches can be sampled precisely on a Core 2",
    ),
    Mutant(
        "walks-take-the-same-from-everywhere",
        MEM, "return own.latency > lat.walk ? own.latency : lat.walk;", "return lat.walk;",
        "machine/test_data_sources.py::test_a_page_walk_takes_as_long_as_the_pages_entry_is_away",
        unseen=MACHINE,
    ),
    Mutant(
        "threads-have-a-whole-code-tlb-each",
        MEM, "return topology.threads > 1 ? tlb_access(c.itlb_half, c, laddr) :", "return",
        "machine/test_data_sources.py::test_two_threads_of_a_core_have_half_a_code_tlb_each",
        unseen=THREADS,
    ),
    Mutant(
        "clean-line-of-the-other-package-is-remote-memory",
        MEM, "remote || far == STATE_M ? lat.remote", "remote || far ? lat.remote",
        "machine/test_data_sources.py::test_lines_of_another_package",
        unseen=PACKAGES,
    ),
    Mutant(
        "line-that-was-left-needs-no-snoop",
        MEM, "!other && asks", "false",
        "machine/test_data_sources.py::test_a_line_that_another_core_has_left_costs_a_snoop_all_the_same",
        unseen=MACHINE,
    ),
    Mutant(
        "line-that-was-left-is-clean-there",
        PMU, "if (source == SRC_OTHER_CORE_LEFT) return 0x5;", "if (source == SRC_OTHER_CORE_LEFT) return 0x6;",
        "machine/test_sandybridge.py::test_the_codes_of_another_core_are_those_that_linux_reads",
        unseen=MACHINE,
    ),
    Mutant(
        "firmware-leaves-nothing",
        PMU, "fixed_ctr_ctrl = firmware_counters();", "fixed_ctr_ctrl = 0;",
        "machine/test_sandybridge_with_nhmtap.py::test_doctor_tells_what_microcode_and_firmware_take_away",
        unseen=CPUID,
    ),
    Mutant(
        "core-numbers-without-a-gap",
        MODELS, "true, 5, 3, 0,", "true, 5, 0, 0,",
        "machine/test_cpuid.py::test_cpuid_is_that_of_a_real_machine[an X5650]",
        unseen=CPUID,
    ),
    Mutant(
        "waiting-for-data-called-starving",
        PMU, "wait_for_data(charged > lat.l1", "step.stall += (charged > lat.l1",
        "machine/test_derived_values.py::test_a_chain_through_memory_waits_in_the_back_end",
        selftest="stalls",
    ),
    Mutant(
        "netburst-overflow-not-flagged",
        PMU, "evtsel[n] |= 1ull << 31;", ";",
        "machine/test_netburst.py::test_a_counter_wraps_at_forty_bits_and_says_so",
        unseen="the kernel's counts of a NetBurst are refused",
    ),
    Mutant(
        "netburst-cascade-starts-nothing",
        PMU, "evtsel[next] |= 1ull << 12;", ";",
        "machine/test_netburst.py::test_the_second_counter_of_a_cascade_starts_when_the_first_overflows",
        unseen=WRITES,
    ),
    Mutant(
        "netburst-cascade-of-the-same-pair",
        PMU, "next == (n ^ 2)", "next == (n ^ 1)",
        "machine/test_netburst.py::test_the_second_counter_of_a_cascade_starts_when_the_first_overflows",
        unseen=WRITES,
    ),
    Mutant(
        "netburst-extended-cascade-by-the-other-flag",
        PMU, "return extended && (next", "return cascade && (next",
        "machine/test_netburst.py::test_counters_16_and_17_start_two_each_when_they_overflow",
        unseen=WRITES,
    ),
    Mutant(
        "netburst-extended-cascade-into-the-wrong-counter",
        PMU, "(n == 16 ? 12 : 15)", "(n == 16 ? 15 : 12)",
        "machine/test_netburst.py::test_counters_16_and_17_start_two_each_when_they_overflow",
        unseen=WRITES,
    ),
    Mutant(
        "netburst-third-pair-is-started-by-none",
        PMU, "next == n + 2 && next >= 16", "false",
        "machine/test_netburst.py::test_a_cascade_goes_on_through_all_three_pairs_of_its_group",
        unseen=WRITES,
    ),
    Mutant(
        "netburst-replay-of-memory-not-marked",
        PMU, "EV_LD_LLC_MISS },   // and the second", "EV_LD_LLC },   // and the second",
        "machine/test_netburst.py::test_replayed_loads_are_counted_by_a_metric",
        unseen=WRITES,
    ),
    Mutant(
        "netburst-fast-read-is-whole",
        PMU, "index & NETBURST_FAST_READ ? 0xFFFFFFFF : counter_mask", "counter_mask",
        "machine/test_netburst.py::test_both_forms_of_rdpmc_read_a_counter",
        unseen=WRITES,
    ),
    Mutant(
        "cache-counts-hits-as-fills",
        "nhm_l3bus.cc", "(l.fills && (fill == 1 || l.evicts == (fill == 3)))", "fill == 1 || l.evicts == (fill == 3)",
        "machine/test_l3bus.py::test_fills_are_the_lines_that_the_chain_has_to_fetch",
        unseen=WRITES,
    ),
    Mutant(
        "cache-counter-does-not-wrap",
        "nhm_l3bus.cc", "if (!(ctl[n] & SATURATE)) ctl[n] &= ~COUNT;", ";",
        "machine/test_l3bus.py::test_a_count_goes_on_where_its_register_wraps",
        unseen=WRITES,
    ),
    Mutant(
        "freezing-forgotten",
        "nhm_l3bus.cc", "if (value & 1) frozen |= which;", ";",
        "machine/test_l3bus.py::test_the_registers_hold_what_explain_says",
        unseen=WRITES,
    ),
    Mutant(
        "cache-counters-read-one-too-far",
        "nhm_l3bus.cc", "ctl[index - first] & COUNT", "ctl[(index - first + 1) % N] & COUNT",
        "machine/test_l3bus.py::test_a_program_reads_the_counts_by_rdpmc_at_the_manuals_numbers",
        unseen=WRITES,
    ),
]


def build(mutant, folder):
    """Builds the emulator with one fault."""
    tree = nehalem.build_folder() + "/bochs-3.0"
    with mutation.in_place(mutant, SOURCES, tree + "/instrument/nhm"):
        made = subprocess.run(["make", "-C", tree, "-j2"], capture_output=True, text=True, check=False)
        if made.returncode:
            mutation.fail(f"{mutant.name} does not compile:\n{made.stdout[-2000:]}{made.stderr[-2000:]}")
        shutil.copy(tree + "/bochs", f"{folder}/{mutant.name}")


def try_out(mutant, folder):
    """The named test should notice it; otherwise all others of the machine are tried."""
    began = time.monotonic()
    machine = {"NHM_BOCHS": f"{folder}/{mutant.name}"}
    killer = mutation.first_failure([f"{mutation.TESTS}/{mutant.test}"], machine) or \
        mutation.first_failure([mutation.TESTS + "/machine"], machine)
    mutation.say(mutant, killer, time.monotonic() - began)
    return killer


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("-j", type=int, default=2, metavar="N", help="that many guests at a time (2)")
    p.add_argument("names", nargs="*", metavar="NAME")
    a = p.parse_args()
    chosen = mutation.chosen(MUTANTS, a.names)
    folder = nehalem.build_folder() + "/mutants"
    os.makedirs(folder, exist_ok=True)
    try:
        for mutant in chosen:
            build(mutant, folder)
    finally:
        tree = nehalem.build_folder() + "/bochs-3.0"
        subprocess.run(["make", "-C", tree, "-j2"], capture_output=True)
    print(f"{len(chosen)} faults built", flush=True)
    with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
        killers = list(pool.map(lambda m: try_out(m, folder), chosen))
    return mutation.report(chosen, killers)


if __name__ == "__main__":
    sys.exit(main())
