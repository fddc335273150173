# SPDX-License-Identifier: GPL-2.0-only
"""More events than counters: how far the estimates are off, for programs with known counts."""
import json
import os
import re

import pytest

import known

# Eight for four counters; the first two are those whose counts are known.
EVENTS = ["r010b:u", "r020b:u", "r04c4:u", "r01c4:u", "r00c5:u", "r02c0:u", "r01c0:u", "r02c4:u"]
TURN_OF_1_MS = "echo 1 > /sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms; "


def records(said):
    return [json.loads(line) for line in said.splitlines()]


def counts(said):
    return [r for r in records(said) if r["type"] == "count"]


def test_at_least_95_of_100_bounds_hold(guest):
    """Each execution does the same work in a different order."""
    # At the first use the kernel takes a second to enable perf; the command would run meanwhile
    # without a reading.
    said = guest.say(f"{TURN_OF_1_MS} nhmtap stat -e {EVENTS[0]} -- phases > /dev/null; "
                     f"nhmtap stat -r 50 -e {','.join(EVENTS)} -- phases")
    truth = dict(zip(EVENTS, [known.numbers("phases")[name] for name in (
        "MEM_INST_RETIRED.LOADS", "MEM_INST_RETIRED.STORES")]))
    trials = [r for r in records(said) if r["type"] == "count" and r["event"] in truth]
    assert len(trials) == 100
    assert all(0 < t["running_ns"] < t["enabled_ns"] and "bound" in t for t in trials)
    held = [t["bound"]["low"] <= truth[t["event"]] <= t["bound"].get("high", float("inf"))
            for t in trials]
    assert sum(held) >= 95
    # An estimate is within its own bound, and most have enough readings for an upper bound.
    assert all(t["value"] <= t["bound"]["low"] <= t["scaled"] + 0.5 for t in trials)
    assert sum("high" in t["bound"] for t in trials) >= 75


def test_people_read_numbers_of_what_says_little(guest):
    """A run of few turns: a count lies between two numbers with their digits, and a cell below one, not within 43398 %. What
    had no turn is told so: nobody else has a counter."""
    no_turn = "the events are more than the core has counters: they take turns, and its turn did not come"
    for _ in range(5):
        rows = guest.say(f"nhmtap stat -e {','.join(EVENTS)} --format table -- true")
        if no_turn in rows:
            break  # else the core's clock ticked while it ran, and the turn came
    assert rows.count(no_turn) == 4, rows
    rows = guest.say(f"{TURN_OF_1_MS} nhmtap stat -e {','.join(EVENTS)} --format table -- chase l2")
    between = re.findall(r"from (\S+) to (\S+)\)|at most (\S+)\)", rows)
    assert between and all(re.fullmatch(r"\d{1,3}(,\d{3})*", number) for found in between for number in found if number), rows
    cells = guest.say("nhmtap offcore --format table -- chase l2")
    assert re.search(r" [<?]", cells) and all(int(error) < 1000 for error in re.findall(r"±(\d+)%", cells)), cells


def test_what_is_expected_of_an_estimate_may_be_impossible_to_tell(guest):
    loads = known.numbers("steady")["turns"]
    expected = {f"{EVENTS[0]}>{loads // 2}": "met", f"{EVENTS[0]}<{loads // 2}": "failed",
                f"{EVENTS[0]}=={loads}": "cannot_tell"}
    result = guest.run(f"nhmtap stat -e {','.join(EVENTS)} "
                       + " ".join(f"--expect '{text}'" for text in expected) + " -- steady")
    found = {r["expectation"]: r for r in records(result.stdout) if r["type"] == "expectation"}
    assert {text: r["outcome"] for text, r in found.items()} == expected
    assert result.status == 4
    for record in found.values():
        assert record["bound"]["low"] < record["value"] < record["bound"]["high"]
        # One load in a turn, at a steady pace: the bound is narrow.
        assert 0.9 * loads < record["bound"]["low"] <= loads <= record["bound"]["high"] < 1.1 * loads


# Twelve for four counters, of which a pinned event, which never shares its counter, holds one: the truth.
TWELVE = EVENTS + ["r01cb:u", "r02cb:u", "r10cb:u", "r40cb:u"]


