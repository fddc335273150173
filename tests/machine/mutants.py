#!/usr/bin/python3
"""Breaks the emulator in small ways, one at a time: each fault must make a test fail.

usage: mutants.py [NAME...]     (after `make machine`; all of them without NAME)

Exit status: 0 all were noticed; 1 some survived (they are listed at the end);
2 a fault does not fit the source any more, or does not compile.
"""
import concurrent.futures
import dataclasses
import os
import shutil
import subprocess
import sys
import time

import nehalem

WORKERS = 2


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    file: str  # in src/nhm
    old: str
    new: str
    tests: str  # where it should be noticed; the others are tried afterwards


PMU, MEM, GLUE, UNCORE = "nhm_pmu.cc", "nhm_mem.cc", "nhm_glue.cc", "nhm_uncore.cc"
MUTANTS = [
    Mutant("pebs-address-offset", PMU, "record[0x98 / 8] =", "record[0x90 / 8] =", "data_sources"),
    Mutant("pebs-source-offset", PMU, "record[0xA0 / 8] =", "record[0x98 / 8] =", "data_sources"),
    Mutant("pebs-ip-of-the-instruction", GLUE, "gen_reg[BX_64BIT_REG_RIP].rrx;\n    for", "prev_rip;\n    for", "pebs"),
    Mutant("pebs-reset-forgotten", PMU, "counter[n] = reset & COUNTER_MASK;", "counter[n] = 0;", "pebs"),
    Mutant("pebs-for-imprecise-events", PMU, ">> a.index & 1) && a.precise;", ">> a.index & 1);", "pebs"),
    Mutant("pebs-arms-nothing", PMU, "pebs_armed |= 1u << a.index;", ";", "pebs"),
    Mutant("latency-off-by-one", PMU, "ll_latency = latency;", "ll_latency = latency + 1;", "data_sources"),
    Mutant("latency-threshold-inclusive", PMU, "latency > core->ld", "latency >= core->ld", "data_sources"),
    Mutant("every-eighth-load-tagged", PMU, "(lfsr >> 13 & 0xF) == 0xF", "(lfsr >> 14 & 7) == 7", "pebs"),
    Mutant("interrupt-lost", PMU, "if (late || (pmi && !settings.skid))", "if (late)", "pebs"),
    Mutant("skid-off-by-one", PMU, "pmi_delay = settings.skid;", "pmi_delay = settings.skid + 1;", "pebs"),
    Mutant("levels-swapped", PMU, "of.cpl ? a.usr : a.os", "of.cpl ? a.os : a.usr", "counts"),
    Mutant("cmask-exclusive", PMU, "x >= a.cmask", "x > a.cmask", "counts"),
    Mutant("edges-ignored", PMU, "a.edge = sel >> 18 & 1;", "a.edge = false;", "counts"),
    Mutant("all-counters-count-the-l1d", PMU, "return n < 2 ||", "return true ||", "registers"),
    Mutant("counters-take-no-sign", PMU, "(uint64_t)(int64_t)(int32_t)value", "(uint32_t)value", "registers"),
    Mutant("reserved-bit-taken", PMU, "RESERVED(value, 0xFFF); fixed", "RESERVED(value, 0x1FFF); fixed", "registers"),
    Mutant("pin-control-taken", PMU, "0x1FF7FFFFull", "0x1FFFFFFFull", "registers"),
    Mutant("status-not-cleared", PMU, "global_status &= ~value;", ";", "registers"),
    Mutant("counters-do-not-freeze", PMU, "FRZ_PERFMON_ON_PMI) global_ctrl = 0;", "FRZ_PERFMON_ON_PMI) ;", "registers"),
    Mutant("lbr-does-not-freeze", PMU, "debugctl &= ~(uint64_t)DEBUGCTL_LBR;", ";", "registers"),
    Mutant("capability-missing", PMU, "0x03 | 1u << 6", "0x03", "registers"),
    Mutant("lbr-filter-ignored", PMU, "if (core->lbr_select & kind) return;", "", "lbr"),
    Mutant("lbr-level-filter-swapped", PMU, "(cpl == 0 ? 1 : 2)", "(cpl == 0 ? 2 : 1)", "lbr"),
    Mutant("lbr-eight-deep", PMU, "(lbr_tos + 1) % N_LBR", "(lbr_tos + 1) % 8", "lbr"),
    Mutant("lbr-flag-inverted", PMU, "(uint64_t)mispredicted << 63", "(uint64_t)!mispredicted << 63", "lbr"),
    Mutant("bts-target-lost", PMU, "write_linear(index + 8, to)", "write_linear(index + 8, from)", "lbr"),
    Mutant("returns-mispredicted", MEM, "c.ras_top = (c.ras_top - 1) & 15;", "", "lbr"),
    Mutant("indirect-calls-always-right", MEM, "c.btb_target[k] == to;\n", "true;\n", "lbr"),
    Mutant("offcore-dram-bits-swapped", "nhm_mem.h", "REMOTE_DRAM = 1u << 13,\n  LOCAL_DRAM = 1u << 14", "REMOTE_DRAM = 1u << 14,\n  LOCAL_DRAM = 1u << 13", "offcore"),
    Mutant("offcore-response-ignored", PMU, "(bits & sel & 0xFF) && (bits & sel & 0xFF00)", "(bits & sel & 0xFF)", "offcore"),
    Mutant("write-backs-lost", MEM, "add_offcore(out, WB | UNCORE_HIT);", "", "offcore"),
    Mutant("prefetcher-one-line-ahead", MEM, "k <= 2; k++", "k <= 1; k++", "offcore"),
    Mutant("l1d-nine-ways", MEM, "TagArray<64, 8>   l1d", "TagArray<64, 9>   l1d", "data_sources"),
    Mutant("stlb-too-large", MEM, "TagArray<128, 4>  stlb", "TagArray<1024, 4>  stlb", "data_sources"),
    Mutant("modified-line-called-clean", MEM, "out.source = SRC_OTHER_CORE_HITM;", "out.source = SRC_OTHER_CORE_CLEAN;", "data_sources"),
    Mutant("fill-buffers-forgotten", MEM, "if (left > lat.l1)", "if (false)", "data_sources"),
    Mutant("home-and-afar-swapped", MEM, "far && !remote", "far && remote", "data_sources"),
    Mutant("any-thread-ignored", PMU, "if (!own && !a.any) continue;", "if (!own) continue;", "threads"),
    Mutant("any-thread-always", PMU, "if (!own && !a.any) continue;", "", "threads"),
    Mutant("registers-not-shared", GLUE, "&core_registers[core]", "&core_registers[cpu]", "threads"),
    Mutant("uncore-hits-are-misses", UNCORE, "{ 0x08, 0x01, UEV_LLC_HIT_READ }", "{ 0x08, 0x01, UEV_LLC_MISS_READ }", "uncore"),
    Mutant("scalar-called-packed", GLUE, '{ "sd", nhm::EV_SSE_SD }', '{ "sd", nhm::EV_SSE_PD }', "counts"),
    Mutant("store-counted-as-load", PMU, "    ev[EV_STORES] = 1;", "    ev[EV_LOADS] = ev[EV_STORES] = 1;", "counts"),
    Mutant("fixed-counter-by-rdpmc", PMU, "counter[N_GENERAL + (index & 3)]", "counter[N_GENERAL]", "counts"),
]


