# SPDX-License-Identifier: GPL-2.0-only
"""The texts with which perf tests its own grammar (tools/perf/tests/parse-events.c of Linux 6.1 and 6.12), and the
attrs that perf makes of them. nhmtap makes the same ones, or refuses the text and says what it is.

In facts/perf-parse-events.tsv `attrs` has the events of a text, separated by ';'; a '+' marks a further member
of the group of the event before. Members that aren't named are 0. `refused` is a part of nhmtap's refusal.
tests/live/test_attr_as_perf.py compares the same attrs with those that perf opens."""
import itertools
import json
import subprocess

import hosts
import pytest
from facts import read_tsv
from hypothesis import given, settings
from hypothesis import strategies as st
from records import NHMTAP

MEMBERS = ("type", "config", "config1", "config2", "exclude_user", "exclude_kernel", "exclude_hv", "exclude_host",
           "exclude_guest", "exclude_idle", "precise_ip", "pinned", "exclusive")
# Where perf takes the kernel's generic event for cpu/NAME/, nhmtap takes the driver's code for it, if it has one.
DRIVERS = {0x400000000: 0x3c, 0x400000001: 0xc0, 0x1: 0xc0, 0x5: 0x7f89}

FACTS = read_tsv("perf-parse-events.tsv")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A machine whose CPU has no table, so that only the grammar decides; its PMU has every level of precise
    sampling. With `core` it's hybrid."""
    ordinary = hosts.OTHER_PMU | hosts.pmu("software", 1) | {f"{hosts.EVENT_SOURCE}/cpu/caps/max_precise": "3\n"}
    hybrid = {path.replace("devices/cpu/", "devices/cpu_core/"): text for path, text in ordinary.items()}
    roots = {core: hosts.build(tmp_path_factory.mktemp("machine"), hybrid if core else ordinary)
             for core in (False, True)}
    return lambda text: roots["cpu_core" in text]


def explain(root, text):
    done = subprocess.run([NHMTAP, "explain", "--host-root", root(text), "--format", "json", "--force", "--", text],
                          capture_output=True, text=True, timeout=60)
    if done.returncode:
        return done.stderr
    return [record["event"] for record in map(json.loads, done.stdout.splitlines()) if record["type"] == "event"]


def attrs_of(events):
    """The members of MEMBERS that aren't 0, and whether the event is a further one of its group."""
    numbers = [{name: int(str(event["attr"].get(name, 0)), 0) for name in MEMBERS} for event in events]
    groups = [None, *(event.get("group") for event in events)]
    return [({name: value for name, value in attr.items() if value}, group is not None and group == before)
            for attr, before, group in zip(numbers, groups, groups[1:])]


def wanted(text):
    found = []
    for event in text.split("; "):
        attr = {name: int(value, 0) for name, value in (pair.split("=") for pair in event.lstrip("+").split())}
        found.append(({name: value for name, value in attr.items() if value}, event.startswith("+")))
    return found


def by_driver(events):
    return [((attr | {"type": 4, "config": DRIVERS[attr["config"]]}) if attr["config"] in DRIVERS else attr, member)
            for attr, member in (({"config": 0} | attr, member) for attr, member in events)]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact["text"])
def test_a_text_of_perfs_own_tests_is_what_perf_takes_it_for_or_is_refused_with_the_reason(root, fact):
    found = explain(root, fact["text"])
    if fact["refused"] == "the driver's own code":
        assert [({"config": 0} | attr, member) for attr, member in attrs_of(found)] == by_driver(wanted(fact["attrs"]))
    elif fact["refused"]:
        assert isinstance(found, str) and fact["refused"] in found and "Next: " in found, found
    elif "P" in fact["text"].partition(":")[2]:
        # perf stat gives P no meaning. In nhmtap it's the highest level of what can be sampled precisely.
        assert [attr["type"] if "type" in attr else 0 for attr, _ in attrs_of(found)] == [1, 0]
    else:
        assert attrs_of(found) == wanted(fact["attrs"]), found


def test_the_latency_of_retirement_is_refused_as_what_it_is(root):
    """A modifier of newer versions of perf than the texts are from, as X is, which changes nothing."""
    assert explain(root, "page-faults:uX")[0]["attr"] == explain(root, "page-faults:u")[0]["attr"]
    assert "it is perf's for the latency of retirement" in explain(root, "{page-faults:u,faults}:R")


def test_all_of_perfs_texts_are_there_and_most_are_taken():
    assert len(FACTS) >= 123 and sum(not fact["refused"] for fact in FACTS) >= 57


