# SPDX-License-Identifier: GPL-2.0-only
"""The register values that explain reports are those that the kernel's driver writes, on each kind
of CPU with a table, and on CPUs that have architectural events only.

nhmtap explains events in the guest; each is then opened on its CPU with the perf_event_attr that was
explained, and the registers are read while it is enabled."""
import json
import shlex
import struct
import subprocess

import pytest
from facts import perfmon
from guests import CORE2, FIRST, KERNELS, SANDYBRIDGES, SECOND, TABLES, THIRD, WESTMERES, XEONS, forks, tool

# By facility: the options of explain, and the events.
EVENTS = {
    "general counters": ([], """
        INST_RETIRED.ANY_P INST_RETIRED.ANY_P:u INST_RETIRED.ANY_P:k INST_RETIRED.X87:u
        UOPS_ISSUED.ANY UOPS_RETIRED.ANY:u BR_INST_RETIRED.ALL_BRANCHES BR_INST_EXEC.TAKEN:u
        BR_MISP_EXEC.ANY MEM_INST_RETIRED.LOADS:u MEM_INST_RETIRED.STORES:k MEM_LOAD_RETIRED.LLC_MISS
        MEM_UNCORE_RETIRED.LOCAL_DRAM:u L2_RQSTS.MISS DTLB_LOAD_MISSES.ANY ITLB_MISS_RETIRED:u
        r1c0 r10cb:u r412e:k cpu/event=0x24,umask=0xaa/ FP_ASSIST.ALL"""),
    "counters 0 and 1 only": ([], """
        L1D_CACHE_LD.MESI L1D_CACHE_ST.M_STATE:u L1D.REPL:u L1D_PREFETCH.MISS CACHE_LOCK_CYCLES.L1D
        r0148:u"""),
    "cmask, inv, edge, any": ([], """
        UOPS_ISSUED.STALL_CYCLES UOPS_RETIRED.ACTIVE_CYCLES:u UOPS_RETIRED.TOTAL_CYCLES:k
        INST_RETIRED.TOTAL_CYCLES UOPS_ISSUED.FUSED:u cpu/event=0xc0,umask=1,cmask=2/
        cpu/event=0xc2,umask=1,cmask=31,inv/u cpu/event=0xc4,edge,cmask=1/ cpu/event=0x3c,edge/k
        cpu/event=0xc0,cmask=1/u cpu/event=0xa2,umask=1,any/ cpu/event=0xc2,umask=1,edge,inv,any,cmask=3/u
        UOPS_EXECUTED.CORE_STALL_CYCLES UOPS_EXECUTED.CORE_ACTIVE_CYCLES"""),
    "fixed counters": ([], """
        INST_RETIRED.ANY INST_RETIRED.ANY:u CPU_CLK_UNHALTED.THREAD:k CPU_CLK_UNHALTED.THREAD
        CPU_CLK_UNHALTED.REF CPU_CLK_UNHALTED.REF:u cycles instructions:u ref-cycles:k
        cpu/event=0x3c,any/ cpu/event=0xc0,any/u"""),
    "generic events": ([], """
        cache-references cache-misses:u branches branch-misses:u stalled-cycles-frontend
        stalled-cycles-backend:k L1-dcache-loads L1-dcache-load-misses:u L1-dcache-stores
        L1-dcache-store-misses L1-dcache-prefetches L1-dcache-prefetch-misses:u L1-icache-loads
        L1-icache-load-misses dTLB-loads dTLB-load-misses:u dTLB-stores dTLB-store-misses iTLB-loads
        iTLB-load-misses branch-loads branch-load-misses"""),
    "off-core responses": ([], """
        OFFCORE_RESPONSE.DEMAND_DATA_RD.LOCAL_DRAM OFFCORE_RESPONSE.ANY_DATA.ANY_LLC_MISS:u
        OFFCORE_RESPONSE.ANY_REQUEST.ANY_LOCATION OFFCORE_RESPONSE.PF_IFETCH.LLC_HIT_NO_OTHER_CORE:k
        cpu/event=0xb7,umask=1,offcore_rsp=0x4711/u cpu/event=0xb7,umask=1,offcore_rsp=0x0701,cmask=1/
        LLC-loads LLC-load-misses:u LLC-stores LLC-store-misses LLC-prefetches LLC-prefetch-misses
        node-loads node-load-misses:u node-stores node-store-misses node-prefetches
        node-prefetch-misses:k"""),
    "samples without PEBS": (["-c", "1000003"], """
        INST_RETIRED.ANY_P:u L1D.REPL cycles instructions:k cpu/event=0xc2,umask=1,cmask=4/"""),
    "precise samples": (["-c", "1000003"], """
        INST_RETIRED.ANY_P:p INST_RETIRED.ANY_P:upp INST_RETIRED.ANY:p BR_INST_RETIRED.NEAR_CALL:ppk
        BR_MISP_RETIRED.NEAR_CALL:up MEM_LOAD_RETIRED.L1D_HIT:pp MEM_LOAD_RETIRED.LLC_MISS:p
        MEM_STORE_RETIRED.DTLB_MISS:p MEM_UNCORE_RETIRED.REMOTE_DRAM:upp SSEX_UOPS_RETIRED.PACKED_SINGLE:p
        ITLB_MISS_RETIRED:kp FP_ASSIST.ALL:p UOPS_RETIRED.ANY:pp UOPS_RETIRED.STALL_CYCLES:p
        instructions:p branches:upp"""),
    "precise cycles": (["-c", "1000003"], """
        cycles:p cycles:pp cycles:upp cycles:kp cpu/event=0x3c/p cpu/event=0xc0,cmask=16,inv/pp
        CPU_CLK_UNHALTED.THREAD:up"""),
    "load latency": (["-c", "1000003"], """
        mem-loads:p MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD_64:up
        MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD_32768:pp cpu/event=0x0b,umask=0x10,ldlat=3/pp
        cpu/event=0x0b,umask=0x10,ldlat=0xffff/upp cpu/event=0x0b,umask=0x10,ldlat=500/k"""),
    "LBR, any": (["-c", "1000003", "--filter", "any"], """
        cycles cycles:u INST_RETIRED.ANY_P:k INST_RETIRED.ANY_P:pp BR_INST_RETIRED.ALL_BRANCHES:upp
        OFFCORE_RESPONSE.DEMAND_DATA_RD.LOCAL_DRAM:u mem-loads:upp"""),
    "LBR, calls": (["-c", "1000003", "--filter", "any_call,u"], "cycles BR_INST_RETIRED.NEAR_CALL:up"),
    "LBR, returns": (["-c", "1000003", "--filter", "any_ret,k"], "cycles:k r1c0"),
    "LBR, indirect calls": (["-c", "1000003", "--filter", "ind_call"], "cycles:u branches"),
    "LBR, indirect jumps": (["-c", "1000003", "--filter", "ind_jmp,u,k"], "branches:u"),
    "LBR, conditions": (["-c", "1000003", "--filter", "cond,u"], "BR_INST_RETIRED.ALL_BRANCHES:p"),
    "LBR, two kinds": (["-c", "1000003", "--filter", "cond,any_ret,u"], "cycles"),
}
# Westmere has other events for the first-level data cache, and a second off-core register.
NOT_WESTMERES = {"L1D_CACHE_LD.MESI", "L1D_CACHE_ST.M_STATE:u"}
NOT_OF_TWO_SOCKETS = {"MEM_UNCORE_RETIRED.LOCAL_DRAM:u", "MEM_UNCORE_RETIRED.REMOTE_DRAM:upp",
                      "OFFCORE_RESPONSE.DEMAND_DATA_RD.LOCAL_DRAM",
                      "OFFCORE_RESPONSE.DEMAND_DATA_RD.LOCAL_DRAM:u"}