def fail(words):
    print("mutants: " + words, file=sys.stderr)
    sys.exit(2)


def build(mutant, folder):
    """The emulator with one fault."""
    source = f"{nehalem.HERE}/src/nhm/{mutant.file}"
    tree = nehalem.build_folder() + "/bochs-3.0"
    place = f"{tree}/instrument/nhm/{mutant.file}"
    with open(source) as f:
        text = f.read()
    if text.count(mutant.old) != 1:
        fail(f"{mutant.name}: found {text.count(mutant.old)} times in {mutant.file}: {mutant.old!r}")
    try:
        with open(place, "w") as f:
            f.write(text.replace(mutant.old, mutant.new))
        made = subprocess.run(["make", "-C", tree, "-j2"], capture_output=True, text=True)
        if made.returncode:
            fail(f"{mutant.name} does not compile:\n{made.stdout[-2000:]}{made.stderr[-2000:]}")
        shutil.copy(tree + "/bochs", f"{folder}/{mutant.name}")
    finally:
        shutil.copy(source, place)


def first_failure(emulator, tests):
    """The name of the first test that fails on an emulator, or None."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    said = subprocess.run(
        [*command, "-rfE", "--tb=no", *tests],
        env=dict(os.environ, NHM_BOCHS=emulator),
        capture_output=True,
        text=True,
    )
    if said.returncode not in (0, 1):
        return f"pytest ended with {said.returncode}: {said.stdout[-500:]}"
    lines = [x for x in said.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
    return lines[0].split("::", 1)[-1].split(" - ")[0] if lines else None


def try_out(mutant, folder):
    began = time.monotonic()
    likely = f"{nehalem.HERE}/test_{mutant.tests}.py"
    others = sorted(
        f"{nehalem.HERE}/{name}"
        for name in os.listdir(nehalem.HERE)
        if name.startswith("test_") and not likely.endswith(name)
    )
    emulator = f"{folder}/{mutant.name}"
    killer = first_failure(emulator, [likely]) or first_failure(emulator, others)
    print(f"{killer and 'noticed ' or 'SURVIVED'} {mutant.name:28} {time.monotonic() - began:5.0f} s  {killer or ''}", flush=True)
    return killer


def main():
    chosen = [m for m in MUTANTS if m.name in sys.argv[1:] or not sys.argv[1:]]
    if unknown := set(sys.argv[1:]) - {m.name for m in chosen}:
        fail("no such fault: " + " ".join(sorted(unknown)))
    folder = nehalem.build_folder() + "/mutants"
    os.makedirs(folder, exist_ok=True)
    try:
        for mutant in chosen:
            build(mutant, folder)
    finally:
        subprocess.run(["make", "-C", nehalem.build_folder() + "/bochs-3.0", "-j2"], capture_output=True)
    print(f"{len(chosen)} faults built", flush=True)
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        killers = list(pool.map(lambda m: try_out(m, folder), chosen))
    survivors = [m.name for m, killer in zip(chosen, killers) if not killer]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} faults were noticed")
    if survivors:
        print("survived: " + " ".join(survivors))
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
