# SPDX-License-Identifier: GPL-2.0-only
"""The tables of samples have a size by the number of CPUs: those of an activity, and its stream's rings, take no more than
64 MiB, or half of --memory if that is more. machine/test_memory_of_maps.py looks at what the kernel says of them."""
import re

import pytest
from hosts import NEHALEM

MIXED = [("profile", "-g"), ("profile", "--by=ip"), ("mem", "--by=ip")]


def tables(nhmtap, host, command, cpus, memory, events="page-faults"):
    """MiB of tables, as a refusal lists them: of --memory, nothing is left beside a queue of 1 GiB."""
    everywhere = {f"sys/devices/system/cpu/{name}": f"0-{cpus - 1}\n" for name in ("online", "possible")}
    result = nhmtap(*command, host(NEHALEM, everywhere), "-a", "-e", events, "-c", "1", "--memory", f"{memory}M",
                    "--queue", str(2**30), "--duration", "0.1", "--format", "json")
    return float(re.search(r"tables ([\d.]+)", result.one("error")["why"])[1])


@pytest.mark.parametrize("command", MIXED)
@pytest.mark.parametrize("cpus", [8, 16, 64, 128])
def test_tables_are_the_largest_of_three_sizes_that_take_64_MiB_in_all(nhmtap, host, command, cpus):
    """The sizes are bpf/shared.h's: the whole, a quarter, a sixteenth, beside which each CPU has 0.05 MiB at most."""
    whole = tables(nhmtap, host, command, 2, 128) / 2 * cpus
    size = next(part for part in (1, 4, 16) if whole / part <= 64 - 0.05 * cpus)
    taken = tables(nhmtap, host, command, cpus, 128)
    assert whole / size - 0.1 <= taken <= min(whole / size + 0.05 * cpus + 0.1, 64)


def test_tables_take_half_of_a_limit_of_memory_that_allows_more(nhmtap, host):
    """128 CPUs: see README.md for the whole."""
    whole, quarter, least = (tables(nhmtap, host, ("profile", "-g"), 128, memory) for memory in (1000, 300, 20))
    assert whole > 400 and quarter == pytest.approx(whole / 4, abs=7) and least == pytest.approx(whole / 16, abs=7)


def test_the_smallest_tables_are_kept_where_even_they_take_more(nhmtap, host):
    one, two = (tables(nhmtap, host, ("mem", "--by=ip"), cpus, 128) for cpus in (512, 1024))
    assert one > 64 and two / one == pytest.approx(2, rel=0.02)


SIX = "page-faults,minor-faults,major-faults,context-switches,cpu-migrations,alignment-faults"


@pytest.mark.parametrize("command, events", [(("stream", "--fields=ip"), SIX), (("stream", "--fields=stack"), SIX),
                                             (("mem", "--stream"), "page-faults,minor-faults"), (("mem", "--stream"), SIX)])
@pytest.mark.parametrize("cpus", [2, 16])
def test_tables_and_rings_of_several_events_take_64_MiB_in_all(nhmtap, host, command, events, cpus):
    assert 16 < tables(nhmtap, host, command, cpus, 128, events) <= 64


@pytest.mark.parametrize("command, cpus", [(("stream", "--fields=stack"), 64), (("stream", "--fields=ip"), 128), (("mem", "--stream"), 128)])
def test_those_of_one_event_do_on_many_cpus(nhmtap, host, command, cpus):
    assert 24 < tables(nhmtap, host, command, cpus, 128) <= 64


def test_rings_have_more_samples_where_memory_allows_it(nhmtap, host):
    usual, more = (tables(nhmtap, host, ("stream", "--fields=ip"), 16, memory, SIX) for memory in (128, 1000))
    assert usual <= 64 and 100 < more <= 500
