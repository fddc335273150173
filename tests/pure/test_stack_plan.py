# SPDX-License-Identifier: GPL-2.0-only
"""What -g requests from the kernel, and what it refuses.

Sources: perf_event.h; perf_event_set_bpf_handler() and perf_callchain() of kernel/events/core.c, and
__bpf_get_stack() of kernel/bpf/stackmap.c, of Linux 6.1 and 6.18."""
import pytest

from hosts import NEHALEM, WITHOUT_PMU

IP, CALLCHAIN = 1 << 0, 1 << 5  # PERF_SAMPLE_IP, PERF_SAMPLE_CALLCHAIN


@pytest.mark.parametrize("event, excluded", [
    ("page-faults", set()), ("page-faults:u", {"exclude_callchain_kernel"}),
    ("page-faults:k", {"exclude_callchain_user"}), ("cycles:u", {"exclude_callchain_kernel"}),
    # A program gets the stack of a precise sample only if both sides are in it, otherwise -EPROTO.
    ("cycles:upp", set()), ("cycles:kpp", set())])
def test_a_stack_has_the_sides_of_its_event_unless_it_is_precise(explain, host, event, excluded):
    (record,) = explain(host(NEHALEM), "-g", "--unwind", "fp", event)
    attr = record["attr"]
    assert int(attr["sample_type"], 16) == IP | CALLCHAIN
    assert {name for name in attr if name.startswith("exclude_callchain")} == excluded
    assert set(attr) - {"type", "config", "name"} <= set(record["why"]) | {"config1", "config2"}


@pytest.mark.parametrize("event, chain", [("page-faults", 0), ("cycles:u", 0), ("cycles:upp", CALLCHAIN)])
def test_by_tables_the_kernel_walks_the_stacks_of_precise_samples_alone(explain, host, event, chain):
    (record,) = explain(host(NEHALEM), "-g", event)
    assert int(record["attr"]["sample_type"], 16) == IP | chain


@pytest.mark.parametrize("setting, frames", [(127, 125), (129, 127), (1000, 127), (40, 38)])
def test_a_stack_is_as_deep_as_the_kernel_lets_a_program_see(explain, host, setting, frames):
    # The chain has two words that mark the sides of the frames; the helper counts them as frames.
    machine = NEHALEM | {"proc/sys/kernel/perf_event_max_stack": f"{setting}\n"}
    (record,) = explain(host(machine), "-g", "--unwind", "fp", "cycles")
    assert record["attr"]["sample_max_stack"] == frames
    # With tables, the program walks the stack itself.
    (record,) = explain(host(machine), "-g", "cycles")
    assert record["attr"]["sample_max_stack"] == 127


def test_max_stack_is_the_depth(explain, host):
    (record,) = explain(host(NEHALEM), "-g", "--max-stack", "17", "cycles")
    assert record["attr"]["sample_max_stack"] == 17


@pytest.fixture
def refused(nhmtap, host):
    """The error record of a profile that is refused before anything is opened."""
    def run(*arguments, status=1):
        result = nhmtap("profile", host(WITHOUT_PMU), *arguments, "--", "true")
        assert result.status == status
        return result.one("error")
    return run


def test_a_depth_beyond_the_kernels_is_refused_with_the_setting_that_allows_it(refused):
    error = refused("-g", "--unwind", "fp", "--max-stack", "127", status=2)
    assert "perf_event_max_stack is 127" in error["why"]
    assert "125" in error["remedy"] and "perf_event_max_stack=129" in error["remedy"]


@pytest.mark.parametrize("depth", ["0", "256", "x"])
def test_a_depth_that_no_stack_has_is_refused(nhmtap, depth):
    result = nhmtap("profile", "-g", "--max-stack", depth, "--", "true")
    assert result.status == 1 and "1 to 255" in result.err


def test_a_depth_without_stacks_is_refused(nhmtap):
    result = nhmtap("profile", "--max-stack", "20", "--", "true")
    assert result.status == 1 and "-g" in result.err


@pytest.mark.parametrize("form", ["folded", "pprof"])
def test_a_form_that_can_not_tell_events_apart_takes_one(nhmtap, form):
    result = nhmtap("profile", "--format", form, "-e", "page-faults,cs", "--", "true")
    assert result.status == 1 and "several events" in result.err and result.out == ""


@pytest.mark.parametrize("form", ["pprof", "speedscope", "callgrind"])
def test_a_file_of_a_viewers_is_one_interval(nhmtap, form):
    result = nhmtap("profile", "--format", form, "-I", "100", "--", "true")
    assert result.status == 1 and "--interval" in result.err and result.out == ""