# --- the rule of a group's modifiers ------------------------------------------------------------------

LETTERS = "ukhGHpIDeSWbX"
SIDES = {"u": "exclude_user", "k": "exclude_kernel", "h": "exclude_hv"}
GUESTS = {"G": "exclude_guest", "H": "exclude_host"}


def add(attr, letters):
    """Adds modifiers to the state of an event, one letter after the other, as perf's own tests have it: what is
    named first leaves out the rest of its kind."""
    sides = any(attr[name] for name in SIDES.values())
    for letter in letters:
        if letter in SIDES:
            attr |= ({} if sides else dict.fromkeys(SIDES.values(), 1)) | {SIDES[letter]: 0}
            sides = True
        if letter in GUESTS:
            attr |= ({} if attr["GH"] else dict.fromkeys(GUESTS.values(), 1)) | {GUESTS[letter]: 0, "GH": True}
        if letter in "up" and not attr["GH"]:
            attr["exclude_guest"] = 1
        attr["precise_ip"] += letter == "p"
        attr |= {"I": {"exclude_idle": 1}, "D": {"pinned": 1}, "e": {"exclusive": 1}}.get(letter, {})


def state(own, of_group, leads):
    attr = dict.fromkeys(MEMBERS[4:], 0) | {"GH": False, "exclude_guest": int(not own)}
    add(attr, own)
    add(attr, of_group if leads else of_group.replace("D", "").replace("e", ""))
    return {name: value for name, value in attr.items() if value and name != "GH"}


def text_of(members, of_group):
    names = itertools.cycle(("page-faults", "cs", "cycles", "instructions"))
    events = ",".join(name + (":" + own if own else "") for name, own in zip(names, members))
    return "{" + events + "}" + (":" + of_group if of_group else "")


MODIFIERS = st.lists(st.sampled_from(LETTERS), unique=True, max_size=5).map("".join).flatmap(
    lambda letters: st.integers(1, 2).map(lambda p: letters.replace("p", "p" * p)))


def groups(letters=""):
    """A group's members' modifiers, and its own. Only a leader may be pinned or exclusive."""
    own = MODIFIERS.map(lambda text: text.translate({ord(letter): None for letter in letters}))
    member = own.map(lambda text: text.replace("D", "").replace("e", ""))
    return st.tuples(st.tuples(own, st.lists(member, max_size=2)).map(lambda pair: [pair[0], *pair[1]]), own).filter(
        lambda group: all((own + group[1]).count("p") <= 3 for own in group[0]))


@settings(max_examples=150, deadline=None)
@given(group=groups("S"))
def test_a_groups_modifiers_are_added_to_those_of_its_members(root, group):
    members, of_group = group
    found = attrs_of(explain(root, text_of(members, of_group)))
    assert [{name: value for name, value in attr.items() if name in MEMBERS[4:]} for attr, _ in found] == [
        state(own, of_group, not i) for i, own in enumerate(members)]


def test_a_group_that_asks_for_more_precision_than_there_is_with_its_member_is_refused(root):
    assert "the group's p are added" in explain(root, "{cycles:pp,instructions}:pp")


def test_a_member_that_is_pinned_or_exclusive_is_refused_with_what_to_write(root):
    for letter in "De":
        assert f"write {letter} behind the group, {{…}}:{letter}" in explain(root, f"{{cycles,instructions:u{letter}}}")


def test_the_highest_precision_stays_when_the_group_has_modifiers(root):
    # perf 6.1 forgets P then, later ones don't.
    assert [attr["precise_ip"] for attr, _ in attrs_of(explain(root, "{cycles:P,instructions:P}:u"))] == [3, 3]


@pytest.mark.parametrize("text", ["cycles :u", "{cycles,cs :k}", "{cycles} :u", "cycles /name=x/"])
def test_a_space_that_perf_overlooks_is_refused_where_it_stands(root, text):
    refusal = explain(root, text)
    assert "there is a space before it" in refusal
    assert refusal.splitlines()[2].index("^") - 2 == max(text.find(" :"), text.find(" /")) + 1


@pytest.mark.parametrize("text, reason", [("{cycles,cs}/name=x/", "a group takes modifiers, and no terms"),
                                          ("{cycles}{cs}", "a ',' between two events is missing here")])
def test_what_follows_a_group_at_once_is_not_said_to_follow_a_space(root, text, reason):
    assert reason in explain(root, text)
