# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap on the emulated Nehalem, compared with the programs' known counts and with perf in the same guest.
Counts agree exactly, samples as distributions."""
import collections

import pytest

import known
from guests import nhmtap


def stat(bench, events, command, **options):
    """{event as it was given: count}."""
    found = {}
    for group in known.groups(events):
        said = nhmtap(
            bench, "stat", "-e", ",".join(user_level(e) for e in group), "--format", "json", "--",
            *command.split(), **options,
        )  # fmt: skip
        counts = [r for r in said if r["type"] == "count"]
        assert len(counts) == len(group)
        for event, record in zip(group, counts):
            assert record["status"] == "counted", record
            assert 0 < record["running_ns"] == record["enabled_ns"], record
            found[event] = record["value"]
    return found


def user_level(event):
    return event + ":u" if event in known.events() else event


def profile(bench, event, period, command, **options):
    """How often each address was sampled, and the accounting of the samples."""
    said = nhmtap(
        bench, "profile", "-e", event, "-c", str(period), "--by", "ip", "--format", "json", "--",
        *command.split(), **options,
    )  # fmt: skip
    profiles = [r for r in said if r["type"] == "profile"]
    found = collections.Counter()
    for record in profiles:
        for entry in record["entries"]:
            found[int(entry["ip"], 16)] += entry["samples"]
    return found, profiles[-1]["samples"]


@pytest.mark.parametrize("program", ["count", "float", "graph"])
def test_counts_are_those_of_the_programs_text(any_kernel, program):
    expected = {k: v for k, v in known.numbers(program).items() if "." in k}
    assert stat(any_kernel, list(expected), program) == expected


@pytest.mark.parametrize("program", ["count", "graph"])
def test_perf_counts_the_same(any_kernel, program):
    expected = {k: v for k, v in known.numbers(program).items() if "." in k}
    assert any_kernel.perf_counts(list(expected), program) == expected


OFFCORE = [f"cpu/event=0xb7,umask=1,offcore_rsp={value:#x}/u" for value in (0x4001, 0xFF01, 0x4004)]


@pytest.mark.parametrize("event", OFFCORE)
def test_offcore_responses_agree(guest, event):
    # Physical addresses differ between runs, and the kernel evicts different lines.
    ours = stat(guest, [event], "offcore data")[event]
    perfs = guest.perf_counts([event], "offcore data")[event]
    assert abs(ours - perfs) <= max(20, perfs // 50)


@pytest.mark.parametrize("kind", ["l2", "memory"])
def test_cache_events_agree(guest, kind):
    events = ["MEM_LOAD_RETIRED.L2_HIT", "MEM_LOAD_RETIRED.LLC_MISS", "MEM_LOAD_RETIRED.L1D_HIT"]
    ours = stat(guest, events, f"chase {kind}")
    perfs = guest.perf_counts(events, f"chase {kind}")
    for event in events:
        assert abs(ours[event] - perfs[event]) <= max(20, perfs[event] // 50), event


def test_loads_above_a_latency_agree(guest):
    event = "cpu/event=0xb,umask=0x10,ldlat=100/u"
    ours = stat(guest, [event], "chase memory", tag_all_loads=True)[event]
    assert ours == pytest.approx(known.numbers("chase")["memory.loads"], abs=4)


@pytest.mark.parametrize("precise, symbol", [("p", "chase_next"), ("pp", "chase_site")])
def test_precise_samples_are_at_the_load(any_kernel, tmp_path, precise, symbol):
    event = "MEM_LOAD_RETIRED.LLC_MISS"
    found, samples = profile(any_kernel, f"{event}:u{precise}", 1000, "chase memory")
    expected = known.numbers("chase")["memory.loads"] // 1000
    assert set(found) == {known.addresses("chase")[symbol]}
    assert expected - 1 <= sum(found.values()) <= expected
    assert not any(samples["lost"].values())
    options = f"-c 1000 -e {known.raw(event)}:u{precise}"
    perfs = any_kernel.samples(options, "chase memory", "ip", tmp_path)
    assert set(found) == {int(row[0], 16) for row in perfs}


def test_samples_of_a_call_graph_are_spread_as_perf_has_them(guest, tmp_path):
    ours, samples = profile(guest, "INST_RETIRED.ANY_P:upp", 997, "graph")
    # perf's is the kernel's period, which PEBS exceeds by one event.
    rows = guest.samples("-c 996 -e r01c0:upp", "graph", "ip", tmp_path)
    perfs = collections.Counter(int(row[0], 16) for row in rows)
    total = sum(perfs.values())
    assert abs(sum(ours.values()) - total) <= 2
    assert samples["aggregated"] == sum(ours.values())
    # The addresses are the same except rare ones, and their shares differ only by chance.
    difference = sum(abs(ours[ip] - perfs[ip]) for ip in {*ours, *perfs})
    assert difference <= 0.2 * total


def test_two_values_of_the_offcore_register_say_that_they_took_turns(guest):
    said = nhmtap(
        guest, "stat", "-e", ",".join(OFFCORE[::2]), "--format", "json", "--",
        "sh", "-c", "for k in 1 2 3 4; do offcore data; done",
    )  # fmt: skip
    counts = [r for r in said if r["type"] == "count"]
    assert len(counts) == 2
    assert all(0 < r["running_ns"] < r["enabled_ns"] for r in counts)


def test_a_profile_without_an_event_samples_cycles_precisely(any_kernel):
    start, *_, end = nhmtap(any_kernel, "profile", "--format", "json", "--", "known", "l")
    event, = start["events"]
    assert (event["name"], event["attr"]["precise_ip"]) == ("cycles:P", 2)
    assert "precisely" in start["default_event_why"]
    assert end["samples"]["aggregated"] > 0
