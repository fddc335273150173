# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap stat counts exactly each event whose count follows from a program's text, alone and in
groups of two, three and four."""
import json

import pytest

import known

PROGRAMS = ("count", "float", "graph", "kinds")


def groups_of(size, events):
    """The events in groups of a size, the last one filled up with the first events. known.groups()
    splits a group with more than two events of the first-level cache, because only two fit."""
    events = list(events)
    events += events[:-len(events) % size]
    for i in range(0, len(events), size):
        yield from known.groups(events[i:i + size])


def event_text(group):
    names = ",".join(f"{known.raw(event)}:u" for event in group)
    return names if len(group) == 1 else "{" + names + "}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_alone_and_in_groups_each_event_is_what_the_programs_text_says(guest, program):
    expected = {k: v for k, v in known.numbers(program).items() if "." in k}
    runs = [group for size in (1, 2, 3, 4) for group in groups_of(size, expected)]
    script = "\n".join(f"nhmtap stat -e '{event_text(group)}' -- {program} | grep '\"type\":\"count\"'"
                       for group in runs)
    said = iter(guest.say(script, paranoid=-1, timeout=600).splitlines())
    for group in runs:
        for event in group:
            record = json.loads(next(said))
            assert record["event"] == f"{known.raw(event)}:u"
            assert (record["status"], record["value"]) == ("counted", expected[event]), (event, group)
            assert record["scaled"] == record["value"]
    assert next(said, None) is None