def expected_bursts(guest, shape, seeds, expected=()):
    """(true number of loads, count record, expectation records) for each seed."""
    options = " ".join(f"--expect '{text}'" for text in expected)
    for seed in seeds:
        result = guest.run(f"nhmtap stat -e {TWELVE[0]}D,{','.join(TWELVE)} {options} -- bursts {shape} {seed}")
        found = records(result.stdout)
        counts = {r["event"]: r for r in found if r["type"] == "count"}
        truth = counts[f"{TWELVE[0]}D"]
        assert truth["status"] == "counted"
        assert counts[TWELVE[0]]["status"] == "multiplexed"
        yield truth["value"], counts[TWELVE[0]], [r for r in found if r["type"] == "expectation"]


def holds(truth, count):
    return count["bound"]["low"] <= truth <= count["bound"].get("high", float("inf"))


def test_bounds_hold_where_a_core_has_more_cycles_than_its_time_stamp_counter_ticks(guest):
    """This guest's clock ticks once an instruction. A load from memory takes 190 cycles, as if it ran at many times its clock."""
    stalls = "UOPS_RETIRED.STALL_CYCLES:u"
    command = " && ".join(["chase memory"] * 12)
    said = guest.say(f"nhmtap stat -e {stalls}D,{stalls},{','.join(TWELVE)} -- sh -c '{command}'")
    truth, count = (next(r for r in counts(said) if r["event"] == name) for name in (f"{stalls}D", stalls))
    assert (truth["status"], count["status"]) == ("counted", "multiplexed")
    assert truth["value"] >= 12 * known.numbers("chase")["memory.loads"] * (190 - 4)
    assert holds(truth["value"], count) and count["scaled"] <= count["bound"]["high"]


def test_a_burst_between_an_event_s_turns_is_not_said_to_be_absent(guest):
    # In about half of the runs nothing but what the C library loads before is seen; which these are depends on when turns begin.
    seen = []
    for truth, count, (expected,) in expected_bursts(guest, "burst 3 300", range(1, 20), [f"{TWELVE[0]}<100000"]):
        assert truth > 195000 and holds(truth, count) and expected["outcome"] != "met"
        # Three turns of 4 ms are without the event: there is a group of its own for the pinned one. Between them, two groups
        # may have the counters alone for 4 ms each, and after that those that waited longest come first.
        assert 8e6 < count["bound"]["absent_ns"] < 32e6
        seen.append(count["scaled"] >= 100000)
        if len(seen) >= 4 and not all(seen):
            break
    assert not all(seen)


def stands(truth, text):
    """Whether what is expected is true: EVENT<NUMBER, EVENT>NUMBER."""
    number = int(re.split("[<>]", text)[1])
    return truth < number if "<" in text else truth > number


SEED, RUNS = int(os.environ.get("NHMTAP_SEED", "10")), int(os.environ.get("NHMTAP_RUNS", "3"))
# Loads four times, so that each group has them: as many bounds from one run.
LOADS = [f"loads_{group}" for group in range(4)]
FOUR_GROUPS = [event for name, others in zip(LOADS, ("r020b r04c4", "r01c4 r00c5", "r02c0 r01c0", "r02c4 r01cb"))
               for event in (f"cpu/event=0xb,umask=1,name={name}/u", *(f"{other}:u" for other in others.split()))]


@pytest.mark.parametrize("shape", [
    "burst 3 300", "burst 9 300", "burst 18 300", "bursts 4 300", "children 3 80", "children 100 5", "parallel 6 40", "chain 3 80",
    "chain 100 5", "tails 8 300", "step 12 300", "step 16 300", "rare 4 300", "tree 20 4", "pool 6 300"])