WESTMERES_OWN = {
    "counter 0 only": ([], """
        OFFCORE_REQUESTS_OUTSTANDING.DEMAND.READ_DATA OFFCORE_REQUESTS_OUTSTANDING.ANY.READ_NOT_EMPTY:u
        SNOOPQ_REQUESTS_OUTSTANDING.DATA:k"""),
    "a register for each off-core event": ([], """
        OFFCORE_RESPONSE_1.DEMAND_DATA_RD.REMOTE_DRAM OFFCORE_RESPONSE_1.ANY_REQUEST.REMOTE_CACHE_HITM:u
        OFFCORE_RESPONSE.ANY_DATA.REMOTE_CACHE_HITM"""),
    "precise on Westmere": (["-c", "1000003"], """
        BR_MISP_RETIRED.ALL_BRANCHES:pp BR_MISP_RETIRED.CONDITIONAL:up"""),
    "a period below 32": (["-c", "5"], "INST_RETIRED.ANY_P:upp MEM_LOAD_RETIRED.LLC_MISS:p"),
}


SANDYBRIDGES_OWN = {
    "general counters": ([], """
        INST_RETIRED.ANY_P:u UOPS_ISSUED.ANY BR_INST_EXEC.ALL_CONDITIONAL:u MEM_UOPS_RETIRED.ALL_STORES
        MEM_LOAD_UOPS_RETIRED.L2_HIT:k L2_RQSTS.ALL_RFO DTLB_STORE_MISSES.WALK_DURATION:u
        UOPS_DISPATCHED_PORT.PORT_4_CORE UOPS_ISSUED.STALL_CYCLES IDQ.MS_SWITCHES ARITH.FPU_DIV:u"""),
    "one counter only": ([], """
        L1D_PEND_MISS.PENDING:u CYCLE_ACTIVITY.STALLS_L1D_PENDING INST_RETIRED.PREC_DIST:k
        MEM_TRANS_RETIRED.PRECISE_STORE:u CYCLE_ACTIVITY.CYCLES_NO_DISPATCH"""),
    "fixed counters": ([], """
        INST_RETIRED.ANY CPU_CLK_UNHALTED.THREAD:k CPU_CLK_UNHALTED.REF_TSC CPU_CLK_UNHALTED.THREAD_ANY
        cycles instructions:u ref-cycles"""),
    "generic events": ([], """
        cache-misses:u branch-misses stalled-cycles-frontend stalled-cycles-backend:k L1-dcache-loads
        L1-dcache-stores L1-dcache-store-misses L1-dcache-prefetch-misses L1-icache-load-misses
        dTLB-loads dTLB-store-misses:u iTLB-loads iTLB-load-misses branch-load-misses"""),
    "off-core responses": ([], """
        OFFCORE_RESPONSE.DEMAND_DATA_RD.LLC_HIT.HITM_OTHER_CORE OFFCORE_RESPONSE.ALL_READS.ANY_RESPONSE:u
        OFFCORE_RESPONSE.DEMAND_RFO.LLC_MISS.DRAM:k OFFCORE_RESPONSE.DEMAND_RFO.LLC_MISS.REMOTE_DRAM:k
        OFFCORE_RESPONSE_1.PF_LLC_CODE_RD.LLC_HIT.SNOOP_MISS OFFCORE_RESPONSE.OTHER.PORTIO_MMIO_UC
        OFFCORE_RESPONSE.STREAMING_STORES.ANY_RESPONSE
        cpu/event=0xb7,umask=1,offcore_rsp=0x3f807f8fff/ LLC-loads LLC-store-misses node-loads
        node-prefetch-misses:k"""),
    "precise samples": (["-c", "1000003"], """
        INST_RETIRED.PREC_DIST:pp UOPS_RETIRED.ALL:p BR_INST_RETIRED.NEAR_CALL:upp
        MEM_UOPS_RETIRED.SPLIT_LOADS:p MEM_LOAD_UOPS_RETIRED.L1_HIT:kp BR_MISP_RETIRED.TAKEN:pp
        cycles:pp cycles:up r0151:pp"""),
    "stores and load latency": (["-c", "1000003"], """
        mem-stores:upp MEM_TRANS_RETIRED.PRECISE_STORE:p mem-loads:pp
        MEM_TRANS_RETIRED.LOAD_LATENCY_GT_64:up cpu/event=0xcd,umask=0x1,ldlat=500/k"""),
    "LBR, calls": (["-c", "1000003", "--filter", "call,u"], "cycles BR_INST_RETIRED.NEAR_CALL:up"),
    "LBR, any calls and returns": (["-c", "1000003", "--filter", "any_call,any_ret"], "cycles:u branches"),
}
# The bits of remote suppliers, which Linux uses for generic events too, are missing from the
# single-socket model: EINVAL. Its LLC_MISS.DRAM would be local memory alone on two sockets.
LACKING = {"sandybridge": {"LLC-store-misses", "node-loads", "node-prefetch-misses:k",
                           "OFFCORE_RESPONSE.DEMAND_RFO.LLC_MISS.REMOTE_DRAM:k"},
           "sandybridge-ep": {"OFFCORE_RESPONSE.DEMAND_RFO.LLC_MISS.DRAM:k"}}

