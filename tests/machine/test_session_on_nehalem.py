# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap run with what a Nehalem has only once: counters, the off-core register, the LBR. What the
programs do is known, and what each activity reports in a session is compared with what it reports
alone."""
import collections
import json

import pytest

import known
from records import Result
from test_branch_on_nehalem import ALL, CALLS, counts, edges

COMMAND = "kinds; chase memory"

# Four events on general counters and one on a fixed counter, and all branches in the LBR, as the
# precise samples of mem need it: so all of them run all the time.
ACTIVITIES = {
    "counts": {"command": "stat", "event": "instructions:u"},
    "cpu": {"command": "profile", "event": "r01c0:u", "count": 5003, "by": "stack,comm", "call_graph": True},
    "loads": {"command": "mem", "side": "u", "count": 100, "by": "ip"},
    "requests": {"command": "offcore", "side": "u", "request": "DEMAND_DATA_RD", "response": "LOCAL_DRAM"},
    "branches": {"command": "branch", "event": "branches:u", "count": 1009},
}
SETTINGS = {"paranoid": -1, "tag_all_loads": True}


def entry(name, **others):
    return {"name": name, **ACTIVITIES[name], **others}


def words(name):
    options = {**ACTIVITIES[name]}
    return [options.pop("command")] + [
        "--" + member.replace("_", "-") + ("" if value is True else f"={value}") for member, value in options.items()]


def session(bench, activities, command, files=None, status=0, **members):
    """A session in the guest; `files` are further CONFIG files."""
    made = {"c": activities, **(files or {})}
    write = "mkfifo ctl ack\n" + "".join(f"cat > {name} <<'END'\n{json.dumps({'activities': config, **members})}\nEND\n"
                    for name, config in made.items())
    done = bench.run(f"{write}nhmtap run c -- sh -c '{command}'", **SETTINGS)
    assert done.status == status, str(done)
    return Result(done.status, done.stdout, done.stderr)


def alone(bench, name):
    done = bench.run(f"nhmtap {' '.join(words(name))} --format json -- sh -c '{COMMAND}'", **SETTINGS)
    assert done.status == 0, str(done)
    return Result(done.status, done.stdout, done.stderr)


def chain(result):
    """The number of samples at the one load instruction of chase, and of those that the kernel is
    known to have dropped. It drops more samples if other events interrupt as well: at times most of
    them, so the few others are compared with the loads that chase executes."""
    site = hex(known.addresses("chase")["chase_site"])
    found = sum(e["samples"] for e in result.entries("mem") if e["ip"] == site)
    others = sum(e["samples"] for e in result.entries("mem") if e["ip"] != site)
    assert others < SAMPLES / 10
    assert all(e["source"] == "local_dram_exclusive" for e in result.entries("mem") if e["ip"] == site)
    return found + sum(result.of("mem")[0]["samples"]["lost"].values())


def is_whole(result):
    """Whether all loads of chase are sampled, within the uncertainty of the account, and only a few
    others."""
    unsure = sum(r["samples"]["uncertainty"] for r in result.of("mem"))
    return SAMPLES - 1 - unsure <= chain(result) <= 1.03 * SAMPLES


def cell(result):
    return next(c for r in result.of("offcore") for c in r["cells"])


LOADS = known.numbers("chase")["memory.loads"]
SAMPLES = LOADS / 101  # a precise event with a period of 100 gives one every 101
EDGES = edges("kinds", *ALL)


def test_each_activity_gives_in_a_session_what_it_gives_alone(guest):
    together = session(guest, [entry(name) for name in ACTIVITIES], COMMAND)
    assert not together.of("error")
    assert {r["activity"] for r in together.of("start")} == {"session", *ACTIVITIES}
    assert all("takes_turns" not in r for r in together.of("start"))

    # The shell's own instructions differ slightly, with the length of its environment and the
    # clock.
    ours, theirs = together.one("count"), alone(guest, "counts").one("count")
    assert ours["status"] == "counted" and abs(ours["value"] - theirs["value"]) <= 0.001 * theirs["value"]

    ours, theirs = together.of("profile")[0], alone(guest, "cpu").of("profile")[0]
    assert ours["running_ns"] == ours["enabled_ns"] and ours["stacks"]["table_full"] == 0
    assert abs(ours["samples"]["aggregated"] - theirs["samples"]["aggregated"]) <= 0.02 * theirs["samples"]["aggregated"]

    assert is_whole(together) and is_whole(alone(guest, "loads"))

    ours, theirs = cell(together), cell(alone(guest, "requests"))
    assert ours["status"] == "counted" and ours["value"] >= LOADS
    # The interrupts of the samples evict some lines of the shell.
    assert abs(ours["value"] - theirs["value"]) <= 0.02 * theirs["value"]

    ours, theirs = (counts(r, "kinds") for r in (together, alone(guest, "branches")))
    assert set(ours) == set(theirs) == EDGES
    assert all(abs(ours[edge] - theirs[edge]) <= 0.02 * theirs[edge] for edge in theirs)


# HUP is signal 1, the lowest bit of the pending signals; nhmtap is the shell's parent. What follows
# the ping starts after CONFIG was read again.
RELOAD = ("cp d c; kill -HUP $PPID; while grep -q \"ShdPnd.*[13579bdf]$\" /proc/$PPID/status; do :; done; "
          "echo ping > ctl; read line < ack")


def test_hup_in_the_middle_lets_what_is_the_same_go_on_and_begins_the_rest(guest):
    before = [entry("counts"), entry("loads"), entry("branches")]
    after = [entry("counts"), entry("branches", filter="any_call"), entry("requests")]
    guest_files = {"d": after}
    result = session(guest, before, f"{COMMAND}; {RELOAD}; {COMMAND}", guest_files,
                     control="fifo:/tmp/ctl,/tmp/ack")
    assert not result.of("error")
    n = known.numbers("kinds")["INST_RETIRED.ANY_P"]
    assert result.one("count")["value"] >= 2 * n and len(result.of("start", activity="counts")) == 1
    assert is_whole(result)  # up to HUP
    assert result.one("end", activity="loads")["reason"] == "reloaded"
    assert cell(result)["value"] >= LOADS  # from then on
    lives = [r["seq"] for r in result.of("start", activity="branches")]
    assert len(lives) == 2
    first, second = (Result(0, "", "") for _ in range(2))
    first.records = [r for r in result.records if r["seq"] < lives[1]]
    second.records = [r for r in result.records if r["seq"] > lives[1]]
    assert set(counts(first, "kinds")) == EDGES
    assert set(counts(second, "kinds")) == edges("kinds", *CALLS)


def turns(result):
    return {r["activity"]: [(t["what"], t["with"]) for t in r["takes_turns"]] for r in result.of("start")
            if "takes_turns" in r}


def test_what_the_core_has_but_one_of_is_taken_in_turns_and_that_is_said(guest):
    stores = {**entry("requests", request="DEMAND_RFO"), "name": "stores"}
    result = session(guest, [entry("requests"), stores], COMMAND)
    assert turns(result) == {"requests": [("offcore_rsp", ["stores"])], "stores": [("offcore_rsp", ["requests"])]}
    cells = [r["cells"][0] for r in result.of("offcore")]
    assert {c["status"] for c in cells} == {"multiplexed"}
    assert sum(c["running_ns"] for c in cells) <= 1.02 * max(c["enabled_ns"] for c in cells)

    result = session(guest, [entry("loads"), entry("branches", filter="any_call")], COMMAND)
    assert turns(result) == {"loads": [("branch_filter", ["branches"])], "branches": [("branch_filter", ["loads"])]}
    shares = [r["running_ns"] / r["enabled_ns"] for kind in ("mem", "branch") for r in result.of(kind)
              if "running_ns" in r]
    assert len(shares) == 2 and all(share < 1 for share in shares)

    # Five events for four counters, and an activity that needs one of these, too.
    codes = ("01c2", "00c4", "01cb", "02cb", "04cb")
    many = {"name": "many", "command": "stat", "event": ",".join(f"r{code}:u" for code in codes)}
    result = session(guest, [entry("requests"), many], COMMAND)
    assert turns(result) == {"requests": [("counters", ["many"])], "many": [("counters", ["requests"])]}


def test_who_waits_for_counters_that_another_activity_has_pinned_learns_its_name(guest):
    """Four pinned events keep the four counters, so that a fifth never has one, nor one that is pinned later."""
    pinned = ",".join(f"r{code}:uD" for code in ("01c2", "00c4", "01cb", "02cb"))
    activities = [{"name": "keeper", "command": "stat", "event": pinned},
                  {"name": "waiter", "command": "stat", "event": "r04cb:u"},
                  {"name": "late", "command": "stat", "event": "r08cb:uD"}]
    result = session(guest, activities, COMMAND)
    whys = {r["activity"]: (r["status"], r.get("why", "")) for r in result.of("count")}
    assert whys["keeper"] == ("counted", "")
    assert whys["waiter"] == ("not_counted", "it never got a counter: this session's keeper, late, or others, hold the "
                              "counters that it can use")
    assert whys["late"] == ("not_counted", "it is pinned, and this session's keeper, waiter, or others, held the counters "
                            "that it can use: the kernel does not try again; without D it takes turns")
    assert all("pinned" in r["takes_turns"][0]["why"] for r in result.of("start", activity="waiter"))


SIX = ",".join(f"r{code}:u" for code in ("01c2", "00c4", "01cb", "02cb", "04cb", "08cb"))


@pytest.mark.parametrize("first", [{"event": "r01c4:u", "all_cpus": True}, {"event": "r01c4:uD"}], ids=["of all CPUs", "pinned"])
def test_groups_have_room_beside_events_that_the_kernel_schedules_first(guest, first):
    """One of the four counters is taken whenever a group of the six gets its turn, so that a group of four would never run."""
    activities = [{"name": "six", "command": "stat", "event": SIX}, {"name": "first", "command": "stat", **first}]
    result = session(guest, activities, "chase memory; chase memory; chase memory")
    assert result.one("count", activity="first")["status"] == "counted"
    assert [r["status"] for r in result.of("count", activity="six")] == 6 * ["multiplexed"]


def test_an_analysis_beside_a_profile_of_all_cpus_finds_what_it_finds_alone(guest):
    activities = [{"name": "why", "command": "analyze"},
                  {"name": "cpu", "command": "profile", "event": "cycles", "all_cpus": True}]
    # Half as many give each group of events one to three turns, and some none where turns begin at another time.
    command = "; ".join(12 * ["chase memory"])
    beside, only = (session(guest, chosen, command).of("analysis") for chosen in (activities, activities[:1]))
    ours, theirs = ({share["name"]: share for part in parts for share in part["shares"]} for parts in (beside, only))
    for name in ("cycles", "retiring", "stalled", "memory_bound", "dram_bound"):
        assert ours[name]["low"] <= theirs[name]["share"] <= ours[name]["high"], name
    assert "dram_bound" in [one["name"] for one in beside[0]["verdict"]]


@pytest.mark.parametrize("first, second", [("trace", "branches"), ("branches", "trace")])
def test_a_trace_beside_branch_records_is_refused_and_the_first_goes_on(guest, first, second):
    """The branch trace store and the LBR exclude each other."""
    trace = {"name": "trace", "command": "branch", "trace": True, "filter": "u"}
    both = {"trace": trace, "branches": entry("branches")}
    result = session(guest, [both[first], both[second]], "kinds")
    error = result.one("error")
    assert (error["activity"], error["errno"]) == (second, "EBUSY")
    assert f"'{second}' beside '{first}'" in error["asked"] and "exclude each other" in error["why"]
    assert set(counts(result, "kinds")) >= EDGES
    assert {r["activity"] for r in result.of("branch")} == {first}


FREE_AND_WAIT = r"""
until grep -q EBUSY out; do :; done
kill $1
until grep '"type":"start"' out | grep -q '"activity":"branches"'; do :; done
kinds
"""


def test_one_that_another_process_keeps_out_is_told_and_tried_again(guest):
    """Branch records are refused while another process traces branches."""
    activities = [entry("counts"), entry("branches", retry=True)]
    config = json.dumps({"activities": activities, "outputs": [{"path": "/tmp/out"}]})
    done = guest.run(f"cat > c <<'END'\n{config}\nEND\ncat > s <<'END'\n{FREE_AND_WAIT}\nEND\n"
                     "nhmtap branch --trace --filter u --top 1 -o held -p $$ & trace=$!\n"
                     "until [ -s held ]; do :; done; nhmtap run c -- sh s $trace >&2; cat out", **SETTINGS)
    result = Result(done.status, done.stdout, done.stderr)
    assert done.status == 0, str(done)
    assert {(r["activity"], r["errno"]) for r in result.of("error")} == {("branches", "EBUSY")}
    assert set(counts(result, "kinds")) == EDGES
    assert result.one("count")["value"] >= known.numbers("kinds")["INST_RETIRED.ANY_P"]


def test_a_module_that_is_loaded_while_a_run_goes_on_has_its_own_name(guest):
    """The kernel's symbols are read when the module isn't there yet. Afterwards its driver is asked for a register again and
    again. The tests' guests have the module already, and hide most of the kernel's names. Reading these takes such a machine a
    second, and an interval has time for it."""
    command = "sleep 5; insmod /lib/modules/msr.ko; dd if=/dev/cpu/0/msr of=/dev/null bs=8 skip=2 count=2000; sleep 9"
    done = guest.run("umount /proc/kallsyms; rmmod msr; nhmtap profile -e instructions:k -c 1009 --by symbol --format json -I 4000 -- "
                     f"sh -c '{command}'", paranoid=-1)
    assert done.status == 0, str(done)
    result = Result(done.status, done.stdout, done.stderr)
    records = [{(code["module"], code.get("symbol", code.get("address"))): entry["samples"] for entry in record["entries"]
                if "module" in (code := entry["code"])} for record in result.of("profile")]
    loading = next(i for i, record in enumerate(records) if ("[kernel]", "load_module") in record)
    assert any(records[:loading]), "the symbols were read late"
    assert not any(module == "[msr]" for record in records[:loading] for module, _ in record)
    after = collections.Counter()
    for record in records[loading:]:
        after.update(record)
    # What a module runs once, when it is loaded, is gone when its symbols are read.
    assert after["[msr]", "msr_read"] > 100
    assert 10 > sum(samples for (_, at), samples in after.items() if str(at).startswith("0xffffffffc0"))
