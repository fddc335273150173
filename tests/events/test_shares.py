# SPDX-License-Identifier: GPL-2.0-only
"""The trees of where a core's cycles go: their events fit the counters, and what the emulated machine lacks is marked."""

import re

import pytest

from event_tables import ROOT, SANDYBRIDGES
from test_derived_metrics import NAME, fit_together, value

# The lists of what the machine models are of these.
CYCLES = ("nehalem-ep", "nehalem-ex", "westmere-ep", "westmere-ep-dp", "westmere-ex")
NOT_MODELLED = {line.split()[3] for line in (ROOT / "user/machine/not-modelled.txt").read_text("utf-8").splitlines()
                if line.startswith("event ")}
# Of a Core 2 it counts these encodings.
COUNTED_BY_CORE2 = {(int(code, 16), int(umask, 16)) for code, umask in
                    re.findall(r"^NHM_EVENT_OF\(OF_CORE2, (0x\w+), (0x\w+)",
                               (ROOT / "user/machine/src/nhm/nhm_events.inc").read_text("utf-8"), re.M)}
WITH_CORE2 = ("core2", "xeon-7400")


def names_of(formula):
    return list(dict.fromkeys(NAME.findall(formula)))


@pytest.mark.parametrize("name", CYCLES)
def test_the_whole_has_what_retires_and_what_stalls_as_its_parts(name, compiled):
    shares = compiled.by_name("share", name)
    assert [share["name"] for share in shares.values() if not share["parent"]] == ["cycles"]
    assert [share["name"] for share in shares.values() if share["parent"] == "cycles" and not share["beside"]] == ["retiring", "stalled"]


def test_the_events_of_a_share_fit_the_counters_with_those_of_the_whole(cpu, compiled):
    """Only those of a difference may need the same counter: they are counted one after the other."""
    shares = compiled.list("share", cpu)
    whole = [name for share in shares if not share["parent"] for name in names_of(share["formula"])]
    for share in shares:
        names = names_of(share["formula"])
        assert fit_together(compiled, cpu, dict.fromkeys(whole + names)) or " - " in share["formula"] and all(
            fit_together(compiled, cpu, dict.fromkeys([*whole, name])) for name in names), share["name"]


@pytest.mark.parametrize("name", WITH_CORE2)
def test_a_core_2_executes_or_stalls_and_its_marks_are_those_of_its_machine(name, compiled):
    shares = compiled.by_name("share", name)
    assert [share["name"] for share in shares.values() if share["parent"] == "cycles" and not share["beside"]] == ["executing", "stalled"]
    events = compiled.by_name("event", name)
    for share in shares.values():
        counted = {(int(events[event]["config"]) & 0xFF, int(events[event]["config"]) >> 8 & 0xFF) for event in names_of(share["formula"])}
        assert share["unmodelled"] == bool(counted - COUNTED_BY_CORE2), share["name"]


@pytest.mark.parametrize("name", CYCLES)
def test_a_share_is_marked_as_unmodelled_if_the_emulated_machine_lacks_one_of_its_events(name, compiled):
    for share in compiled.list("share", name):
        assert share["unmodelled"] == any(event in NOT_MODELLED for event in names_of(share["formula"])), share["name"]


@pytest.mark.parametrize("name", SANDYBRIDGES)
def test_sandy_bridges_slots_have_four_parts_that_add_up_to_all(name, compiled):
    shares = compiled.by_name("share", name)
    parts = [share["name"] for share in shares.values() if share["parent"] == "slots" and not share["beside"]]
    assert set(parts) == {"retiring", "bad_speculation", "frontend_bound", "backend_bound"}
    # Any counts do: the formulas have all terms twice, with opposite signs, but for the slots themselves.
    counts = {event: number**2 + 7 for number, event in enumerate(sorted({event for part in parts for event in names_of(shares[part]["formula"])}))}
    assert sum(value(shares[part]["formula"], counts) for part in parts) == 4 * counts["CPU_CLK_UNHALTED.THREAD"]


def test_no_identity_needs_what_the_emulated_machine_does_not_count(cpu, compiled):
    for identity in compiled.list("identity", cpu):
        assert not NOT_MODELLED & {*names_of(identity["left"]), *names_of(identity["right"])}, identity["name"]
