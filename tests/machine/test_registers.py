# SPDX-License-Identifier: GPL-2.0-only
"""Every register of the guide's Table 26, its reserved bits, and what hardware
does between two accesses of software."""
import pytest

# Register, its bits that can be written (the guide's Tables 4 to 22), and what is
# special about it: ro (writing faults), ignored (writing does nothing), wo (reads
# as zero), counter (48 bits, written with 32 and their sign).
GENERAL = [(f"IA32_PMC{n}", 0xC1 + n, None, "counter") for n in range(4)]
SELECTS = [(f"PerfEvtSel{n}", 0x186 + n, 0x1FF7FFFF, "") for n in range(4)]
FIXED = [(f"PERF_FIXED_CTR{n}", 0x309 + n, (1 << 48) - 1, "") for n in range(3)]
REGISTERS = [
    *GENERAL,
    *SELECTS,
    *FIXED,
    ("OFFCORE_RSP_0", 0x1A6, 0xFFFF, ""),
    ("OFFCORE_RSP_1", 0x1A7, 0xFFFF, ""),
    ("LBR_SELECT", 0x1C8, 0x1FF, ""),
    ("MSR_LASTBRANCH_TOS", 0x1C9, None, "ignored"),
    ("IA32_DEBUGCTL", 0x1D9, 0x7FC3, ""),
    ("IA32_PERF_CAPABILITIES", 0x345, None, "ro"),
    ("IA32_FIXED_CTR_CTRL", 0x38D, 0xFFF, ""),
    ("IA32_PERF_GLOBAL_STATUS", 0x38E, None, "ro"),
    ("IA32_PERF_GLOBAL_CTRL", 0x38F, 0x70000000F, ""),
    ("IA32_PERF_GLOBAL_OVF_CTRL", 0x390, 0xE00000070000000F, "wo"),
    ("IA32_PEBS_ENABLE", 0x3F1, 0xF0000000F, ""),
    ("PEBS_LD_LAT_THRESHOLD", 0x3F6, 0xFFFF, ""),
]
WRITABLE = [r for r in REGISTERS if r[3] in ("", "wo")]


def by_name(registers):
    return {"argvalues": registers, "ids": [r[0] for r in registers]}


@pytest.mark.parametrize("name, register, bits, kind", **by_name(WRITABLE))
def test_every_reserved_bit_faults_and_every_other_is_taken(guest, name, register, bits, kind):
    # Each bit is tried with all the others clear, and the next write clears it, in case it starts
    # something.
    steps = [f"{register:#x}={1 << n:#x}" for n in range(64)]
    found = guest.msr(*steps, f"{register:#x}=0")
    taken = {n for n, row in enumerate(found[:64]) if row[2] == "ok"}
    assert taken == {n for n in range(64) if bits >> n & 1}
    assert found[64][2] == "ok"


PLAIN = [r for r in WRITABLE if r[3] == "" and r[0] != "IA32_DEBUGCTL"]


@pytest.mark.parametrize("name, register, bits, kind", **by_name(PLAIN))
def test_what_is_written_is_read_back(guest, name, register, bits, kind):
    # Without EN, so that no counter counts meanwhile.
    value = bits & ~(1 << 22) if "EvtSel" in name else bits
    rows = guest.msr(f"{register:#x}={value:#x}", f"{register:#x}", f"{register:#x}=0")
    assert int(rows[1][1], 16) == value


@pytest.mark.parametrize(
    "name, register, bits, kind", **by_name([r for r in REGISTERS if r[3] == "ro"])
)
def test_read_only_registers_fault_on_writing(guest, name, register, bits, kind):
    read, written = guest.msr(f"{register:#x}", f"{register:#x}=0")
    assert len(read) == 2
    assert written[2] == "fault"


def test_capabilities_are_those_of_table_3(guest):
    # LBR_FMT 3 (Linux's name: EIP with flags), PEBS_TRAP, PEBS_ARCH_REG, PEBS_REC_FMT 1, SMM_FRZ.
    [row] = guest.msr("0x345")
    assert int(row[1], 16) == 3 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 12


def test_misc_enable_offers_performance_monitoring_bts_and_pebs(guest):
    [row] = guest.msr("0x1a0")
    value = int(row[1], 16)
    assert (value >> 7 & 1, value >> 11 & 1, value >> 12 & 1) == (1, 0, 0)
    assert value == 0x00850089  # the value in InstLatx64's dumps of eight parts


def test_misc_enable_keeps_its_read_only_bits(guest):
    rows = guest.msr("0x1a0", "0x1a0=0", "0x1a0")
    assert int(rows[2][1], 16) == 1 << 7
    guest.msr("0x1a0=" + rows[0][1])