ARCHITECTURES_OWN = {
    "the architecture": ([], """
        INST_RETIRED.ANY:u CPU_CLK_UNHALTED.THREAD:k CPU_CLK_UNHALTED.REF_P LONGEST_LAT_CACHE.MISS:u
        LONGEST_LAT_CACHE.REFERENCE cpu/event=0x3c,edge,cmask=1/ cpu/event=0xc0,cmask=2,inv/u
        cycles instructions:u cache-misses bus-cycles:k"""),
    "samples": (["-c", "1000003"], "INST_RETIRED.ANY:u cycles:k LONGEST_LAT_CACHE.MISS"),
}
BRANCHES = ([], "BR_INST_RETIRED.ALL_BRANCHES BR_MISP_RETIRED.ALL_BRANCHES:u branches branch-misses:k")
FIXED = ([], "CPU_CLK_UNHALTED.REF_TSC ref-cycles:u")
CORE2S_OWN = {
    "one counter only": ([], """
        MEM_LOAD_RETIRED.L1D_MISS:u FP_COMP_OPS_EXE DIV:u CYCLES_DIV_BUSY:k DELAYED_BYPASS.FP ITLB_MISS_RETIRED"""),
    "any counter": ([], """
        UOPS_RETIRED.ANY:u INST_RETIRED.LOADS BR_INST_RETIRED.TAKEN:k L1D_CACHE_LD.MESI SIMD_INST_RETIRED.VECTOR:u
        RS_UOPS_DISPATCHED_NONE L2_RQSTS.ANY BUS_TRANS_MEM.SELF:k"""),
    "generic events": ([], """
        L1-dcache-loads L1-dcache-load-misses:u L1-dcache-stores L1-icache-load-misses LLC-loads LLC-store-misses:k
        dTLB-load-misses dTLB-store-misses:u iTLB-load-misses"""),
    "precise samples": (["-c", "1000003"], """
        INST_RETIRED.ANY:upp X87_OPS_RETIRED.ANY:p BR_MISP_RETIRED.ALL_BRANCHES:pp SIMD_INST_RETIRED.ANY:up
        MEM_LOAD_RETIRED.L2_MISS:pp cycles:pp instructions:upp"""),
    "LBR": (["-c", "1000003", "--filter", "any_call,u"], "cycles branches:u"),
}
# CPUs that are described by CPUID.0AH alone (version, general counters, what is missing), and Core
# 2.
ARCHITECTURES = {
    "perfmon_1": (FIRST, [0x186, 0x187], {**ARCHITECTURES_OWN, "branches": BRANCHES}),
    "perfmon_2": (SECOND, [0x186, 0x187, 0x38D, 0x38F], {**ARCHITECTURES_OWN, "fixed": FIXED}),
    "perfmon_3": (THIRD, [0x186, 0x187, 0x188, 0x189, 0x38D, 0x38F],
                  {**ARCHITECTURES_OWN, "branches": BRANCHES, "fixed": FIXED,
                   "any": ([], "cpu/event=0x3c,any/ cpu/event=0xc4,any,edge,cmask=1/u")}),
    "core2": (CORE2, [0x186, 0x187, 0x38D, 0x38F, 0x3F1, 0x1D9],
              {**ARCHITECTURES_OWN, **CORE2S_OWN, "branches": BRANCHES, "fixed": FIXED}),
}


