# SPDX-License-Identifier: GPL-2.0-only
"""An event that was never counted says so and why, in each activity and for each reason: a run without samples can't be
taken for one in which nothing happened."""
import pytest
from records import check_stream, parse, parse_among

# Any general counter will do for these, so that four of them, pinned, hold all.
HOLD_ALL = """
mkfifo /tmp/held /tmp/done
perf stat -a -e r02c2:D,r04c2:D,r01c4:D,r02c4:D -o /tmp/perf -- sh -c 'echo > /tmp/held; read x < /tmp/done' &
holder=$!
read x < /tmp/held
"""
RELEASE = "echo > /tmp/done; wait $holder"
ACTIVITIES = {
    "stat": "stat -e r01c0:u",
    "profile": "profile -e r01c0:u -c 1009",
    "mem": "mem --side u --ldlat 3 -c 101",
    "branch": "branch -e r01c0:u -c 1009",
    "offcore": "offcore --side u --request DEMAND_DATA_RD --response LOCAL_DRAM",
}
RECORDS = {"stat": "count"}
SAMPLING = ("profile", "mem", "branch")
# A process that has ended, and for which nobody waits: the sleep that its shell becomes does not.
END_ONE = """
sh -c 'true & echo $! > /tmp/ended; exec sleep 1000' &
sleeper=$!
until grep -q zombie /proc/$(cat /tmp/ended)/status; do sleep 0.01; done 2> /dev/null
"""


def of_activity(found, name):
    records = [r for r in found if r["type"] == RECORDS.get(name, name)]
    assert records
    return [cell for r in records for cell in r.get("cells", [r])]


@pytest.mark.parametrize("reason", ["held", "never_ran", "off", "ended"])
def test_an_event_that_was_never_counted_says_why_in_each_activity(guest, reason):
    before, target, after, why = {
        "held": (HOLD_ALL, "-- steady short", RELEASE, "others hold the counters that it can use"),
        "never_ran": ("sleep 1000 & sleeper=$!", "--duration 0.02 -p $sleeper", "kill $sleeper", "its target never ran"),
        "ended": (END_ONE, "-p $(cat /tmp/ended) -- sleep 0.02", "kill $sleeper", "its target never ran"),
        "off": ("mkfifo /tmp/control", "--delay -1 --control fifo:/tmp/control --duration 0.02 -C 0", "", "counting was switched off"),
    }[reason]
    runs = "\n".join(f"nhmtap {command} --format json -o /tmp/{name} {target} 2> /tmp/{name}.err; echo {name} $?"
                     for name, command in ACTIVITIES.items())
    said = guest.say(f"{before}\n{runs}\n{after}\nfor f in {' '.join(ACTIVITIES)}; do echo @$f; cat /tmp/$f.err; "
                     f"echo; echo @; cat /tmp/$f; done", paranoid=-1)
    for name in ACTIVITIES:
        words, records = said.split(f"@{name}\n", 1)[1].split("\n@\n", 1)
        found = parse(records.split("\n@", 1)[0].rstrip() + "\n")
        check_stream(found)
        for record in of_activity(found, name):
            assert (record["status"], record["value"], record["running_ns"]) == ("not_counted", 0, 0), (name, record)
            assert why in record["why"], (name, record)
            assert "samples" not in record or record["samples"]["aggregated"] == 0
            no = "no samples" if name in SAMPLING else "not counted"
            assert words.count(f"{no}: {record['why']}\n") == 1, (name, words)


def test_the_cells_that_no_execution_counted_are_said_once(guest):
    said = guest.say(f"""{HOLD_ALL}
nhmtap offcore --side u --request DEMAND_DATA_RD,DEMAND_RFO --response LOCAL_DRAM -r auto --format json -o /tmp/json -- steady short 2> /tmp/err
{RELEASE}
cat /tmp/err; echo @; cat /tmp/json""", paranoid=-1)
    words, records = said.split("@\n", 1)
    assert "others hold the counters" in words and words.count(": not counted: ") == 1, words
    assert all(cell["status"] == "not_counted" for r in parse(records) if r["type"] == "offcore" for cell in r["cells"])


def test_a_sampled_event_that_never_got_a_counter_has_a_line_of_flat_without_a_value(guest):
    said = guest.say(f"{HOLD_ALL}\nnhmtap profile -e r01c0:u -c 1000 --format flat -o /tmp/flat -- steady short 2> /tmp/err\n{RELEASE}\ncat /tmp/flat",
                     paranoid=-1)
    line, = parse(said)
    assert (line["event"], line["status"], line["running_ns"]) == ("r01c0:u", "not_counted", 0)
    assert line["enabled_ns"] and "others hold the counters" in line["why"] and "value" not in line


