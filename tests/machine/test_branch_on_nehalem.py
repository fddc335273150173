# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap branch on programs whose branches are known from their source. An edge of a record is
converted to addresses by the program's ELF header, and compared with the program's symbols, with
objdump and with perf record -b."""
import collections
import functools
import glob
import json
import os
import re
import subprocess

import pytest

import known
import weights
from records import Result, check_stream, parse

HERE = os.path.dirname(os.path.abspath(__file__))
Edge = collections.namedtuple("Edge", "source target")


def branch(bench, options, command, **settings):
    """A run of nhmtap branch in the guest; its records are checked."""
    done = bench.run(f"nhmtap branch --format json {options} -- {command}", paranoid=-1, **settings)
    assert done.status == 0, str(done)
    return Result(done.status, done.stdout, done.stderr)


@functools.cache
def code_segment(program):
    """File offset and address of a program's code, by readelf."""
    said = subprocess.run(["readelf", "-lW", known.path(program)], capture_output=True, text=True,
                          check=True).stdout
    offset, address = re.search(r"LOAD +(0x\w+) (0x\w+) .* R E ", said).groups()
    return int(offset, 16), int(address, 16)


def address(program, place):
    """The address of a place in the program itself, None elsewhere."""
    if place.get("module") != f"/opt/{program}":
        return None
    offset, start = code_segment(program)
    return int(place["offset"], 16) - offset + start


def counts(result, program, member="count", address=address):
    """{edge or range: count} of those within the program."""
    found = collections.Counter()
    for entry in (e for record in result.of("branch") for e in record["entries"]):
        edge = Edge(address(program, entry["from"]), address(program, entry["to"]))
        if None not in edge:
            found[edge] += entry[member]
    return found


def branches(result):
    return result.of("branch")[0]["branches"]


def depths(result):
    return result.of("branch")[0]["stacks"]["by_depth"]


def missing(result):
    """How many branches the stacks lack to have sixteen each: the kernel clears the LBR when
    another process has run, and drops entries that the hardware's filter let through."""
    return 16 * sum(depths(result)) - branches(result)["delivered"]


def elsewhere(result, found):
    """How many entries of the stacks are not the program's own branches: missing ones, and returns
    from an interrupt. Such a return is a branch to user level, and replaces the oldest entry."""
    return 16 * sum(depths(result)) - sum(found.values())


def edges(program, *names):
    at = known.addresses(program)
    return {Edge(at[source], at[target]) for source, target in names}


def chi_square(observed, expected):
    return sum((o - e) ** 2 / e for o, e in zip(observed, expected))


# The chi-square distribution with one degree of freedom exceeds this in one of a thousand cases.
ONE_IN_A_THOUSAND = 10.83

CALLS = [("rel_call", "leaf"), ("ind_call", "other")]
RETURNS = [("leaf_ret", "ind_call"), ("other_ret", "ind_jmp")]
CONDITIONAL = [("jcc_taken", "after_jcc"), ("loop_jcc", "turn")]
INDIRECT_JUMP = [("ind_jmp", "after_ind_jmp")]
ALL = CALLS + RETURNS + CONDITIONAL + INDIRECT_JUMP + [("rel_jmp", "after_rel_jmp")]

KINDS = [("any", ALL), ("any_call", CALLS), ("any_ret", RETURNS), ("cond", CONDITIONAL),
         ("ind_call", CALLS[1:]), ("ind_jmp", INDIRECT_JUMP),
         ("cond,ind_jmp", CONDITIONAL + INDIRECT_JUMP)]


@pytest.mark.parametrize("kinds, expected", KINDS)
def test_a_filter_lets_its_kinds_of_branches_through_and_no_others(any_kernel, kinds, expected):
    found = counts(branch(any_kernel, f"-e branches:u -c 1009 --filter {kinds}", "kinds"), "kinds")
    assert set(found) == edges("kinds", *expected)


