# SPDX-License-Identifier: GPL-2.0-only
"""Events that sample too often: the kernel stops them until its next tick, and counts nothing meanwhile. The
program's loads and branches are known, so it is known that some are missing."""
import contextlib
import json
import subprocess

import pytest

import known
import remarks
from guests import nhmtap
from records import NHMTAP, of_type

N = known.numbers("chase")
LOADS = N["l1.loads"] + N["other_loads"]
KERNEL = "/proc/sys/kernel/perf_"
# A turn of the shell's loop takes several thousand cycles, so this takes several ticks.
TURNS = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done"


@contextlib.contextmanager
def limit(bench, rate):
    """Lowers the kernel's limit of samples a second. It can be set only while perf_cpu_time_max_percent is not
    0, as it is here."""
    before = bench.say(f"cat {KERNEL}event_max_sample_rate").strip()
    bench.say(f"echo 25 > {KERNEL}cpu_time_max_percent; echo {rate} > {KERNEL}event_max_sample_rate")
    try:
        yield
    finally:
        bench.say(f"echo {before} > {KERNEL}event_max_sample_rate; echo 0 > {KERNEL}cpu_time_max_percent")


def is_marked(record):
    samples = record["samples"]
    return samples["at_least"] and samples["throttled"] >= 1 and "the kernel paused it" in record["why"]


def is_unmarked(record):
    return "why" not in record and not {"at_least", "throttled"} & set(record["samples"])


def test_a_throttled_profile_says_that_its_value_is_the_least_that_there_was(any_kernel):
    with limit(any_kernel, 1000):
        found = nhmtap(any_kernel, "profile", "-e", "MEM_INST_RETIRED.LOADS:u", "-c", 100, "--by", "comm", "--", "chase", "l1")
    record, = of_type(found, "profile")
    assert is_marked(record) and record["status"] == "counted"
    assert record["samples"]["aggregated"] * 100 <= record["value"] < LOADS - 1000
    end = of_type(found, "end")[0]["samples"]
    assert end["at_least"] and end["throttled"] == record["samples"]["throttled"]


def test_throttled_precise_samples_say_so_and_the_values_of_longer_periods_are_whole(sandybridge):
    def record_of(period):
        return of_type(nhmtap(sandybridge, "profile", "-e", "MEM_UOP_RETIRED.ALL_LOADS:upp", "-c", period, "--by",
                              "comm", "--", "chase", "l1"), "profile")[0]

    whole = record_of(1009)
    with limit(sandybridge, 1000):
        short = record_of(100)
    assert is_unmarked(whole) and whole["value"] == LOADS
    assert is_marked(short) and short["value"] < LOADS - 1000


@pytest.mark.parametrize("pace", [("-c", 1009), ("-F", 4000), ()])
def test_an_event_that_does_not_sample_too_often_is_not_marked(any_kernel, pace):
    found = nhmtap(any_kernel, "profile", "-e", "MEM_INST_RETIRED.LOADS:u", *pace, "--by", "comm", "--", "chase", "l1")
    record, = of_type(found, "profile")
    assert is_unmarked(record) and record["value"] == LOADS


def test_a_throttled_branch_says_so(any_kernel):
    with limit(any_kernel, 1000):
        record, = of_type(nhmtap(any_kernel, "branch", "-e", "branches:u", "-c", 50, "--", "chase", "l1"), "branch")
    assert is_marked(record) and record["value"] < N["l1.loads"]


def test_only_intervals_that_were_throttled_are_marked(guest):
    with limit(guest, 1000):
        found = nhmtap(guest, "profile", "-e", "MEM_INST_RETIRED.LOADS:u", "-c", 100, "-I", 40, "--by", "comm", "--", "sh",
                       "-c", "chase l1; sleep 0.2")
    intervals = of_type(found, "profile")
    marked = [record["samples"].get("throttled", 0) > 0 for record in intervals]
    asleep = [record["value"] == 0 for record in intervals]
    assert marked[0] and any(asleep) and not any(a and b for a, b in zip(marked, asleep))
    assert all(is_marked(record) if mark else not record["samples"].get("at_least")
               for record, mark in zip(intervals, marked))
    assert sum(record["samples"].get("throttled", 0) for record in intervals) == of_type(found, "end")[0]["samples"]["throttled"]


def test_a_count_whose_text_says_when_to_sample_is_as_high_as_another(guest):
    """Its counter would overflow 1,680,000 times, and the kernel stop it until the next tick of the clock each time that
    400 have come in one: 200,000 were counted."""
    said = guest.say("nhmtap stat -e 'cpu/event=0xc0,name=plain/u,cpu/event=0xc0,period=50,name=period/u,r0c0:u:period=50' "
                     "-- steady")
    found = {record["event"]: record for record in map(json.loads, said.splitlines()) if record["type"] == "count"}
    plain, period, modifier = (found[name] for name in ("plain", "period", "r0c0:u:period=50"))
    assert plain["value"] == period["value"] == modifier["value"] > 8e7
    assert {record["status"] for record in (plain, period, modifier)} == {"counted"}