def test_a_pinned_event_is_lost_only_while_its_target_runs(guest):
    """A command that has had its counter and sleeps is not said to have found it held; one that found all held is, in each
    execution."""
    said = guest.say(f"""nhmtap stat -e r01c0:uD -I 20 --format json -o /tmp/asleep -- sleep 0.1; cat /tmp/asleep
{HOLD_ALL}
nhmtap stat -e r01c0:uD -r 2 --format json -o /tmp/held.json -- steady short 2> /tmp/err
{RELEASE}
echo @; cat /tmp/held.json""", paranoid=-1)
    asleep, held = ([r for r in parse(part) if r["type"] == "count"] for part in said.split("@\n", 1))
    assert asleep[0]["status"] == "counted" and len(asleep) > 2
    assert {r["why"] for r in asleep if r["status"] == "not_counted"} == {"its target never ran"}
    assert len(held) == 2 and all("it is pinned, and others held the counters" in r["why"] for r in held), held


@pytest.mark.parametrize("name, options, words", [
    ("profile", "-e r01c4:u -c 1000000000", " times, and a sample comes every 1000000000 times"),
    ("branch", "-e r01c4:u -c 1000000000", " times, and a sample comes every 1000000000 times"),
    # The guest's memory takes less than that.
    ("mem", "--side u --ldlat 60000 -c 101", "it ran, and no load took 60000 cycles or longer"),
    ("mem", "--side u --ldlat 3 -c 1000000000", " times, and a sample comes every "),
    # MMX operations, of which the program has none.
    ("profile", "-e r0210:u -c 1009", "it ran, and did not occur"),
])
def test_an_event_that_was_counted_and_gave_no_sample_says_why(guest, name, options, words):
    result = guest.run(f"nhmtap {name} {options} --format json -- steady short")
    found = parse(result.stdout)
    check_stream(found)
    silent = [r for r in found if r["type"] == name]
    assert silent and not any(r["samples"]["aggregated"] for r in silent)
    for record in silent:
        assert record["status"] == "counted" and words in record["no_samples"], record
        assert f"no samples: {record['no_samples']}\n" in result.stderr


@pytest.mark.parametrize("options", ["--filter ind_call", "--filter ind_call,ind_jmp -g", "--filter ind_call --by function,comm -I 20"])
def test_samples_without_a_branch_that_the_filter_lets_through_say_so(guest, options):
    """The program makes no indirect calls or jumps."""
    allowed = options.split()[1]
    result = guest.run(f"nhmtap branch -e BR_INST_EXEC.ANY:u -c 1009 {options} -o json=/tmp/json -o table=/tmp/table "
                       "-- steady short; cat /tmp/table; echo @; cat /tmp/json")
    table, records = result.stdout.split("@\n", 1)
    found = parse(records)
    check_stream(found)
    hollow = [r for r in found if r["type"] == "branch"]
    words = f"no entries: none of the branches that --filter {allowed} lets through was taken before a sample\n"
    assert any(r["samples"]["aggregated"] for r in hollow)
    for record in hollow:
        assert not record["entries"] and not record["branches"]["delivered"]
        assert ("no_entries" in record) == bool(record["samples"]["aggregated"])
    assert words in table and result.stderr.count(words) == 1, result


def test_samples_with_branches_say_nothing_of_missing_ones(guest):
    result = guest.run("nhmtap branch -e BR_INST_EXEC.ANY:u -c 1009 --filter any --format json -- steady short")
    assert all("no_entries" not in r for r in parse(result.stdout)) and "no entries" not in result.stderr


DRAM = "profile --by comm -e MEM_UNCORE_RETIRED.LOCAL_DRAM"
SPARSE = {"plain": f"{DRAM}:u -c 32", "frequency": f"{DRAM}:u -F 1000", "precise": f"{DRAM}:pu -c 32",
          "mem": "mem --side u --ldlat 100 -c 32 --by comm"}


@pytest.mark.parametrize("way", SPARSE)
def test_a_thread_that_is_switched_before_each_sample_says_so(guest, way):
    """The kernel raises what is left of a period at each switch, so that 32 events have to occur between two. The counter of a
    CPU has no such switches."""
    def run(target):
        said = guest.say(f"naps 1000000 & sleep 0.05; nhmtap {SPARSE[way]} --duration 0.1 {target.format('$!')} --format json; kill $!",
                         paranoid=-1, tag_all_loads=True)
        found = parse_among(said)
        check_stream(found)
        return next(record for record in found if record["type"] in ("profile", "mem"))

    sparse = run("-p {}")
    assert sparse["value"] > 1000 and sparse["samples"]["aggregated"] == 0
    assert "less than 32 times from one switch of its thread to the next" in sparse["no_samples"]
    of_cpu = run("-a --where 'comm==\"naps\"'")
    assert "no_samples" not in of_cpu
    if way != "frequency":
        assert 33 * of_cpu["samples"]["aggregated"] == pytest.approx(sparse["value"], rel=0.4)
