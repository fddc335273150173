# SPDX-License-Identifier: GPL-2.0-only
"""The emulated Sandy Bridge and the stock kernel's driver for it: stores with their addresses,
locks and TLB misses, off-core responses of 38 bits, counters, registers that each thread of a core
has of its own."""
import pytest

import known

STORES = known.numbers("stores")
EVICT = known.numbers("evict")
KINDS = {"p": "plain", "t": "tlb", "f": "flushed", "z": "sizes", "s": "split"}
MEM_STORES = "cpu/event=0xcd,umask=0x2/upp"


def words(row):
    """Address, data_src and ip of a line of perf script, which prints the ip last."""
    return int(row[0], 16), int(row[1], 16), int(row[-1], 16)


def stores(bench, kind, period, tmp_path):
    rows = bench.samples(f"-c {period} -d -e {MEM_STORES}", f"stores {kind}", "ip,addr,data_src", tmp_path)
    return [words(row) for row in rows]


def source(text):
    """The fields of perf_mem_data_src that the kernel sets for a store."""
    op, level, tlb, lock = (text >> at & mask for at, mask in ((0, 31), (5, 16383), (26, 127), (24, 3)))
    assert op == 4
    # LVL: HIT 2, MISS 4, L1 8. TLB: HIT 2, MISS 4, L2 16. LOCK: LOCKED 2.
    return {0x0A: "hit", 0x0C: "miss"}[level], {0x12: False, 0x14: True}[tlb], bool(lock & 2)


@pytest.mark.parametrize("kind", KINDS)
def test_loads_and_stores_are_counted_exactly(sandybridge, kind):
    n = KINDS[kind]
    counts = sandybridge.counts(["r82d0:u", "r02cd:u", "r21d0:u", "r41d0:u", "r42d0:u"], f"stores {kind}")
    # A rep stosb is one instruction, whatever it writes.
    assert counts["r82d0:u"] == counts["r02cd:u"] == STORES[n + ".stores"]
    assert counts["r21d0:u"] == STORES.get(n + ".locked", 0)
    assert (counts["r41d0:u"], counts["r42d0:u"]) == ((1000, 1000) if n == "split" else (0, 0))


def test_branches_are_counted_by_their_kind_and_whether_they_are_taken(sandybridge):
    """The SDM calls all but BR_INST_RETIRED.ALL_BRANCHES and FAR_BRANCH near. The one far branch is the system call at the end."""
    n = known.numbers("kinds")["N"]
    wanted = {
        "r00c4": 9 * n + 1, "r01c4": 3 * n, "r02c4": 2 * n, "r08c4": 2 * n, "r10c4": n + 1, "r20c4": 8 * n - 1, "r40c4": 1,
        "rff88": 9 * n, "rc188": 3 * n, "r4188": n + 1, "r8188": 2 * n - 1, "rc288": n, "r8288": n, "rd088": n, "r9088": n,
        "rc888": 2 * n, "r8888": 2 * n, "rc488": n, "r8488": n, "ra088": n,
    }  # fmt: skip
    wanted = {name + ":u": count for name, count in wanted.items()}
    assert sandybridge.counts(list(wanted), "kinds") == wanted


@pytest.mark.parametrize("event, kinds", [
    ("r0110:u", "X87"), ("r1010:u", "PACKED_DOUBLE"), ("r2010:u", "SCALAR_SINGLE"), ("r4010:u", "PACKED_SINGLE"), ("r8010:u", "SCALAR_DOUBLE")])
def test_floating_point_operations_are_counted_by_their_kind(sandybridge, event, kinds):
    wanted, = {count for name, count in known.numbers("float").items() if name.endswith("." + kinds) and not name.startswith("INST_RETIRED")}
    assert sandybridge.count(event, "float") == wanted