def events_of(machine):
    """The options and the events to explain on a machine, by facility."""
    if machine in ARCHITECTURES:
        return {facility: (options, events.split())
                for facility, (options, events) in ARCHITECTURES[machine][2].items()}
    if machine in SANDYBRIDGES:
        return {facility: (options, [event for event in events.split() if event not in LACKING[machine]])
                for facility, (options, events) in SANDYBRIDGES_OWN.items()}
    if machine in KERNELS:
        return {facility: (options, events.split()) for facility, (options, events) in EVENTS.items()}
    without = NOT_WESTMERES | (NOT_OF_TWO_SOCKETS if machine == "westmere-dp" else
                               {"MEM_UNCORE_RETIRED.LOCAL_DRAM:u"} if machine == "westmere-ex" else set())
    chosen = {facility: (options, [event for event in events.split() if event not in without])
              for facility, (options, events) in {**EVENTS, **WESTMERES_OWN}.items()}
    return {facility: row for facility, row in chosen.items() if row[1]}


MACHINES = (*KERNELS, *WESTMERES, *SANDYBRIDGES, *ARCHITECTURES)


def in_one_worker(machine):
    """The mark for a machine's group of tests: conftest.py names groups by fixtures and by
    WESTMERES."""
    return pytest.mark.xdist_group("explain" if machine in KERNELS else
                                   machine if machine in WESTMERES else machine.replace("-", "_"))