def test_at_least_nine_of_ten_bounds_and_verdicts_are_right_in_every_shape(any_kernel, shape, request):
    """They are to be right with 95 %, which a few programs can't tell: four bounds of one are not independent.
    NHMTAP_SEED chooses other programs, NHMTAP_RUNS their number. `make search SEARCH='--only bounds'` goes on with other
    seeds, and adds up what is printed here."""
    expected = [f"{name}{sign}{10**digits}" for name in LOADS for digits in range(3, 8) for sign in "<>"]
    options = " ".join(f"--expect '{text}'" for text in expected)
    held, verdicts, missed = [], [], []
    for seed in range(SEED * RUNS, (SEED + 1) * RUNS):
        result = any_kernel.run(f"nhmtap stat -e {TWELVE[0]}D,{','.join(FOUR_GROUPS)} {options} -- bursts {shape} {seed}")
        found = records(result.stdout)
        pinned, *shared = (r for r in found if r["type"] == "count" and r["event"] in (f"{TWELVE[0]}D", *LOADS))
        truth = pinned["value"]
        assert pinned["status"] == "counted" and {r["status"] for r in shared} == {"multiplexed"}
        assert len({r["running_ns"] for r in shared}) == len(LOADS)  # each in a group of its own
        wrong = [r for r in shared if not holds(truth, r)]
        decided = [r for r in found if r["type"] == "expectation" and r["outcome"] != "cannot_tell"]
        wrongly = [r for r in decided if (r["outcome"] == "met") != stands(truth, r["expectation"])]
        held += [r not in wrong for r in shared]
        verdicts += [r not in wrongly for r in decided]
        missed += [f"bursts {shape} {seed}: {truth}, {record}" for record in wrong + wrongly]
    print(f"\nfigures: {shape} on {request.node.callspec.params['any_kernel']}: {sum(held)} of {len(held)} bounds hold, "
          f"{sum(verdicts)} of {len(verdicts)} verdicts are right, of {len(held) * len(expected) // len(LOADS)} asked", *missed, sep="\n  ")
    for right in held, verdicts:
        assert sum(right) >= 0.9 * len(right) > 0, missed


# Four groups, three if none is pinned.
SIXTEEN = TWELVE + ["r01c2:u", "r01a2:u", "r0188:u", "r0288:u"]


@pytest.mark.parametrize("shape", ["tails 8 600", "children 100 10"])
def test_the_bounds_of_intervals_hold(any_kernel, shape):
    held = []
    for seed in range(1, 4):
        found = counts(any_kernel.say(
            f"nhmtap stat -I 100 -e {TWELVE[0]}D,{','.join(SIXTEEN)} -- bursts {shape} {seed}"))
        pairs = zip(*([r for r in found if r["event"] == event] for event in (f"{TWELVE[0]}D", TWELVE[0])), strict=True)
        held += [holds(truth["value"], count) for truth, count in pairs if count["status"] == "multiplexed"]
    assert len(held) >= 9 and sum(held) >= 0.95 * len(held)


@pytest.mark.parametrize("shape", ["tails 8 600", "bursts 12 600"])
def test_the_bounds_of_several_members_of_a_session_hold(any_kernel, shape):
    """Six groups of two members take turns on three counters, and each member mixes its own."""
    members = {"first": ",".join([f"{TWELVE[0]}D", *TWELVE[:9]]),
               "second": "{r010b:u,r10cb:u,r40cb:u},{r01c2:u,r01a2:u,r0188:u},{r01c4:u,r0288:u,r02cb:u}"}
    config = {"activities": [{"name": name, "command": "stat", "event": events} for name, events in members.items()]}
    held = []
    for seed in range(1, 4):
        found = {(r["activity"], r["event"]): r for r in counts(any_kernel.say(
            f"cat > /tmp/members <<'END'\n{json.dumps(config)}\nEND\nnhmtap run /tmp/members -- bursts {shape} {seed}"))}
        truth = found["first", f"{TWELVE[0]}D"]["value"]
        held += [holds(truth, found[member, TWELVE[0]]) for member in members]
    assert sum(held) >= 0.95 * len(held)


def test_a_cgroup_s_groups_have_all_the_time_of_its_pinned_event(two_cores):
    """Linux 6.1 stops a cgroup's clock for a while after one of its events was enabled from another CPU."""
    pinned, *shared = counts(two_cores.say(f"""
        mkdir /sys/fs/cgroup/one
        sh -c 'echo $$ > /sys/fs/cgroup/one/cgroup.procs; exec taskset 1 steady' & steady=$!
        taskset 2 nhmtap stat -a -G one -e {TWELVE[0]}D,{",".join(TWELVE)} -- \\
            sh -c 'while kill -0 $0; do usleep 1000; done' $steady 2> /dev/null
        rmdir /sys/fs/cgroup/one""", paranoid=-1))
    assert {r["status"] for r in shared} == {"multiplexed"}
    assert all(0.99 < r["enabled_ns"] / pinned["enabled_ns"] < 1.01 for r in shared)
    assert 0.97 < shared[0]["scaled"] / pinned["value"] < 1.03  # one load in a turn, at a steady pace


@pytest.mark.parametrize("target", ["nhmtap stat -e {} -- steady", "steady & nhmtap stat -p $! -e {}",
                                    "steady & nhmtap stat -a -e {} -- sh -c 'while kill -0 $0; do :; done' $! 2>/dev/null"])
