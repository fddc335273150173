# SPDX-License-Identifier: GPL-2.0-only
"""The lists of what is modelled and of what is not agree with each other, with the
emulator's table and with the tests."""
import os
import re
import subprocess

import known
import nehalem
import test_data_sources
import test_offcore

LIST = os.path.join(nehalem.HERE, "not-modelled.txt")


def lines():
    with open(LIST) as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def events_that_never_happen():
    rows = (line.split(" ", 3)[1:] for line in lines() if line.startswith("event "))
    return {name: (int(code, 16), int(umask, 16)) for code, umask, name in rows}


def emulators_rows():
    with open(os.path.join(nehalem.HERE, "src/nhm/nhm_events.inc")) as f:
        rows = re.findall(r"^NHM_EVENT(?:_OF\(OF_NEHALEM, |\()(0x\w+), (0x\w+), (BITS|EXACT)", f.read(), re.M)
    return [(int(code, 16), int(umask, 16), mode) for code, umask, mode in rows]


def test_the_list_of_events_is_that_of_the_emulator():
    said = subprocess.run([nehalem.HERE + "/src/list-events"], capture_output=True, text=True)
    with open(known.TABLES) as f:
        assert f.read() == said.stdout


def test_no_event_is_both_modelled_and_not():
    assert not set(known.events()) & set(events_that_never_happen())


def test_no_event_that_never_happens_has_a_row_in_the_emulator():
    for name, (code, umask) in events_that_never_happen().items():
        for row_code, row_umask, mode in emulators_rows():
            same = umask & row_umask if mode == "BITS" else umask == row_umask
            assert code != row_code or not same, name


def test_events_that_never_happen_read_zero(guest):
    names = events_that_never_happen()
    spelt = {f"r{umask:02x}{code:02x}:u": name for name, (code, umask) in names.items()}
    for event, count in guest.counts(list(spelt), "count").items():
        assert count == 0, spelt[event]


def test_no_program_promises_an_event_that_never_happens():
    never = events_that_never_happen()
    programs = {name.removesuffix(end) for name in os.listdir(known.SOURCES) for end in (".S", ".c") if name.endswith(end)}
    for name in programs:
        assert not set(known.numbers(name)) & set(never), name


def test_every_data_source_is_tested_or_listed():
    tested = {s for *_, sources in TESTED_SOURCES for s in sources}
    listed = {int(code, 16) for code in re.findall(r"^source (0x\w)", "\n".join(lines()), re.M)}
    assert tested | listed == set(range(16))
    assert not tested & listed


TESTED_SOURCES = [
    ("chains, fill buffers, uncacheable memory", {0x1, 0x2, 0x3, 0x4, 0xC, 0xF}),
    ("another core", {source for _, source, _ in test_data_sources.HANDOVERS}),
    ("another package", set().union(*(row[3] for row in test_data_sources.PACKAGES))),
]


def test_every_offcore_bit_is_tested_or_listed():
    with open(test_offcore.__file__) as f:
        text = f.read()
    listed = re.findall(r"^offcore ([\w|*]+)", "\n".join(lines()), re.M)
    for name in (*test_offcore.REQUESTS, *test_offcore.RESPONSES):
        uses = len(re.findall(rf'"{name}"', text)) - 1
        assert uses > 0 or name in listed, name