# All tests of a machine share one set of observations, which one worker makes.
ALL = [pytest.param(machine, facility, id=f"{machine}-{facility}", marks=in_one_worker(machine))
       for machine in MACHINES for facility in events_of(machine)]

GENERAL, FIXED_CTR_CTRL, PEBS_ENABLE, DEBUGCTL = range(0x186, 0x18E), 0x38D, 0x3F1, 0x1D9
EN = 1 << 22  # of IA32_PERFEVTSELx
FREEZE_ON_SMI = 1 << 14  # of DEBUGCTL: the kernel sets it for good (attr_freeze_on_smi, intel/core.c)
REGISTERS = [*GENERAL, FIXED_CTR_CTRL, 0x38F, PEBS_ENABLE, 0x3F6, 0x1A6, 0x1A7, 0x1C8, DEBUGCTL]

# The bits after read_format in struct perf_event_attr of linux/perf_event.h.
FLAGS = {"disabled": 0, "inherit": 1, "pinned": 2, "exclude_user": 4, "exclude_kernel": 5,
         "exclude_hv": 6, "exclude_idle": 7, "freq": 10, "enable_on_exec": 12, "watermark": 14,
         "precise_ip": 15, "exclude_host": 19, "exclude_guest": 20}


def packed(attr):
    """The bytes of a perf_event_attr with these members."""
    def number(name):
        value = attr.get(name, 0)
        return int(value, 16) if isinstance(value, str) else value

    flags = sum(number(name) << bit for name, bit in FLAGS.items())
    known = {*FLAGS, "type", "config", "config1", "config2", "sample_period", "sample_freq",
             "sample_type", "read_format", "wakeup_events", "branch_sample_type"}
    assert attr.keys() <= known, "a member that this test does not know"
    size = 112  # PERF_ATTR_SIZE_VER5
    return struct.pack("<IIQQQQQIIQQQ32x", number("type"), size, number("config"),
                       number("sample_period") or number("sample_freq"), number("sample_type"),
                       number("read_format"), flags, number("wakeup_events"), 0, number("config1"),
                       number("config2"), number("branch_sample_type"))


KINDS = {**{kernel: {"kernel": kernel} for kernel in KERNELS}, **WESTMERES, **SANDYBRIDGES,
         **{name: row[0] for name, row in ARCHITECTURES.items()}, "nehalem-ex": {"model": "ex"}, "xeon-7400": XEONS["xeon_7400"]}


def registers_of(machine):
    if machine in ARCHITECTURES or machine == "xeon-7400":
        return ARCHITECTURES.get(machine, ARCHITECTURES["core2"])[1]
    return [msr for msr in REGISTERS if msr < 0x18A or msr > 0x18D or machine in SANDYBRIDGES]


@pytest.fixture(scope="module")
def observed(booted):
    """What explain said of each event of a machine, by facility, and the registers while it was enabled."""
    found = {}

    def get(machine):
        if machine not in found:
            with forks(booted) as machines:
                found[machine] = observe(machines(**KINDS[machine]), registers_of(machine), events_of(machine))
        return found[machine]
    return get


def observe(guest, registers, events):
    # One run for all events with the same options: on the emulator, starting the program takes
    # longest.
    runs = {}
    for facility, (options, some) in events.items():
        runs.setdefault(tuple(options), []).extend((facility, event) for event in some)
    said = guest.say("\n".join(shlex.join(["nhmtap", "explain", "--format", "json", *options, *(event for _, event in some)])
                               for options, some in runs.items()))
    names = [name for some in runs.values() for name in some]
    read = opened(guest, registers, dict(zip(names, events_among(said), strict=True)))
    return {facility: {event: read[facility, event] for event in some} for facility, (_, some) in events.items()}


def events_among(said):
    return [record for record in map(json.loads, said.splitlines()) if record["type"] == "event"]