def test_mixing_the_order_of_turns_takes_no_counting_time_from_the_groups(guest, target):
    """A group that is disabled while another has the counters alone has the enabled time of the one that isn't."""
    found = [r for r in records(guest.say(target.format(",".join(TWELVE)))) if r["type"] == "count"]
    enabled, shares = {r["enabled_ns"] for r in found}, {r["running_ns"] / r["enabled_ns"] for r in found}
    assert {r["status"] for r in found} == {"multiplexed"}
    assert max(enabled) < 1.002 * min(enabled)
    assert len(shares) == 3  # one for each group
    assert 0.96 < sum(shares) < 1.01 and max(shares) < 2 * min(shares)


def test_every_group_that_is_made_of_a_list_gets_turns_from_the_kernel(guest):
    # Extra registers of both kinds, the two counters of L1D events, perf's cache events that need
    # the off-core register: if some group could not run, its events would have no running time.
    events = ["OFFCORE_RESPONSE:ANY_DATA:ANY_DRAM", "cpu/event=0xb,umask=0x10,ldlat=30/", "LLC-loads",
              "LLC-load-misses", "L1D.REPL", "L1D_CACHE_LD.MESI", "L1D_CACHE_LD.I_STATE", "instructions",
              "cycles", *EVENTS[2:], "OFFCORE_RESPONSE:DEMAND_RFO:LOCAL_CACHE",
              "cpu/event=0xb,umask=0x10,ldlat=60/"]
    said = guest.say(f"{TURN_OF_1_MS} nhmtap stat -e '{','.join(events)}' -- steady short")
    found = {r["event"]: r for r in records(said) if r["type"] == "count"}
    assert list(found) == events
    assert {r["status"] for r in found.values()} == {"multiplexed"}


def test_a_counter_that_another_takes_while_a_run_goes_on_is_told_in_those_intervals(guest):
    """L1D_CACHE_LD can use two counters only, and perf holds both while its command runs (:D)."""
    said = guest.say("""
        interval() {
            echo snapshot >&8
            intervals=$((intervals + 1))
            until [ $(grep -c '"event":"instructions"' /tmp/counts) = $intervals ]; do sleep 0.05; done
        }
        mkfifo /tmp/control; intervals=0
        nhmtap stat -a -I 86400000 --control fifo:/tmp/control -e L1D_CACHE_LD.MESI,instructions > /tmp/counts &
        exec 8> /tmp/control
        interval
        mkfifo /tmp/taken /tmp/done
        perf stat -a -e r0140:D,r0240:D -o /tmp/perf -- sh -c 'echo > /tmp/taken; read x < /tmp/done' &
        read x < /tmp/taken; interval; interval
        echo > /tmp/done; wait $!; interval; interval
        echo stop >&8; wait
        cat /tmp/counts""")
    counts = [record for record in records(said) if record["type"] == "count"]
    loads = [record for record in counts if record["event"] == "L1D_CACHE_LD.MESI"]
    assert [record["status"] for record in loads] == ["counted", "multiplexed", "not_counted", "multiplexed",
                                                      "counted", "counted"]
    assert [record["why"].partition(":")[0] for record in loads if "why" in record] == ["it never got a counter"]
    assert all(record["value"] for record in counts if record["event"] == "instructions")


# --- pinned events ------------------------------------------------------------------------------------

PINNED = "it is pinned, and others held the counters"
TOO_MANY = "it is pinned, and the pinned events are more than the core has counters"


def test_pinned_events_are_counted_all_the_time_or_told_to_have_no_counter(guest):
    names = [event.replace(":u", ":uD") for event in EVENTS[:6]]
    found = counts(guest.say(f"nhmtap stat -e {','.join(names)} -- steady short"))
    # Four counters: the kernel takes the first four, and gives the others up.
    assert [r["status"] for r in found] == ["counted"] * 4 + ["not_counted"] * 2
    assert all(TOO_MANY in r["why"] and r["enabled_ns"] for r in found[4:])
    assert found[0]["value"] > 0