def test_each_sampled_store_has_its_address_and_its_instruction(sandybridge, tmp_path):
    found = stores(sandybridge, "p", 1000, tmp_path)
    at = known.addresses("stores")
    # The first record is of the store after the thousandth, and each further one of the 1001st
    # store after it.
    places = [at["store_lines"] + 64 * ((1000 + 1001 * k) % 4096) for k in range(STORES["plain.stores"] // 1001)]
    assert len(places) - 1 <= len(found) <= len(places)
    assert [address for address, *_ in found] == places[: len(found)]
    locked = [(1000 + 1001 * k) // 4096 == 16 for k in range(len(found))]
    assert [ip == at["locked_store"] for *_, ip in found] == locked
    assert {ip for *_, ip in found} == {at["plain_store"], at["locked_store"]}
    assert [source(data)[2] for _, data, _ in found] == locked


def test_a_store_behind_a_flush_misses_the_first_level_cache(sandybridge, tmp_path):
    found = stores(sandybridge, "f", 97, tmp_path)
    assert len(found) >= 9
    assert {ip for *_, ip in found} == {known.addresses("stores")["flushed_store"]}
    assert {source(data) for _, data, _ in found} == {("miss", False, False)}


def test_stores_a_page_apart_miss_the_second_level_tlb(sandybridge, tmp_path):
    assert sandybridge.count("r12d0:u", "stores t") == STORES["tlb.missed"]
    found = stores(sandybridge, "t", 997, tmp_path)
    assert len(found) >= STORES["tlb.stores"] // 998 - 1
    assert {source(data)[1] for _, data, _ in found} == {True}
    # The stores of two consecutive records are 998 pages apart.
    addresses = [address for address, *_ in found]
    assert {(b - a) // 4096 % 4096 for a, b in zip(addresses, addresses[1:])} == {998}


def test_a_store_of_any_width_has_its_first_byte(sandybridge, tmp_path):
    at = known.addresses("stores")
    expected = {at["size_1"]: 0, at["size_2"]: 16, at["size_4"]: 32, at["size_8"]: 56, at["size_16"]: 64}
    found = stores(sandybridge, "z", 6, tmp_path)
    assert {ip for *_, ip in found} == {*expected, at["size_rep"]}
    for address, _, ip in found:
        offset = address - at["store_lines"]
        assert offset == expected[ip] if ip in expected else 128 <= offset < 132


def test_load_latency_tells_locks_and_tlb_misses(sandybridge, tmp_path):
    def loads(command):
        rows = sandybridge.samples("-c 20 -d -e cpu/event=0xcd,umask=0x1,ldlat=3/upp", command,
                                   "ip,addr,data_src", tmp_path)
        return {data >> 24 & 3 == 2 or "": (data >> 26 & 127) for _, data, _ in map(words, rows)}

    # TLB: HIT 2, MISS 4, L1 8, L2 16. In `stores` only the locked additions load.
    assert loads("stores p") == {True: 2 | 8 | 16}
    assert loads("stride") == {"": 4 | 16}


def test_the_codes_of_another_core_are_those_that_linux_reads(sandybridge, tmp_path):
    # SNOOP: HIT 4, HITM 16 at bit 19; LVL: HIT 2, L3 0x40 at bit 5.
    # Left: MISS 8, for a line that only the other core had, and has dropped.
    for state, snoop, count in (("clean", 4, "r02d2:u"), ("dirty", 16, "r04d2:u"), ("left", 8, "r01d2:u")):
        rows = sandybridge.samples("-c 20 -d -e cpu/event=0xcd,umask=0x1,ldlat=40/upp",
                                   f"handover 0 1 {state} read", "ip,addr,data_src", tmp_path)
        site = known.addresses("handover")["handover_load"]
        found = [(data >> 19 & 31, data >> 5 & 0x3FFF) for _, data, ip in map(words, rows) if ip == site]
        # CPU 0's own loads come from memory.
        taken = [row for row in found if row[1] != 0x82]
        assert len(taken) >= 20 and set(taken) == {(snoop, 0x42)}
        numbers = known.numbers("handover")
        # The other lines' pages may have been cleared by CPU 1, if the program began there.
        others = numbers["others"] if state == "left" else 0
        assert 0.98 * numbers["taken"] <= sandybridge.count(count, f"handover 0 1 {state} read") \
            <= 1.02 * numbers["taken"] + others


READS, RFO, ANY, LLC, LOCAL = 1, 2, 1 << 16, 0xF << 18, 1 << 22
NOT_NEEDED, MISS, SNOOPS = 1 << 32, 1 << 33, 0x7F << 31


@pytest.mark.parametrize("response, share", [
    (ANY, 1), (LOCAL | SNOOPS, 1), (LOCAL | MISS, 1), (LOCAL | NOT_NEEDED, 0), (LLC | SNOOPS, 0),
    (LOCAL, 0), (SNOOPS, 0),
])
@pytest.mark.parametrize("register", [0xB7, 0xBB])
def test_an_off_core_response_has_a_supplier_and_a_snoop_or_is_any(sandybridge, register, response, share):
    loads = known.numbers("chase")["memory.loads"]
    event = f"cpu/event={register:#x},umask=0x1,offcore_rsp={READS | response:#x}/u"
    count = sandybridge.count(event, "chase memory")
    assert share * loads <= count <= share * loads + 200


REGISTERS = [
    ("eighth counter's selection", 0x18D, 0x1FF7FFFF), ("first counter in its full width", 0x4C1, (1 << 48) - 1),
    ("OFFCORE_RSP_0", 0x1A6, 0x3F807F8FFF), ("OFFCORE_RSP_1", 0x1A7, 0x3F807F8FFF),
    ("IA32_PERF_GLOBAL_CTRL", 0x38F, 0x7000000FF), ("IA32_PEBS_ENABLE", 0x3F1, 0x8000000F0000000F),
]


@pytest.mark.parametrize("name, register, bits", REGISTERS, ids=[r[0] for r in REGISTERS])
def test_every_reserved_bit_faults(sandybridge, name, register, bits):
    found = sandybridge.msr(*(f"{register:#x}={1 << n:#x}" for n in range(64)), f"{register:#x}=0")
    assert {n for n, row in enumerate(found[:64]) if row[2] == "ok"} == {n for n in range(64) if bits >> n & 1}


def test_the_other_model_has_more_off_core_bits(sandybridge_ep):
    found = sandybridge_ep.msr(*(f"0x1a6={1 << n:#x}" for n in range(64)), "0x1a6=0")
    assert sum((row[2] == "ok") << n for n, row in enumerate(found[:64])) == 0x3FFFFF8FFF


def group_runs(bench, n):
    events = ",".join(f"r{umask:02x}c4:u" for umask in (1, 2, 4, 8, 0x10, 0x20, 0x40, 0, 3)[:n])
    said = bench.say(f"perf stat -x , -e '{{{events}}}' true 2>&1", paranoid=-1)
    return "not supported" not in said and "not counted" not in said


def test_a_thread_alone_on_its_core_has_eight_counters(sandybridge):
    assert group_runs(sandybridge, 8) and not group_runs(sandybridge, 9)


def test_each_of_two_threads_has_four(sandybridge_threads):
    assert group_runs(sandybridge_threads, 4) and not group_runs(sandybridge_threads, 5)


@pytest.mark.parametrize("register", [0x1A6, 0x1C8, 0x3F6])
def test_threads_share_no_such_register(sandybridge_threads, register):
    sandybridge_threads.msr(f"{register:#x}=0x55", cpu=0)
    values = [int(sandybridge_threads.msr(f"{register:#x}", cpu=cpu)[0][1], 16) for cpu in range(2)]
    assert values[0] == 0x55 and values[1] != 0x55


def test_with_two_threads_half_the_counters_are_left_beside_such_an_event(sandybridge_threads):
    """The kernel's workaround for BJ122, BV98 and HSD29: of the events 0xD0 to 0xD3 two run at
    once, three do not."""
    def running(events):
        said = sandybridge_threads.tally(events, "chase l2").stdout.splitlines()[-len(events):]
        return [tuple(map(int, line.split()))[1:] for line in said]

    assert all(on == enabled for enabled, on in running(["r81d0:u", "r82d0:u"]))
    assert not all(on == enabled for enabled, on in running(["r81d0:u", "r82d0:u", "r01d1:u"]))


@pytest.mark.parametrize("revision, works", [(0x27, False), (0x28, True)])
def test_the_driver_keeps_pebs_off_with_early_microcode(booted, revision, works):
    import nehalem
    with booted.boot(nehalem.Machine(model="sandybridge", microcode=revision, memory=512)) as bench:
        said = bench.run("cat /sys/devices/cpu/caps/max_precise; dmesg | grep -c 'PEBS disabled'").stdout.split()
    assert said == (["2", "0"] if works else ["0", "1"])


def test_precise_cycles_are_the_uops_that_retire(sandybridge, tmp_path):
    rows = sandybridge.samples("-c 10007 -e cycles:upp", "count", "ip", tmp_path)
    assert rows
    start = known.addresses("count")["_start"]
    assert any(start <= int(row[-1], 16) < start + 4096 for row in rows)


# ---------------------------------------------------------------------------------- Core 2


def test_core_2_counts_on_two_counters_of_40_bits(core2):
    expected = known.numbers("count")
    assert core2.counts(["r00c0:u", "r00c4:u"], "count") == {
        "r00c0:u": expected["INST_RETIRED.ANY_P"], "r00c4:u": expected["BR_INST_RETIRED.ALL_BRANCHES"]}
    core2.msr("0xc1=0xffffffff")
    assert int(core2.msr("0xc1=0xffffffff", "0xc1")[1][1], 16) == (1 << 40) - 1


def test_core_2_records_on_the_first_counter_alone(core2, tmp_path):
    assert core2.tally(["r00c0:up"], "true").status == 0
    assert core2.tally(["r00c4:up"], "true").status == 1
    rows = core2.samples("-c 1009 -e r00c0:up", "count", "ip", tmp_path)
    n = known.numbers("count")["INST_RETIRED.ANY_P"]
    assert n // 1010 - 1 <= len(rows) <= n // 1009
    found = core2.msr(*(f"0x3f1={1 << n:#x}" for n in range(64)), "0x3f1=0")
    assert [row[2] for row in found[:64]].count("ok") == 1 and found[0][2] == "ok"


def test_core_2_has_the_last_four_branches(core2, tmp_path):
    rows = core2.samples("-b -c 1009 -e r00c0:u", "calls 1", "brstack", tmp_path)
    assert rows and max(len(row) for row in rows) == 4


def test_requests_to_the_second_level_of_core_2_are_the_misses_of_the_first(core2):
    """Its second level is its last (SDM, "L2_RQSTS"), so what it serves is a reference too."""
    found = core2.counts(["r4f2e:u", "r412e:u"], "evict m") | core2.counts(["r01cb:u"], "evict m")
    few = EVICT["few.lines"] * EVICT["few.circles"]
    assert few - 300 < found["r01cb:u"] <= found["r4f2e:u"] < few + EVICT["few.lines"] + 300
    assert found["r412e:u"] < 300


def test_bus_cycles_of_core_2_are_not_taken_for_core_cycles(core2):
    core2.guest.notes.clear()
    assert core2.counts(["r013c:u"], "true") == {"r013c:u": 0}
    note, = core2.guest.notes
    assert note.startswith("event 0x3c umask 0x01 ") and note.endswith("is not modelled: it counts 0")


def test_slots_to_which_nothing_is_delivered_are_those_of_fetches(sandybridge):
    """A fetch from the second level takes 10 cycles, each of four slots. The first turn's lines are in memory."""
    every, none = "cpu/event=0x9c,umask=1/u", "cpu/event=0x9c,umask=1,cmask=4/u"
    found = sandybridge.counts([every, none], "bound code")
    slots = 40 * known.numbers("bound")["code.fetches"]
    assert slots <= found[every] == 4 * found[none] <= 1.03 * slots


def test_the_way_back_from_a_misprediction_takes_its_cycles(sandybridge):
    cycles, begins, missed = "cpu/event=0x0d,umask=3,cmask=1/u", "cpu/event=0x0d,umask=3,cmask=1,edge=1/u", "rff89:u"
    found = sandybridge.counts([cycles, begins, missed], "bound branches")
    assert found[cycles] == 17 * found[begins] and found[begins] == found[missed] > 50000