def test_a_sample_comes_with_sixteen_branches(any_kernel):
    result = branch(any_kernel, "-e branches:u -c 1009", "kinds")
    samples = known.numbers("kinds")["BRANCHES"] // 1009
    assert sum(depths(result)) == samples
    assert depths(result)[16] >= 0.97 * samples
    assert branches(result)["delivered"] == sum(d * n for d, n in enumerate(depths(result)))


def test_stacks_that_the_filter_left_empty_are_counted_as_samples(any_kernel):
    # count.S has no indirect jump.
    result = branch(any_kernel, "-e branches:u -c 1009 --filter ind_jmp", "count")
    samples = result.one("end")["samples"]
    assert samples["aggregated"] == depths(result)[0] > 100
    assert sum(depths(result)) == depths(result)[0]
    assert branches(result)["delivered"] == 0 and result.one("branch")["entries"] == []


# A turn takes eight branches and a sample has sixteen, so it has each edge twice.
def test_edges_that_are_taken_equally_often_are_counted_equally_often(guest):
    result = branch(guest, "-e branches:u -c 1009", "kinds")
    found = counts(result, "kinds")
    assert len(found) == 8
    assert all(abs(n - 2 * sum(depths(result))) <= elsewhere(result, found) for n in found.values())
    assert elsewhere(result, found) <= 0.05 * sum(found.values())


def test_an_indirect_calls_targets_come_in_their_shares(guest):
    found = counts(branch(guest, "-e branches:u -c 997 --filter ind_call", "graph"), "graph")
    at = known.addresses("graph")
    observed = [found[Edge(at["main_x"], at[target])] for target in ("c", "d")]
    assert set(found) == edges("graph", ("main_x", "c"), ("main_x", "d"))
    share_of_d = sum(d for d, _ in known.sequence(20000)) / 20000
    expected = [(1 - share_of_d) * sum(observed), share_of_d * sum(observed)]
    assert sum(observed) > 2000
    assert chi_square(observed, expected) < ONE_IN_A_THOUSAND


def coins_in_a_stack():
    """How many of the 16 newest conditional branches are the coin's jumps, on average over all
    branches: a turn has eight, of which the coin's is the seventh and the loop's the last."""
    stack, coins, moments = collections.deque(maxlen=16), 0, 0
    for _, jump in known.sequence(20000):
        coins += 6 * sum(stack)
        stack.extend([1] if jump else [])
        coins += sum(stack)
        stack.append(0)
        coins += sum(stack)
        moments += 8
    return coins / moments


def test_a_coin_jump_is_taken_in_its_share_of_the_branches(guest):
    result = branch(guest, "-e branches:u -c 997 --filter cond", "graph")
    found, at = counts(result, "graph"), known.addresses("graph")
    coin = found.pop(Edge(at["coin"], at["coin_to"]))
    (loop,) = found.values()
    share = coins_in_a_stack() / 16
    assert coin + loop == branches(result)["delivered"]
    expected = [share * (coin + loop), (1 - share) * (coin + loop)]
    assert chi_square([coin, loop], expected) < ONE_IN_A_THOUSAND


def test_mispredictions_are_where_the_target_changes(guest):
    result = branch(guest, "-e branches:u -c 997 --filter ind_call", "graph")
    taken = sum(counts(result, "graph").values())
    missed = sum(counts(result, "graph", "mispredicted").values())
    targets = [d for d, _ in known.sequence(20000)]
    share = sum(a != b for a, b in zip(targets, targets[1:])) / 19999
    assert chi_square([missed, taken - missed], [share * taken, (1 - share) * taken]) < ONE_IN_A_THOUSAND
    assert branches(result)["mispredicted"] == missed
    always_the_same = branch(guest, "-e branches:u -c 1009 --filter ind_call", "kinds")
    assert branches(always_the_same)["mispredicted"] == 0