def test_a_pinned_group_is_counted_as_perf_counts_it_or_given_up_as_a_whole(guest):
    found = counts(guest.say("nhmtap stat -e '{r010b:u,r020b:u}:D,{r04c4:u,r01c4:u,r00c5:u}:D' -- steady short"))
    assert [r["status"] for r in found] == ["counted"] * 2 + ["not_counted"] * 3
    assert all(TOO_MANY in r["why"] for r in found[2:])
    theirs = guest.run("perf stat -x, -e '{r010b:u,r020b:u}:D' -- steady short 2>&1 >/dev/null").stdout.splitlines()
    assert [int(line.split(",")[0]) for line in theirs] == [r["value"] for r in found[:2]]


def test_events_beside_pinned_ones_take_turns_on_the_counters_that_are_left(guest):
    names = [event.replace(":u", ":uD") for event in EVENTS[:2]] + EVENTS[2:]
    found = counts(guest.say(f"{TURN_OF_1_MS} nhmtap stat -e {','.join(names)} -- steady"))
    assert [r["status"] for r in found] == ["counted"] * 2 + ["multiplexed"] * 6
    assert all(r["running_ns"] for r in found)


def test_a_pinned_event_beside_another_holder_of_the_counters_is_told_so(guest):
    held = "nhmtap stat -a -e '{r010b,r020b,r04c4,r01c4}:D' -o /tmp/held -I 10 & holder=$!; " \
           "until grep -qs count /tmp/held; do sleep 0.01; done; "
    expected = "--expect 'r00c5:D<5'"
    said = guest.run(held + f"nhmtap stat -e r00c5:D {expected} -- steady short; echo status $? >&2; "
                     "nhmtap stat -a -e r00c5:D -I 20 --interval-count 2; "
                     "steady & nhmtap stat -p $! -e r00c5:D -I 20 --interval-count 2; kill $! $holder; rm /tmp/held")
    found = records(said.stdout)
    assert {r["outcome"] for r in found if r["type"] == "expectation"} == {"cannot_tell"}
    assert "status 3" in said.stderr
    # Its enabled time stands still, but no program changed its rights.
    assert "rights" not in said.stderr and not [r for r in found if r["type"] == "warning"]
    values = [r for r in found if r["type"] == "count"]
    assert len(values) >= 4 and {r["status"] for r in values} == {"not_counted"}
    assert all(PINNED in r["why"] for r in values)


@pytest.mark.parametrize("event", ["r00c5:u", "r00c5:uD"])
def test_every_output_says_that_an_event_never_got_a_counter(guest, event):
    """No number of it is taken for a count: of those that are numbers alone, the ratio of time says so."""
    held = "nhmtap stat -a -e '{r010b,r020b,r04c4,r01c4}:D' -o /tmp/held -I 10 & holder=$!; " \
           "until grep -qs count /tmp/held; do sleep 0.01; done; "
    commands = [f"stat -e {event}", f"profile -F 100 -e {event}", f"stream -F 100 -e {event}", "mem -c 100", "branch -c 1000"]
    said = guest.run(held + "; ".join(f"echo ===; nhmtap {command} --format openmetrics -- steady short" for command in commands)
                     + "; nhmtap offcore --format table -- steady short; kill $holder; rm /tmp/held", paranoid=-1)
    metrics, _, cells = said.stdout.partition("off-core requests")
    parts = metrics.split("===\n")[1:]
    for command, part in zip(commands, parts, strict=True):
        assert set(re.findall(r"^nhmtap_event_running_ratio\{.*\} (\S+)$", part, re.M)) == {"0"}, command
        assert not re.search(r"^nhmtap_(events|warnings)_total", part, re.M), command
    assert said.stderr.count(PINNED if "D" in event else "it never got a counter") >= 2
    assert "others hold the counters" in cells and "run longer" not in cells


def test_a_pinned_event_that_loses_its_counter_is_not_taken_for_a_count_of_the_whole(guest):
    said = guest.run("(while :; do :; done) & loop=$!; nhmtap stat -p $loop -e r01c4:D -I 20 --interval-count 25 -o /tmp/mine & "
                     "nhmtap=$!; until grep -qs count /tmp/mine; do sleep 0.01; done; "
                     "nhmtap stat -a -e '{r010b,r020b,r04c4,r02c4}:D' -o /dev/null -I 1000 & holder=$!; "
                     "wait $nhmtap; kill $holder $loop; cat /tmp/mine; rm /tmp/mine")
    found = counts(said.stdout)
    assert found[0]["status"] == "counted" and found[0]["value"]
    assert found[-1]["status"] == "not_counted" and PINNED in found[-1]["why"]
