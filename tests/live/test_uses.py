# SPDX-License-Identifier: GPL-2.0-only
"""Members of an output, and options for outputs, that would have no effect there are refused, whatever the format and
the destination; those that have one are taken. What has a use for each is written here once more, by hand, from the
manual."""
import itertools
import json
import os

import pytest
from sessions import config_schema, write

METRICS = {"openmetrics", "prometheus", "otlp"}
REQUESTS = METRICS | {"clickhouse", "pprof", "otlp-profiles-json", "folded"}
FORMATS = [None, "json", "flat", "table", *sorted(REQUESTS)]
DESTINATIONS = ["-", "file", "file.%t", "unix:socket", "tcp:127.0.0.1:1", "http://127.0.0.1:1/x", "https://127.0.0.1:1/x", "listen"]

PAIR = {"cert_file": "/cert", "key_file": "/key"}
# The member with its value, where it is refused, and whether an output has a use for it.
MEMBERS = {
    "series": ({"series": 3}, "series", lambda form, to: form in METRICS),
    "delta": ({"temporality": "delta"}, "temporality", lambda form, to: form == "otlp"),
    "cumulative": ({"temporality": "cumulative"}, "temporality", lambda form, to: form == "otlp"),
    "headers": ({"headers_file": "/h"}, "headers_file", lambda form, to: to.startswith("http")),
    "ca": ({"tls": {"ca_file": "/ca"}}, "tls", lambda form, to: to.startswith("https:")),
    "pair": ({"tls": PAIR}, "tls", lambda form, to: to.startswith("https:")),
    "unverified": ({"tls": {"insecure_skip_verify": True}}, "tls", lambda form, to: to.startswith("https:")),
    "queue": ({"queue_bytes": 10000}, "queue_bytes", lambda form, to: to != "listen"),
}
OPTIONS = {
    "--series=3": MEMBERS["series"][2],
    "--temporality=delta": MEMBERS["delta"][2],
    "--headers-file=headers": MEMBERS["headers"][2],
    "--tls-ca-file=/etc/ssl/certs/ca-certificates.crt": MEMBERS["ca"][2],
    "--tls-insecure-skip-verify": MEMBERS["ca"][2],
    "--queue=10000": MEMBERS["queue"][2],
    "--append": lambda form, to: to == "file" and form not in {"openmetrics", "prometheus"},
}


def is_possible(form, to):
    """Whether there is such an output at all."""
    if to.startswith("http"):
        return form in REQUESTS
    return to != "listen" or form in {"openmetrics", "prometheus"}


OUTPUTS = [(form, to) for form in FORMATS for to in DESTINATIONS if is_possible(form, to)]


def batches(cases, size=16):
    """An output that is listen, or stdout in a format of one event, can be there once."""
    waiting = list(cases)
    while waiting:
        batch, paths = [], set()
        for case in list(waiting):
            if len(batch) < size and not (case[1] == "listen" and "listen" in paths):
                batch.append(case)
                paths.add(case[1])
                waiting.remove(case)
        yield batch


@pytest.mark.parametrize("which", MEMBERS)
def test_a_member_is_refused_at_its_place_where_it_has_no_effect(nhmtap, tmp_path, which):
    given, place, has_use = MEMBERS[which]
    seen = set()
    for batch in batches(OUTPUTS):
        outputs = [{"path": to if to in ("-", "listen") or ":" in to else f"{to}{i}", **({"format": form} if form else {}), **given}
                   for i, (form, to) in enumerate(batch)]
        config = {"activities": [{"name": "a", "command": "profile", "call_graph": True, "event": "page-faults", "all_cpus": True}],
                  "outputs": outputs, "listen": "unix:metrics"}
        told = [line for line in nhmtap("run", "--check", write(tmp_path / "c", config)).err.splitlines()
                if "have a use for it" in line or "has a use for it" in line or "nothing waits" in line]
        expected = {f"/outputs/{i}/{place}" for i, case in enumerate(batch) if not has_use(*case)}
        assert {line.removeprefix("nhmtap: CONFIG, ").partition(":")[0] for line in told} == expected
        assert all(" Next: leave it out" in line for line in told)
        for i, output in enumerate(outputs):  # an editor is told the same
            assert config_schema().is_valid({**config, "outputs": [output]}) == has_use(*batch[i]), output
        seen |= {has_use(*case) for case in batch}
    assert seen == {False, True}


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_is_refused_where_no_output_has_a_use_for_it(nhmtap, tmp_path, option):
    for form, to in OUTPUTS:
        (tmp_path / "headers").write_text("X-Key: x\n")
        words = [option, "-o", f"{form}={to}" if form else to, *(["--listen", "unix:metrics"] if to == "listen" else [])]
        done = nhmtap("profile", "-g", "-e", "no-such-event", *words, "--", "true", cwd=tmp_path)
        refused = f"option {option.partition('=')[0]}" in done.err
        assert done.status == 1 and refused != OPTIONS[option](form, to), (words, done.err)
        assert refused or "no-such-event" in done.err, (words, done.err)
        if refused and not OPTIONS[option]("x", "-"):  # one of several outputs suffices
            assert f"option {option.partition('=')[0]}" in nhmtap("stat", *words, "-o", "-", "-e", "no-such-event", "--", "true", cwd=tmp_path).err
        for name in os.listdir(tmp_path):
            os.unlink(tmp_path / name)