def opened(guest, registers, records):
    """What explain said of each event, and the registers while it was enabled."""
    lines = "".join(packed(record["event"]["attr"]).hex() + "\n" for record in records.values())
    said = guest.say("opened", "0", *map(hex, registers), stdin=lines.encode(), paranoid=-1)
    found = {}
    for name, line in zip(records, said.splitlines(), strict=True):
        errno, *values = line.split()
        assert errno == "0", f"{name}: errno {errno}"
        read = dict(zip(registers, (int(value, 16) for value in values)))
        found[name] = (records[name], {**dict.fromkeys(REGISTERS, 0), **read})
    return found


def said_of(record, counter):
    """{address: (value, mask)} for this counter."""
    values = {}
    for register in record["registers"]:
        msr, value, mask = (int(register[name], 16) for name in ("msr", "value", "mask"))
        if register.get("counter") == "address":
            msr += counter
        elif register.get("counter") == "bits":
            value, mask = value << counter, mask << counter
        values[msr] = (value, mask)
    return values


def test_there_are_sixty_events_and_more():
    for machine in set(MACHINES) - set(ARCHITECTURES):
        assert sum(len(events) for _, events in events_of(machine).values()) >= 60


@pytest.mark.parametrize("machine, facility", ALL)
def test_the_kernel_programs_what_explain_said(machine, facility, observed):
    check(observed(machine)[facility])


def of_table(table, command, *arguments):
    """What nhmtap says of a CPU that it does not run on."""
    return subprocess.run([tool(), command, "--cpu", table, *arguments], capture_output=True, check=True, text=True).stdout


def names_of(table):
    """Every event of a table, and every one that Intel publishes for the CPU, without perf's
    generic events."""
    rows = map(json.loads, of_table(table, "list", "--json").splitlines())
    names = {row["name"] for row in rows if "config" in row and not row["section"].startswith("hardware")}
    return sorted(names | {row["name"] for row in perfmon(table)})


# For each machine whose CPU has its own events, the name of their table.
EVERY_TABLE = {"6.1": "nehalem-ep", "nehalem-ex": "nehalem-ex", **TABLES, **{name: name for name in SANDYBRIDGES},
               "core2": "core2", "xeon-7400": "xeon-7400"}


@pytest.mark.parametrize("machine", [
    pytest.param(machine, marks=(in_one_worker(machine), *([pytest.mark.thorough] if machine not in KERNELS else [])))
    for machine in EVERY_TABLE])
def test_every_name_of_a_table_programs_what_explain_said(machine, machines):
    table = EVERY_TABLE[machine]
    names = names_of(table)
    # Off-core responses that count nothing, because the CPU has no such bit, are explained only
    # with --force.
    said = events_among(of_table(table, "explain", "--format", "json", "--force", *names))
    check(opened(machines(**KINDS[machine]), registers_of(machine), dict(zip(names, said, strict=True))))


def check(events):
    """Checks that the registers have the explained values while an event is enabled, and nothing
    else counts."""
    for event, (record, read) in events.items():
        read = {**read, DEBUGCTL: read[DEBUGCTL] & ~FREEZE_ON_SMI}
        # If the driver resets no counters, one that counted before keeps its selection, without EN.
        used = [msr - GENERAL[0] for msr in GENERAL if read[msr] & EN]
        read |= {msr: 0 for msr in GENERAL if not read[msr] & EN}
        if "fixed" in record["counters"]:
            assert used == [], event
        else:
            assert len(used) == 1 and used[0] in record["counters"]["general"], event
        said = said_of(record, used[0] if used else None)
        assert {msr: read[msr] & mask for msr, (_, mask) in said.items()} \
            == {msr: value for msr, (value, _) in said.items()}, event
        # Nothing else counts: bits that the event does not determine are 0.
        for msr in (*GENERAL, FIXED_CTR_CTRL, PEBS_ENABLE, DEBUGCTL):
            assert read[msr] & ~said.get(msr, (0, 0))[1] == 0, event


@pytest.mark.parametrize("machine, facility", ALL)
def test_the_fields_of_a_register_add_up_to_its_value(machine, facility, observed):
    for event, (record, _) in observed(machine)[facility].items():
        for register in record["registers"]:
            total = 0
            for field in register["fields"]:
                total |= field["value"] << int(field["bits"].split(":")[-1])
            assert total == int(register["value"], 16), event