@pytest.mark.parametrize("release, stopped", [("6.15.9", False), ("6.16.0", True)])
def test_with_an_event_its_group_is_stopped_from_linux_6_16_on(guest, shim, release, stopped):
    """The kernel says so nowhere but in its source (perf_event_throttle_group()). This one does not, so only the
    accounts can be seen here."""
    path = guest.put(shim("later_kernel"))
    with limit(guest, 1000):
        said = guest.say(f"LD_PRELOAD={path} RELEASE={release} nhmtap profile --by comm -e "
                         "'{cpu/r010b,period=100/u,cpu/r00c4,period=100003/u,page-faults/period=1/}' -- chase l1", paranoid=-1)
    loads, branches, faults = [record for record in map(json.loads, said.splitlines()) if record["type"] == "profile"]
    assert is_marked(loads)
    for other in (branches, faults):
        assert other["samples"].get("throttled", 0) == (loads["samples"]["throttled"] if stopped else 0)
        assert ("another event of its group sampled too often" in other.get("why", "")) == stopped
        assert other["samples"].get("at_least", False) == stopped


def test_a_table_says_that_there_was_more(guest):
    with limit(guest, 1000):
        said = guest.say("nhmtap profile --format table -e MEM_INST_RETIRED.LOADS:u -c 100 -- chase l1", paranoid=-1)
    assert "# there was at least so much: it sampled too often" in said


def test_metrics_and_profiles_for_opentelemetry_say_how_often(guest):
    with limit(guest, 1000):
        said = guest.say("nhmtap profile -e MEM_INST_RETIRED.LOADS:u -c 100 --by comm -o json=/tmp/j -o openmetrics=/tmp/m "
                         "-o otlp-profiles-json=/tmp/p -- chase l1 > /tmp/out; grep -h throttled_total /tmp/m; cat /tmp/p; "
                         "grep type...profile /tmp/j")
    metric, message, record = [line for line in said.splitlines() if not line.startswith("# ")]
    times = json.loads(record)["samples"]["throttled"]
    assert times > 0 and float(metric.split()[-1 if metric.count(" ") == 1 else 1]) == times
    table = json.loads(message)["dictionary"]
    found = {table["stringTable"][a["keyStrindex"]]: a["value"] for a in table["attributeTable"] if "keyStrindex" in a}
    assert int(found["nhmtap.samples.throttled"]["intValue"]) == times and found["nhmtap.samples.at_least"]["boolValue"]


def test_files_for_other_viewers_and_views_of_records_say_that_there_was_more(guest, tmp_path):
    outputs = " ".join(f"-o {form}={form}" for form in ("json", *remarks.READERS))
    with limit(guest, 1000):
        guest.say(f"nhmtap profile -e MEM_INST_RETIRED.LOADS:u -c 100 {outputs} -- chase l1 > out", paranoid=-1)
        files = {form: guest.fetch(form, tmp_path) for form in ("json", *remarks.READERS)}
    for form, read in remarks.READERS.items():
        said = read(files[form])
        assert [text for text in said if "there was at least so much: it sampled too often" in text], (form, said)
    for view, words in (("show", "# the kernel paused the event "), ("flamegraph", '"at_least":true'), ("report", '"at_least":true')):
        said = subprocess.run([NHMTAP, view, files["json"]], capture_output=True, text=True, check=True)
        assert words in said.stdout, view


def test_mem_says_so_in_the_same_words(guest):
    with limit(guest, 1000):
        found = nhmtap(guest, "mem", "--side", "u", "-c", 100, "--", "known", "d", tag_all_loads=True)
    assert is_marked(of_type(found, "mem")[0])


@pytest.mark.parametrize("clock", ["cpu-clock", "task-clock"])
def test_a_clock_that_was_throttled_has_the_time_for_which_it_ran(guest, clock):
    """The kernel's own count of it is too large or too small."""
    with limit(guest, 1000):
        record, = of_type(nhmtap(guest, "profile", "-e", clock, "-c", 20000, "--by", "comm", "--", "sh", "-c", TURNS), "profile")
    samples = record["samples"]
    assert samples["throttled"] >= 1 and "why" not in record
    assert record["value"] == record["running_ns"] == record["enabled_ns"]
    assert samples["lost"]["timer_missed"] > samples["aggregated"]


def test_page_faults_are_counted_while_their_samples_pause(guest):
    with limit(guest, 1000):
        record, = of_type(nhmtap(guest, "profile", "-e", "page-faults", "-c", 1, "--by", "comm", "--", "chase", "memory"),
                          "profile")
    assert "at_least" not in record["samples"] and record["samples"]["expected"] == record["value"]