def test_one_of_several_outputs_suffices_for_an_option(nhmtap, tmp_path):
    done = nhmtap("stat", "-e", "no-such-event", "--series=3", "--append", "-o", "-", "-o", f"otlp={tmp_path}/x", "--", "true")
    assert "no-such-event" in done.err and "--series" not in done.err
    mixed = nhmtap("stat", "-e", "no-such-event", "--tls-ca-file=/ca", "-o", "otlp=https://127.0.0.1:1/", "-o", "otlp=http://127.0.0.1:1/", "--", "true")
    assert "option --tls-ca-file '/ca'" in mixed.err  # who reads the command line would believe that both are protected


def test_a_format_is_the_default_for_outputs_that_name_none(nhmtap, tmp_path):
    """Who wraps nhmtap gives one, whatever outputs are added."""
    done = nhmtap("stat", "-e", "page-faults", "--format=json", "-o", f"flat={tmp_path}/x", "--", "true")
    assert done.status == 0 and '"type":"flat"' in (tmp_path / "x").read_text()


@pytest.mark.parametrize("outputs", [("-", "-"), ("-", "json=-"), ("otlp=http://127.0.0.1:1/v1/metrics",) * 2, ("flat=tcp:127.0.0.1:1",) * 2,
                                     ("unix:/run/x", "json=unix:/run/x")], ids=" ".join)
def test_an_output_that_would_count_the_same_twice_is_refused(nhmtap, outputs):
    done = nhmtap("stat", "-e", "page-faults", *(f"-o{output}" for output in outputs), "--", "true")
    assert done.status == 1 and not done.out and "another output writes the same records there. Next: leave one out" in done.err


def test_outputs_of_one_place_share_it_if_their_records_or_formats_differ(nhmtap, tmp_path):
    def run(*outputs):
        config = {"activities": [{"name": name, "command": "stat", "event": "page-faults"} for name in "ab"], "outputs": outputs}
        return nhmtap("run", write(tmp_path / "c", config), "--", "true")

    done = run({"activities": ["a"], "types": ["count"]}, {"activities": ["b"]}, {"activities": ["a"], "types": ["end"]})
    assert done.status == 0, done.err
    records = [json.loads(line) for line in done.out.splitlines()]
    assert sorted(r["activity"] for r in records if r["type"] == "count") == ["a", "b"]
    assert run({"activities": ["a"]}, {"activities": ["a"], "format": "flat"}).status == 0
    done = run({"activities": ["a"]}, {"activities": ["b", "a"]})
    assert done.status == 1 and "CONFIG, /outputs/1/path" in done.err and "another output writes the same records" in done.err


# The types, the format, the members of the output, where it is refused.
TYPES = {
    "of no activity": (["count", "profile"], "json", {}, "/outputs/0/types/1"),
    "of another output's activity": (["count", "mem"], "json", {"activities": ["counts"]}, "/outputs/0/types/1"),
    "of no session": (["facility"], "json", {}, "/outputs/0/types/0"),
    "of an activity that the format leaves out": (["count", "mem"], "folded", {}, "/outputs/0/types/0"),
    "of the session, which rows do not have": (["start", "end"], "flat", {}, "/outputs/0/types"),
    "of the session, which stacks do not have": (["warning"], "folded", {}, "/outputs/0/types"),
    "of all": (["count", "metric", "mem", "shared_line", "frames", "start", "end", "error", "warning", "gap", "heartbeat", "hotplug", "reload",
                "target", "process_context"], "json", {}, None),
    "of the session alone": (["error"], "json", {}, None),
    "of the session, which are metrics": (["error", "reload", "warning"], "otlp", {}, None),
    "of stacks": (["mem"], "folded", {}, None),
}


@pytest.mark.parametrize("which", TYPES)
def test_types_that_an_output_never_gets_are_refused(nhmtap, tmp_path, which):
    types, form, members, place = TYPES[which]
    done = nhmtap("run", "--check", write(tmp_path / "c", {
        "activities": [{"name": "counts", "command": "stat", "event": "page-faults", "all_cpus": True},
                       {"name": "loads", "command": "mem", "event": "page-faults", "call_graph": True, "all_cpus": True}],
        "outputs": [{"path": "x", "format": form, "types": types, **members}]}))
    assert done.err.partition(":")[2].partition(":")[0].strip() == (f"CONFIG, {place}" if place else ""), done.err
    assert not place or "Next: " in done.err


@pytest.mark.parametrize("tls, place", itertools.chain(
    [({"cert_file": "/c"}, "cert_file"), ({"key_file": "/k"}, "key_file"), (PAIR, None)],
    [({"ca_file": "/c", "insecure_skip_verify": skips}, "ca_file" if skips else None) for skips in (False, True)]))
def test_members_of_tls_that_need_another_are_refused_without_it(nhmtap, tmp_path, tls, place):
    config = {"activities": [{"name": "a", "command": "stat", "event": "page-faults", "all_cpus": True}],
              "outputs": [{"path": "https://127.0.0.1:1/v1/metrics", "format": "otlp", "tls": tls}]}
    done = nhmtap("run", "--check", write(tmp_path / "c", config))
    assert done.status == (1 if place else 0)
    assert not place or done.err.startswith(f"nhmtap: CONFIG, /outputs/0/tls/{place}: "), done.err
    assert config_schema().is_valid(config) == (not place)


def test_an_editor_takes_a_variable_for_anything():
    config = {"activities": [{"name": "a", "command": "stat", "all_cpus": True}],
              "outputs": [{"path": "${URL}", "format": "${FORMAT}", "series": 3, "tls": {"ca_file": "/ca"}}]}
    config_schema().validate(json.loads(json.dumps(config)))