def instructions(program):
    """A program's instructions by objdump, in order: {address: (mnemonic, target or None)}."""
    said = subprocess.run(["objdump", "-d", "--no-show-raw-insn", known.path(program)],
                          capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^ +(\w+):\t(\w+)(?: +(\w+) <)?", said, re.M)
    return {int(at, 16): (name, int(to, 16) if to else None) for at, name, to in rows}


@pytest.mark.parametrize("program", ["kinds", "graph", "count"])
def test_every_edge_is_a_branch_of_the_disassembly(guest, program):
    code = instructions(program)
    addresses = list(code)
    behind_calls = {b for a, b in zip(addresses, addresses[1:]) if code[a][0] == "call"}
    found = counts(branch(guest, "-e branches:u -c 211", program), program)
    assert found
    for source, target in found:
        name, to = code[source]
        assert name.startswith(("j", "call", "ret")), hex(source)
        if name == "ret":
            assert target in behind_calls, hex(target)
        elif to:
            assert target == to, hex(source)
        else:
            assert target in code, hex(target)


@pytest.mark.parametrize("program", ["kinds", "graph", "count"])
def test_ranges_sum_up_to_the_instructions_that_were_executed(any_kernel, program):
    addresses = list(instructions(program))
    result = branch(any_kernel, "-e branches:u -c 211 --by edge,range", program)
    ranges = collections.Counter()
    for entry in (e for r in result.of("branch") for e in r["entries"] if e["kind"] == "range"):
        ends = Edge(address(program, entry["from"]), address(program, entry["to"]))
        if None not in ends:
            ranges[ends] += entry["count"]
    executed = sum(n * (addresses.index(b) - addresses.index(a) + 1) for (a, b), n in ranges.items())
    mean = executed / sum(ranges.values())
    # Compared with the CPU's own counts: each range ends with a taken branch.
    counted = any_kernel.counts(["INST_RETIRED.ANY_P", "BR_INST_EXEC.TAKEN"], program)
    assert mean * counted["BR_INST_EXEC.TAKEN"] == pytest.approx(
        counted["INST_RETIRED.ANY_P"], rel=0.02)
    if program == "kinds":
        assert mean == pytest.approx(13 / 8, rel=0.02)


def test_no_range_goes_beyond_a_branch_that_is_always_taken(guest):
    code = instructions("kinds")
    result = branch(guest, "-e branches:u -c 211 --by range", "kinds")
    for start, end in counts(result, "kinds"):
        inside = [name for at, (name, _) in code.items() if start <= at < end]
        assert not {"call", "ret", "jmp"} & set(inside)


def by_names(result, member="count"):
    """{(from, to): count} of entries by name; to is None if an entry has none."""
    return {tuple(entry.get(end, {}).get("symbol") for end in ("from", "to")): entry[member]
            for record in result.of("branch") for entry in record["entries"]}


def test_calls_add_up_by_caller_and_callee(guest):
    result = branch(guest, "-e branches:u -c 997 --by callpair", "graph")
    found = by_names(result)
    assert set(found) == {("main_a", "a"), ("a_b", "b"), ("main_x", "c"), ("main_x", "d")}
    assert sum(found.values()) == branches(result)["delivered"] > 1000
    assert result.one("end")["names"]["named"] == 2 * branches(result)["delivered"]
    # A turn has three calls, so each is five or six of sixteen calls in a row.
    turns = found["main_x", "c"] + found["main_x", "d"]
    assert abs(turns - found["main_a", "a"]) <= sum(depths(result))
    assert abs(turns - found["a_b", "b"]) <= sum(depths(result))


# Labels are symbols too: the return of a is in a_b, and the jump of _start's loop in coin_to.
def test_branches_add_up_by_function_and_the_most_mispredicted_come_first(guest):
    result = branch(guest, "-e branches:u -c 997 --by function --sort mispredicted", "graph")
    found = by_names(result)
    own = {e["from"].get("symbol") for e in result.entries("branch") if e["from"].get("module") == "/opt/graph"}
    assert own == {"main_a", "a_b", "b", "main_x", "c", "d", "coin", "coin_to"}
    assert all(to is None for _, to in found)
    assert sum(found.values()) == branches(result)["delivered"]
    missed = list(by_names(result, "mispredicted").values())
    assert missed == sorted(missed, reverse=True) and sum(missed) == branches(result)["mispredicted"]
    assert {name for name, _ in list(found)[:2]} == {"main_x", "coin"}


@pytest.mark.parametrize("kinds", ["any_call", "any_ret", "cond", "ind_call"])
def test_edges_are_those_of_perf_record(any_kernel, kinds, tmp_path):
    result = branch(any_kernel, f"-e branches:u -c 997 --filter {kinds},u", "graph")
    rows = any_kernel.samples(f"-c 997 -e branches:u -j {kinds},u", "graph", "brstack", tmp_path)
    theirs = collections.Counter()
    for source, target in (entry.split("/")[:2] for row in rows for entry in row):
        theirs[Edge(int(source, 16), int(target, 16))] += 1
    own = set(instructions("graph"))
    theirs = collections.Counter({e: n for e, n in theirs.items() if e.source in own and e.target in own})
    ours = counts(result, "graph")
    assert sum(depths(result)) == len(rows)
    assert set(ours) == set(theirs)
    # Both runs are alike, and the same samples have the same stacks, with two exceptions: entries
    # that are not the program's, and samples soon after a switch to the program, whose stacks are
    # not full. The kernel may take these up to 31 branches late, because it starts no counter with
    # fewer than 32 events left; then all branches of a stack may differ.
    not_own = elsewhere(result, ours) + 16 * len(rows) - sum(theirs.values())
    short = sum(depth * n for depth, n in enumerate(depths(result)[:16])) + sum(len(r) for r in rows if len(r) < 16)
    assert sum(abs(n - theirs[edge]) for edge, n in ours.items()) <= not_own + 2 * short
    assert not_own <= 0.05 * sum(ours.values())


def test_of_the_kernels_side_come_the_kernels_branches(guest):
    result = branch(guest, "-e branches:k -c 5003 --by edge,pid", "dd if=/dev/zero of=/dev/null bs=1 count=3000")
    entries = [e for r in result.of("branch") for e in r["entries"]]
    assert sum(depths(result)) > 50
    assert {e["to"].get("module") for e in entries} == {"[kernel]"}


def test_where_an_interrupt_comes_between_two_branches_there_is_no_range(guest):
    # The kernel is left and entered again while its branches are recorded. records.py checks the
    # sum.
    result = branch(guest, "-e branches:k -c 5003 --by edge,range",
                    "dd if=/dev/zero of=/dev/null bs=1 count=1000")
    assert branches(result)["broken"] > 0


def test_more_branches_than_a_table_has_slots_for_are_counted_one_and_all(guest):
    # 8192 slots, which are emptied while the program runs. An interval keeps at most 32768 keys; of more,
    # the smaller ones are summed up.
    result = branch(guest, "-e branches:u -c 61 --top 10", "maze")
    assert known.numbers("maze")["EDGES"] > 4 * 8192
    assert 10 + result.one("branch")["rest"]["entries"] > 4 * 8192
    assert result.one("warning", cause="keys_summed_up")["keys"] > 8192
    # The slots of an address are random: all of its sixteen may be taken before the table is
    # emptied. Naming and summing up so many keys takes this slow machine longer than a table lasts.
    told = branches(result)
    assert told["table_full"] < told["delivered"] / 2
    assert not any(result.one("end")["samples"]["lost"].values())
    assert abs(sum(depths(result)) - known.numbers("maze")["TAKEN"] // 61) <= 1


ADDING_UP = [form for form in weights.OF_FORMATS if form not in weights.WITH_KINDS]


def test_ranges_are_no_part_of_what_branches_add_up_to(guest, tmp_path):
    """Each branch that a sample came with is an edge, the first twenty of which are listed. Without that limit, ranges alone add
    up to nearly as much."""
    outputs = " ".join(f"-o {form}=out.{form}" for form in ("json", "flat", "table", *ADDING_UP))
    guest.say(f"nhmtap branch --by range,symbol,comm -g -c 1009 --filter any,u --top 20 {outputs} -- graph", paranoid=-1)
    with guest.guest.fetch(*(f"out.{form}" for form in ("json", "flat", "table", *ADDING_UP))) as tar:
        tar.extractall(tmp_path)
    found = parse((tmp_path / "tmp/out.json").read_text())
    check_stream(found)
    parts = [r for r in found if r["type"] == "branch"]
    whole, rest, of_ranges = parts[0]["branches"]["period"], parts[0]["rest"], parts[0]["rest_of_ranges"]
    listed = [e for part in parts for e in part["entries"]]
    assert len(listed) == 20 and {e["kind"] for e in listed} == {"edge", "range"} and rest["kind"] == "edge"
    assert sum(e["period"] for e in listed if e["kind"] == "edge") + rest["period"] == whole
    assert sum(e["period"] for e in listed if e["kind"] == "range") + of_ranges["period"] > whole / 2
    sums = {form: sum(n for _, n in weights.pairs(form, f"{tmp_path}/tmp/out.{form}")) for form in ADDING_UP}
    assert sums == dict.fromkeys(ADDING_UP, whole)
    rows = [json.loads(line) for line in (tmp_path / "tmp/out.flat").read_text().splitlines()]
    sums = {edges: sum(r["value"] for r in rows if "kind" in r and (r["kind"] == "edge") == edges) for edges in (True, False)}
    assert sums == {True: whole, False: sum(e["period"] for e in listed if e["kind"] == "range") + of_ranges["period"]}
    table = (tmp_path / "tmp/out.table").read_text()
    assert re.search(rf" {100 * rest['period'] / whole:.1f}%  in [\d,]+ more", table)
    assert re.search(rf" {100 * of_ranges['period'] / whole:.1f}%  in [\d,]+ ranges more", table)


def test_branches_that_find_no_slot_in_a_full_table_are_counted(guest):
    # nhmtap, the shell's parent, is stopped and does not empty the table. The samples' own entry
    # takes one of the 8192 slots. records.py checks the sum.
    result = branch(guest, "-e branches:u -c 61 --top 10", "sh -c 'kill -STOP $PPID; maze; kill -CONT $PPID'")
    told, rest = branches(result), result.one("branch")["rest"]
    assert 2 * 8192 > 10 + rest["entries"] > 8000
    assert told["table_full"] > told["delivered"] / 2
    assert result.one("warning", of="branches")["lost"] == told["table_full"]
    # The entry of a sample itself is that of its stack's depth. Full stacks find theirs in the
    # table; the few samples soon after a switch to the program have other depths, and may find no
    # free slot.
    lost = result.one("end")["samples"]["lost"]
    assert sum(lost.values()) == lost["table_full"] <= 8
    assert sum(depths(result)) + lost["table_full"] >= known.numbers("maze")["TAKEN"] // 61


def test_precise_samples_come_with_branches_too(guest):
    result = branch(guest, "-e BR_INST_RETIRED.ALL_BRANCHES:upp -c 1009 --filter any,u", "kinds")
    assert set(counts(result, "kinds")) == edges("kinds", *ALL)


def of_two_processes(bench, by):
    """The branches of two running processes of one program."""
    done = bench.run("yes > /dev/null & yes > /dev/null & sleep 0.1; nhmtap branch --format json "
                     f"--by {by} -e branches:u -c 10007 -p $(pidof yes | tr ' ' ,) --duration 0.1",
                     paranoid=-1)
    assert done.status == 0, str(done)
    return Result(done.status, done.stdout, done.stderr)


def places(result):
    return [(*sorted(e["from"].items()), *sorted(e["to"].items()))
            for r in result.of("branch") for e in r["entries"]]


def test_processes_that_run_the_same_program_share_its_edges(guest):
    together = of_two_processes(guest, "edge")
    assert len(set(places(together))) == len(places(together)) > 3
    assert branches(together)["unresolved"] == 0


def test_processes_are_told_apart_if_that_is_asked_for(guest):
    apart = of_two_processes(guest, "edge,pid")
    assert len({e["pid"] for r in apart.of("branch") for e in r["entries"]}) == 2
    assert len(set(places(apart))) < len(places(apart))


def test_a_process_that_has_gone_before_anybody_looked_is_placed_by_the_kernels_notes(guest):
    # The shell's child ends before the record of the run is made.
    result = branch(guest, "-e branches:u -c 1009 --filter ind_call --by edge,comm", "sh -c 'kinds; :'")
    entries = [e for e in result.entries("branch") if e["comm"] == "kinds"]
    at = known.addresses("kinds")
    assert [(address("kinds", e["from"]), address("kinds", e["to"])) for e in entries] == [
        (at["ind_call"], at["other"])]
    assert entries[0]["count"] > 1000


def test_intervals_sum_up_to_the_run(guest):
    result = branch(guest, "-e branches:u -c 1009 -I 1", "kinds")
    firsts = [r for r in result.of("branch") if "stacks" in r]
    assert len(firsts) > 1
    samples = sum(sum(r["stacks"]["by_depth"]) for r in firsts)
    assert samples == result.one("end")["samples"]["aggregated"]
    entries = [e for r in result.of("branch") for e in r["entries"]]
    assert sum(e["count"] for e in entries) == sum(r["branches"]["delivered"] for r in firsts)


def test_of_a_steady_loop_a_hundredth_of_its_stacks_comes_out(guest):
    result = branch(guest, "-e branches:u -c 101", "kinds")
    assert len(result.out) <= 16 * 24 * sum(depths(result)) / 100


def compile_hot(to, *options):
    source = os.path.join(HERE, "hot.c")
    subprocess.run(["clang", "-O2", "-gline-tables-only", "-fdebug-info-for-profiling", "-fdebug-compilation-dir=.",
                    f"-ffile-prefix-map={HERE}=.", *options, "-o", to, source], check=True)


def calls_in_main(program):
    said = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True,
                          text=True, check=True).stdout
    return re.findall(r"call +\w+ <(\w+)>", said.split("<main>:")[1].split("\n\n")[0])


def test_a_compiler_inlines_by_the_profile_what_it_would_not_have(guest, tmp_path):
    """hot.c is recorded on the machine, at a random address. llvm-profgen, which checks the profile
    against the disassembly, accepts it, and clang with this profile inlines the hot call."""
    before, after, profile = (str(tmp_path / name) for name in ("hot", "hot2", "profile"))
    compile_hot(before, "-fpie", "-pie")
    with open(before, "rb") as file:
        done = guest.run("cat > hot; chmod +x hot; "
                         "nhmtap branch --format autofdo -e branches:u -c 997 -o x -- ./hot",
                         stdin=file.read(), paranoid=-1)
    assert done.status == 0, str(done)
    text = guest.fetch("x", tmp_path)
    (*_, profgen) = sorted(glob.glob("/usr/lib/llvm-*/bin/llvm-profgen"))
    said = subprocess.run([profgen, f"--binary={before}", f"--unsymbolized-profile={text}",
                           "--use-offset=0", "--format=text", f"--output={profile}"],
                          capture_output=True, text=True, check=True)
    assert "warning" not in said.stderr
    compile_hot(after, f"-fprofile-sample-use={profile}")
    assert calls_in_main(before) == ["mix"]
    assert calls_in_main(after) == []


def test_a_table_shows_the_hottest_edges_with_their_mispredictions(guest):
    done = guest.run("nhmtap branch --format table -e branches:u -c 997 --filter ind_call --top 1 -- graph",
                     paranoid=-1)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]  # without that of the machine
    assert lines[1].split() == ["count", "share", "mispredicted", "from", "to"]
    row = re.fullmatch(r" +[\d,]+ +(\d+\.\d)% +(\d+\.\d)% (#*) +main_x \(graph\) +-> [cd] \(graph\)", lines[2])
    assert row, done.stdout
    assert len(row[3]) == int(float(row[2]) / 10 + 0.5)
    assert lines[3].endswith("in 1 more")