@pytest.mark.parametrize("name, register, bits, kind", **by_name(GENERAL))
def test_counters_take_32_bits_and_their_sign(guest, name, register, bits, kind):
    rows = guest.msr(
        f"{register:#x}=0x80000001",
        f"{register:#x}",
        f"{register:#x}=0x7fff00000001",
        f"{register:#x}",
        f"{register:#x}=0",
    )
    assert int(rows[1][1], 16) == 0xFFFF80000001
    assert int(rows[3][1], 16) == 1


def test_top_of_stack_cannot_be_written(guest):
    before, written, after = guest.msr("0x1c9", "0x1c9=5", "0x1c9")
    assert written[2] == "ok"
    assert before == after


@pytest.mark.parametrize(
    "value, taken", [(0x7FFFFFFFF000, True), (0x800000000000, False), (0xFFFF800000000000, True)]
)
def test_ds_area_takes_canonical_addresses(guest, value, taken):
    old, new, _ = guest.msr("0x600", f"0x600={value:#x}", "0x600")
    assert (new[2] == "ok") == taken
    guest.msr("0x600=" + old[1])


def test_all_sixteen_pairs_of_the_branch_stack_are_there(guest):
    registers = [*range(0x680, 0x690), *range(0x6C0, 0x6D0)]
    steps = [s for r in registers for s in (f"{r:#x}={r:#x}", f"{r:#x}", f"{r:#x}=0")]
    rows = guest.msr(*steps)
    assert [int(row[1], 16) for row in rows[1::3]] == registers


def test_a_counter_counts_only_with_all_of_its_switches_on(guest):
    def counted(select, enable):
        # All off first: Linux leaves IA32_PERF_GLOBAL_CTRL on after it has used a counter.
        on = ("0x38f=0", f"0x187={select:#x}", "0xc2=0", f"0x38f={enable:#x}")
        rows = guest.msr(*on, "!count", "0x38f=0", "0xc2", "0x187=0")
        return int(rows[5][1], 16)

    en, usr, os_ = 1 << 22, 1 << 16, 1 << 17
    assert counted(en | usr | 0xC0, 0) == 0
    assert counted(usr | 0xC0, 2) == 0
    assert counted(en | 0xC0, 2) == 0
    assert counted(en | usr | 0xC0, 1) == 0
    user, kernel = counted(en | usr | 0xC0, 2), counted(en | os_ | 0xC0, 2)
    assert user > 330006 and kernel > 1000
    assert counted(en | usr | os_ | 0xC0, 2) > user


def test_the_first_level_cache_is_counted_on_two_counters_only(guest):
    said = guest.say("probe counters")
    found = [line.split(": ")[1] for line in said.splitlines() if line.startswith("counter ")]
    assert found == ["counts", "counts", "nothing", "nothing"]


def test_offcore_rsp_1_counts_by_its_own_register(guest):
    said = guest.say("probe msr")
    value = next(line for line in said.splitlines() if "PMC1 after 1000 flushed loads" in line)
    # Between the two writes of GLOBAL_CTRL the program also prints, which loads about a page of
    # libc's data.
    assert 1000 <= int(value.split()[2], 16) <= 1000 + 64


def frozen(bench, debugctl):
    bench.msr()
    said = bench.say(f"freeze {debugctl:#x}")
    return {name: int(value, 16) for name, value in (line.split() for line in said.splitlines())}


LBR, FRZ_LBRS, FRZ_PERFMON = 1, 1 << 11, 1 << 12


def test_counters_freeze_on_an_interrupt_when_told_to(guest):
    found = frozen(guest, FRZ_PERFMON)
    assert found["GLOBAL_CTRL"] == 0
    assert found["PMC1"] == 0  # as the overflow left it
    assert found["GLOBAL_STATUS"] == 2


def test_the_lbr_freezes_on_an_interrupt_when_told_to(guest):
    found = frozen(guest, FRZ_LBRS | LBR)
    assert found["DEBUGCTL"] == FRZ_LBRS
    assert found["GLOBAL_CTRL"] == 2


def test_nothing_freezes_unless_told_to(guest):
    found = frozen(guest, LBR)
    assert (found["DEBUGCTL"], found["GLOBAL_CTRL"]) == (LBR, 2)
    # 100000 instructions of the loop, less the 1000 to the overflow, and printing.
    assert 99000 <= found["PMC1"] <= 110000


def test_overflow_status_is_cleared_by_its_own_register(guest):
    assert frozen(guest, 0)["cleared"] == 0


def test_cpuid_is_that_of_table_25(guest):
    said = " ".join(guest.say("dmesg | grep -A9 '... version:'").split())
    for fact in ("version: 3", "bit width: 48", "generic registers: 4", "fixed-purpose events: 3"):
        assert fact in said


def test_linux_takes_it_for_a_nehalem(any_kernel):
    said = any_kernel.say("dmesg")
    assert "PEBS fmt1+, Nehalem events, 16-deep LBR, Intel PMU driver" in said
