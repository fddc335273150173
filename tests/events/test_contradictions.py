# SPDX-License-Identifier: GPL-2.0-only
"""Where sources disagree, the tables say so."""

import json

from event_tables import ROOT


def test_every_contradiction_quotes_known_sources(cpu, compiled):
    keys = {entry["key"] for entry in json.loads((ROOT / "events/sources.json").read_text("utf-8"))}
    for row in compiled.list("contradiction", cpu):
        assert row["says"] and set(row["says"].split()) <= keys, row["id"]


def test_every_contradiction_says_what_is_done_and_why(cpu, compiled):
    for row in compiled.list("contradiction", cpu):
        assert row["we_do"] and row["why"] and row["subject"], row["id"]


def test_a_contradiction_concerns_events_or_what_is_left_out(cpu, compiled):
    known = {row["name"] for kind in ("event", "register") for row in compiled.list(kind, cpu)}
    aliases = {row["name"] for row in compiled.list("alias", cpu)}
    for row in compiled.list("contradiction", cpu):
        left_out = set(row["names"].split()) - known
        # An alias is neither an event nor left out.
        assert not left_out & aliases, row["id"]


def test_nehalem_ex_explains_the_events_that_it_lacks(compiled):
    lacking = compiled.by_name("event", "nehalem-ep").keys() \
        - compiled.by_name("event", "nehalem-ex").keys()
    row = next(row for row in compiled.list("contradiction", "nehalem-ex")
               if row["id"] == "mem-uncore-retired")
    assert lacking == set(row["names"].split())


def test_westmere_does_not_inherit_what_is_true_of_nehalem_only(compiled):
    ids = {row["id"] for row in compiled.list("contradiction", "westmere-ep")}
    assert not ids & {"offcore-rsp-1", "offcore-bit-11", "fusions-decoded", "model-1f"}
