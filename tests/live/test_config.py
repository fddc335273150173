# SPDX-License-Identifier: GPL-2.0-only
"""The file that nhmtap run reads. Each mistake is reported with its place, the reason and the
correction. A file whose structure is wrong is refused by the schema as well as by the program."""
import functools
import json
import os
import re
import subprocess

import jsonschema
import manual
import pytest
from records import NHMTAP, parse
from sessions import config_schema, faults, write

GOOD = {"name": "a", "command": "stat", "event": "page-faults", "cpu": "0"}


def good(**members):
    return {"activities": [{**GOOD, **members}]}


def check(nhmtap, path, *words, **options):
    return nhmtap("run", "--check", path, *words, **options)


def accepts(config):
    return config_schema().is_valid(config)


# --- mistakes -------------------------------------------------------------------------------------

TARGET = 'add "all_cpus": true, "pid", "tid", "cgroup", "container" or "cpu"; or: nhmtap run CONFIG -- COMMAND'

# The file, the JSON pointer, what is wrong, what would be right.
SHAPE = {
    "a list": ([], "the whole", "it takes an object", ""),
    "nothing": ({}, "/activities", "it takes a list of 1 to 64 activities", ""),
    "no activities": ({"activities": []}, "/activities", "it takes a list of 1 to 64 activities", ""),
    "activities that are none": ({"activities": "stat"}, "/activities", "it takes a list of 1 to 64", ""),
    "65 activities": ({"activities": [{**GOOD, "name": f"a{i}"} for i in range(65)]}, "/activities",
                      "it takes a list of 1 to 64 activities", ""),
    "an activity that is none": ({"activities": [GOOD, 3]}, "/activities/1", "it takes an object", ""),
    "an unknown member": ({**good(), "output": []}, "/output", "there is no such member",
                          "did you mean outputs? nhmtap schema config shows all"),
    "an unknown member of an activity": (good(interval=3), "/activities/0/interval", "there is no such member",
                                         "did you mean interval_ms"),
    "a long form of a member": ({**good(command="profile", event="cpu-clock", frequency=99)}, "/activities/0/frequency", "there is no such member",
                                "did you mean freq"),
    "a member that another command has": (good(top=3), "/activities/0/top", "there is no such member", ""),
    "an option of the command line alone": (good(format="json"), "/activities/0/format",
                                            "there is no such member", ""),
    "a member whose name is to be escaped": (good(**{"a/b~c": 3}), "/activities/0/a~1b~0c",
                                             "there is no such member", ""),
    "no name": ({"activities": [{"command": "stat", "cpu": "0"}]}, "/activities/0/name",
                "it is missing; it takes a name of 1 to 64 letters, digits", ""),
    "an empty name": (good(name=""), "/activities/0/name", "it takes a name of 1 to 64", ""),
    "a name with a blank": (good(name="a b"), "/activities/0/name", "it takes a name of 1 to 64", ""),
    "a name that is too long": (good(name="a" * 65), "/activities/0/name", "it takes a name of 1 to 64", ""),
    "the session's own name": (good(name="session"), "/activities/0/name", "other than session, not \"session\"", ""),
    "no command": ({"activities": [{"name": "a", "cpu": "0"}]}, "/activities/0/command",
                   "it is missing; it takes one of analyze, branch, mem, offcore, profile, stat", ""),
    "an unknown command": (good(command="stta"), "/activities/0/command", "it takes one of analyze, branch, mem, offcore, profile, stat, stream, not \"stta\"",
                           "did you mean stat?"),
    "a command that measures nothing": (good(command="list"), "/activities/0/command",
                                        "it takes one of analyze, branch, mem, offcore, profile, stat, stream, not \"list\"", ""),
    "a text for a number": (good(interval_ms="10"), "/activities/0/interval_ms", "it takes a whole number", ""),
    "a fraction": (good(interval_ms=1.5), "/activities/0/interval_ms", "it takes a whole number", ""),
    "a number that is too small": (good(interval_ms=0), "/activities/0/interval_ms",
                                   "it takes a whole number from 1 to 86400000", ""),
    "a number that is too large": (good(interval_ms=86400001), "/activities/0/interval_ms",
                                   "it takes a whole number from 1 to 86400000", ""),
    "a delay that is none": (good(delay_ms=-2), "/activities/0/delay_ms", "it takes a whole number from 0", "-1"),
    "no time": (good(duration_s=0), "/activities/0/duration_s", "it takes seconds, more than 0", ""),
    "a number for a text": (good(pid=1), "/activities/0/pid", "it takes a text", ""),
    "a number for true or false": (good(all_cpus=1), "/activities/0/all_cpus", "it takes true or false", ""),
    "a number for events": (good(event=3), "/activities/0/event", "it takes a text, or a list of texts", ""),
    "a number among events": (good(event=["cs", 3]), "/activities/0/event", "it takes a text, or a list", ""),
    "a word that is not one of those": (good(command="mem", side="x"), "/activities/0/side",
                                        "there is no such side", "it takes one of: u, k"),
    "a retry that is neither": (good(retry=1), "/activities/0/retry", "it takes true or false", ""),
    "no outputs": ({**good(), "outputs": []}, "/outputs", "it takes a list of 1 to 16 outputs", ""),
    "an output that is none": ({**good(), "outputs": ["x"]}, "/outputs/0", "it takes an object", ""),
    "an unknown member of an output": ({**good(), "outputs": [{}, {"pth": "x"}]}, "/outputs/1/pth",
                                       "there is no such member", "did you mean path"),
    "a path that is none": ({**good(), "outputs": [{"path": 3}]}, "/outputs/0/path", "it takes a text", ""),
    "an unknown format": ({**good(), "outputs": [{"format": "jsn"}]}, "/outputs/0/format",
                          "there is no such format", "formats: "),
    "no memory": ({**good(), "limits": {"memory": "0M"}}, "/limits/memory", "it takes a size as a text from 1M on", ""),
    "no share of a CPU": ({**good(), "limits": {"cpu_share": "0.0%"}}, "/limits/cpu_share", "it takes a share of one CPU", ""),
    "no activity for an output": ({**good(), "outputs": [{"activities": []}]}, "/outputs/0/activities",
                                  "it takes a list of names", ""),
    "an attribute that is no text": ({**good(), "resource": {"service.name": 3}}, "/resource/service.name",
                                     "it takes a text", ""),
    "an attribute's name": ({**good(), "resource": {"Service": "x"}}, "/resource/Service",
                            "it takes an attribute's name of lower-case letters", ""),
    "an attribute that is nhmtap's own": ({**good(), "resource": {"process.pid": "1"}}, "/resource/process.pid",
                                          "that nhmtap does not find out itself", ""),
    "an unknown limit": ({**good(), "limits": {"name_bytes": 1 << 20}}, "/limits/name_bytes",
                         "there is no such member", "did you mean names_bytes"),
    "a limit that is too small": ({**good(), "limits": {"names_bytes": 3}}, "/limits/names_bytes",
                                  "it takes a whole number from 1048576 on", ""),
    "a control that is none": ({**good(), "control": 3}, "/control", "it takes fifo:CTL", ""),
    "a control that is no FIFO": ({**good(), "control": "ctl"}, "/control", "it takes fifo:CTL", ""),
}

# Mistakes that no schema can express.
MEANING = {
    "one name twice": ({"activities": [GOOD, GOOD]}, "/activities/1/name", "another activity has the name 'a'",
                       "give each a name of its own"),
    "no target": ({"activities": [{"name": "a", "command": "stat"}]}, "/activities/0",
                  "it has no target, and no COMMAND was given", TARGET),
    "a format that no activity writes": ({**good(), "outputs": [{"format": "folded"}]}, "/outputs/0/format",
                                         "it is for profile, mem, branch, and no activity of this output is one of them", "choose another"),
    "a format that an activity of another output writes": (
        {"activities": [GOOD, {"name": "b", "command": "profile", "all_cpus": True}], "outputs": [
            {"format": "folded", "path": "x", "activities": ["a"]}, {"format": "folded", "path": "y", "activities": ["b"]}]},
        "/outputs/0/format", "no activity of this output is one of them", "choose another"),
    "an output of an activity that is not there": ({**good(), "outputs": [{"activities": ["a", "b"]}]},
                                                   "/outputs/0/activities/1", "no activity has this name", ""),
    "a variable that is not set": (good(cpu="${NHMTAP_NOT_SET}"), "/activities/0/cpu",
                                   "the environment has no variable NHMTAP_NOT_SET",
                                   "set it, or write $${NHMTAP_NOT_SET} for the text itself"),
    "a way to send that there is not": ({**good(), "outputs": [{"path": "grpc://host:4317", "format": "otlp"}]}, "/outputs/0/path",
                                        "nothing is sent by grpc://", "write http:// or https://"),
    "an unknown event": ({"activities": [GOOD, {**GOOD, "name": "b", "event": "page-fault"}]},
                         "/activities/1: event 'page-fault'", "there is no event of this name", "page-faults"),
    "an unknown key": (good(command="profile", by="iip"), "/activities/0: option --by 'iip'",
                       "there is no key 'iip'", "keys: ip"),
    "a rate and a period": (good(command="profile", freq=99, count=1),
                            "/activities/0: options --count and --freq", "", "give one of them"),
    "a folder of tables that is not there": ({**good(), "events_dir": "/nowhere"},
                                             "/events_dir: option --events-dir", "it can't be read", ""),
}


def check_refused(done, asked, why, remedy):
    """The mistake is reported on stderr, and also in the stream if one has begun."""
    assert done.status == 1
    assert done.err.startswith(f"nhmtap: CONFIG, {asked}"), done.err
    told = done.err.removeprefix(f"nhmtap: CONFIG, {asked}")
    assert told.startswith((": ", " ")) and why in told
    assert remedy in told.partition(" Next: ")[2] if remedy else True
    for error in [r for r in parse(done.out) if r["type"] == "error"]:
        assert error["asked"].startswith(f"CONFIG, {asked}") and why in error["why"]


@pytest.mark.parametrize("what", SHAPE)
def test_what_the_schema_refuses_is_refused_at_its_place(nhmtap, tmp_path, what):
    config, *told = SHAPE[what]
    check_refused(check(nhmtap, write(tmp_path / "c", json.dumps(config))), *told)
    assert not accepts(config)


@pytest.mark.parametrize("what", MEANING)
def test_what_no_schema_can_see_is_refused_at_its_place(nhmtap, tmp_path, what):
    config, *told = MEANING[what]
    check_refused(check(nhmtap, write(tmp_path / "c", config)), *told)
    assert accepts(config)


def test_a_check_finds_all_mistakes_at_once(nhmtap, tmp_path):
    done = check(nhmtap, write(tmp_path / "c", {
        "activities": [{"name": "a", "command": "profile", "all_cpus": True, "evnt": "x", "top": 0},
                       {"name": "b", "command": "stat", "event": 7, "all_cpus": True},
                       {"command": "mem", "by": "foo"}, {"name": "d", "command": "prfile"}, "x",
                       {"name": "b", "command": "stat", "all_cpus": True}],
        "limits": {"cpu_share": "1x%", "memry": 3},
        "outputs": [{"path": "/tmp/x", "format": "jsn", "activities": ["d"], "types": ["cuont"]}, 5]}))
    told = [line.removeprefix("nhmtap: CONFIG, ").partition(": ")[0] for line in done.err.splitlines()]
    assert sorted(told) == [
        "/activities/0/evnt", "/activities/0/top", "/activities/1/event", "/activities/2/name",
        "/activities/3/command", "/activities/4", "/activities/5/name", "/limits/cpu_share", "/limits/memry",
        "/outputs/0/types/0", "/outputs/1"]
    assert done.status == 1


def test_a_check_finds_all_activities_that_can_not_be_planned(nhmtap, tmp_path):
    done = check(nhmtap, write(tmp_path / "c", {"activities": [
        {"name": name, "command": "stat", "all_cpus": True, "event": event}
        for name, event in (("a", "cycels"), ("b", "page-faults"), ("c", "page-fautls"))]}))
    asked = ["CONFIG, /activities/0: event 'cycels'", "CONFIG, /activities/2: event 'page-fautls'"]
    assert [error["asked"] for error in done.of("error")] == asked and done.status == 1
    assert [line.partition(": there")[0] for line in done.err.splitlines() if line.startswith("nhmtap")] == [
        f"nhmtap: {words}" for words in asked]


@pytest.mark.parametrize("config", ["{}", "[]", '{"activities": 3}', '{"activities": []}', '{"activities": {"a": 1}}',
                                    '{"activities": [3], "outputs": [4]}', '{"activities": [{}], "limits": 4}',
                                    '{"activities": [{"name": 3, "command": 4, "event": {}}], "outputs": [{"path": 3}]}'])
def test_a_check_of_anything_ends_with_a_refusal(nhmtap, tmp_path, config):
    done = check(nhmtap, write(tmp_path / "c", config))
    assert done.status == 1 and all(line.startswith("nhmtap: CONFIG, ") for line in done.err.splitlines())


@pytest.mark.parametrize("what", ["no target", "an unknown event", "no command"])
def test_a_run_refuses_what_its_check_refuses(nhmtap, tmp_path, what):
    config, *told = {**SHAPE, **MEANING}[what]
    check_refused(nhmtap("run", write(tmp_path / "c", config)), *told)


# --- the file itself ------------------------------------------------------------------------------

@pytest.mark.parametrize("text, line, column", [
    ("", 1, 0), ("{", 1, 1), ('{"activities":\n  [,]}', 2, 4), ('{} x', 1, 4), ("{'a': 1}", 1, 2),
    ('{"control": "a", "control": "b"}', 1, 26), ('{"resource": {"a": "b",\n "a": "c"}}', 2, 4),
    ('{"control": "\\u0000"}', 1, 20), ("[" * 5000, 1, 2049),
])
def test_what_is_no_json_is_told_by_line_and_column(nhmtap, tmp_path, text, line, column):
    path = write(tmp_path / "c", text)
    done = check(nhmtap, path)
    assert (done.status, done.out) == (1, "")
    found = re.match(rf"nhmtap: CONFIG '{path}', line (\d+), column (\d+): it is not JSON: .", done.err)
    assert found and int(found[1]) in (line, 0 if text == "" else line) and int(found[2]) == column, done.err


def test_duplicate_members_are_named(nhmtap, tmp_path):
    assert "duplicate object key" in check(nhmtap, write(tmp_path / "c", '{"a": 1, "a": 1}')).err


def test_a_file_that_is_no_utf_8_is_refused(nhmtap, tmp_path):
    (tmp_path / "c").write_bytes(b'{"control": "\xff"}')
    done = check(nhmtap, tmp_path / "c")
    assert done.status == 1 and "it is not JSON" in done.err


def test_a_file_that_is_too_large_is_refused(nhmtap, tmp_path):
    path = write(tmp_path / "c", good())
    os.truncate(path, (1 << 20) + 1)
    assert "it is larger than 1 MiB" in check(nhmtap, path).err
    path.write_text(json.dumps(good()).ljust(1 << 20))
    assert check(nhmtap, path).status == 0


def test_what_is_no_regular_file_is_not_waited_for(nhmtap, tmp_path):
    os.mkfifo(tmp_path / "c")
    for path in (tmp_path / "c", "/dev/zero", tmp_path):
        done = check(nhmtap, path)
        assert done.status == 1 and "it is no regular file" in done.err


def test_a_file_that_is_not_there_is_told(nhmtap, tmp_path):
    done = check(nhmtap, tmp_path / "none")
    assert done.status == 1 and "No such file" in done.err


@pytest.mark.parametrize("words, told", [([], "CONFIG is missing"), (["c", "d"], "run takes one CONFIG")])
def test_the_command_line_takes_one_file(nhmtap, words, told):
    done = nhmtap("run", "--check", *words)
    assert done.status == 1 and told in done.err


# --- what is checked and what is run ----------------------------------------------------------------

FORMATS = ("json", "folded", "pprof", "autofdo", "openmetrics", "otlp", "clickhouse")
PLACES = ("{folder}/x", "{folder}/%t.x", "{folder}/%t.zst", "listen", "http://127.0.0.1:9/x")
OUTPUTS = [*({"format": form, "path": place} for form in FORMATS for place in PLACES),
           *({"path": place} for place in ("tcp:", "tcp:127.0.0.1:99999", "unix:", "https://["))]
FAULTS = {"command": "mem", "event": "page-faults", "all_cpus": True, "count": 100, "interval_ms": 100}
ACTIVITIES = {"plain": {}, "data": {"by": "variable"}, "two events": {"event": "page-faults,minor-faults"}}


@pytest.mark.parametrize("activity", ACTIVITIES)
def test_what_check_accepts_is_run_and_what_it_refuses_is_not(nhmtap, tmp_path, activity):
    refused = set()
    for number, output in enumerate(OUTPUTS):
        output = {**output, "path": output["path"].format(folder=tmp_path)}
        path = write(tmp_path / "c", {"activities": [{"name": "a", **FAULTS, **ACTIVITIES[activity]}], "outputs": [{}, output],
                                      "listen": f"unix:{tmp_path}/socket"})
        checked, run = check(nhmtap, path), nhmtap("run", path, "--", "true")
        assert (checked.status == 1) == (run.status == 1), (output, checked.err, run.err)
        if run.status == 1:
            refused.add(number)
            assert checked.err == run.err
    assert 0 < len(refused) < len(OUTPUTS)


def test_a_compilers_profile_is_refused_with_the_command_that_writes_it(nhmtap, tmp_path):
    """An activity has an interval though its CONFIG names none, so that to leave it out is no way."""
    config = {"activities": [{"name": "a", "command": "branch", "event": "branches"}], "outputs": [{"format": "autofdo", "path": "x"}]}
    check_refused(check(nhmtap, write(tmp_path / "c", config), "--", "true"), "/activities/0", "of one program",
                  "run nhmtap branch by itself")


def test_check_tells_of_each_output_that_is_refused(nhmtap, tmp_path):
    done = check(nhmtap, write(tmp_path / "c", {**good(), "outputs": [{"path": "tcp:"}, {"path": "unix:"}, {"path": "x"}]}), "--", "true")
    assert done.status == 1 and [r["asked"] for r in done.of("error")] == [f"CONFIG, /outputs/{i}/path: option --output '{path}'"
                                                                          for i, path in enumerate(("tcp:", "unix:"))]


def test_check_looks_no_name_up(nhmtap, tmp_path):
    """The collector's name may be known only where the file is for."""
    assert check(nhmtap, write(tmp_path / "c", {**good(), "outputs": [{"path": "tcp:there-is-no-such-host.invalid:1"}]}), "--", "true").status == 0


def test_a_format_decides_only_about_the_activities_that_its_output_is_for(nhmtap, tmp_path):
    """Folded stacks are of one event, and take stacks."""
    plain = {**FAULTS, "name": "plain", "event": "page-faults,minor-faults", "count": 1, "by": "comm"}
    config = {"activities": [{**FAULTS, "name": "stacks", "command": "profile", "count": 1}, plain],
              "outputs": [{}, {"path": f"{tmp_path}/x", "format": "folded", "activities": ["stacks"]}]}
    done = nhmtap("run", write(tmp_path / "c", config), "--", "true")
    assert done.status == 0, done.err
    assert all("stack" not in entry for record in done.of("mem") for entry in record["entries"])
    assert (tmp_path / "x").read_text()
    config["outputs"][1]["activities"] = ["stacks", "plain"]
    assert nhmtap("run", write(tmp_path / "c", config), "--", "true").status == 1


@pytest.mark.parametrize("event", ["page-faults", "cpu-clock"])
def test_folded_stacks_of_two_activities_are_not_added(nhmtap, tmp_path, event):
    """A file or a server's application of folded stacks has one sum for a stack: that of a fault twice, or of faults and ns."""
    one = {**FAULTS, "name": "one", "command": "profile", "count": 1}
    config = {"activities": [one, {**one, "name": "other", "event": event}, {"name": "count", "command": "stat", "event": "page-faults"}],
              "outputs": [{"path": f"{tmp_path}/x", "format": "folded"}]}
    refusal = "/outputs/0", "'one' and 'other' write to it", "an output of its own"
    for place in f"{tmp_path}/x", "http://127.0.0.1:9/ingest?name=app":
        config["outputs"][0]["path"] = place
        check_refused(check(nhmtap, write(tmp_path / "c", config), "--", "true"), *refusal)
    for outputs in ([{"path": f"{tmp_path}/{name}", "format": "folded", "activities": [name, "count"]} for name in ("one", "other")],
                    [{"path": f"{tmp_path}/%t.folded", "format": "folded"}]):
        assert check(nhmtap, write(tmp_path / "c", {**config, "outputs": outputs}), "--", "true").status == 0


# --- variables ------------------------------------------------------------------------------------

@pytest.mark.parametrize("text, value", [
    ("${NHMTAP_X}", "x"), ("a${NHMTAP_X}b${NHMTAP_X}", "axbx"), ("$${NHMTAP_X}", "${NHMTAP_X}"),
    ("$NHMTAP_X", "$NHMTAP_X"), ("${}", "${}"), ("${NHMTAP_X", "${NHMTAP_X"), ("$$", "$$"), ("$", "$"),
    ("${NHMTAP_EMPTY}", ""), ("$$${NHMTAP_X}", "$${NHMTAP_X}"), ("${NHMTAP_TWICE}", "${NHMTAP_X}"),
])
def test_a_variable_stands_for_its_value(nhmtap, tmp_path, text, value):
    config = {**good(), "resource": {"x": text}}
    environment = {**os.environ, "NHMTAP_X": "x", "NHMTAP_EMPTY": "", "NHMTAP_TWICE": "${NHMTAP_X}"}
    done = check(nhmtap, write(tmp_path / "c", config), env=environment)
    assert done.records[0]["resource"]["x"] == value
    assert accepts(config)


def test_a_variables_name_may_be_long(nhmtap, tmp_path):
    name = "V" * 1000
    config = write(tmp_path / "c", good(event="${" + name + "}"))
    done = check(nhmtap, config)
    assert done.status == 1 and f"no variable {name[:100]}" in done.err
    assert check(nhmtap, config, env={**os.environ, name: "page-faults"}).status == 0


def test_a_variables_value_is_judged_as_if_it_stood_there(nhmtap, tmp_path):
    done = check(nhmtap, write(tmp_path / "c", good(event="${E}")), env={**os.environ, "E": "page-faultz"})
    check_refused(done, "/activities/0: event 'page-faultz'", "there is no event", "page-faults")


def test_a_variable_that_is_no_utf_8_is_refused(nhmtap, tmp_path):
    done = check(nhmtap, write(tmp_path / "c", {**good(), "resource": {"x": "${X}"}}),
                 env={**os.environ, "X": b"\xff".decode(errors="surrogateescape")})
    check_refused(done, "/resource/x", "with its variables it is not UTF-8", "")


# --- the schema -----------------------------------------------------------------------------------

def test_the_printed_schema_is_one():
    schema = config_schema().schema
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


EVERYTHING = {
    "$schema": "./config.schema.json",
    "activities": [
        {"name": "counts", "command": "stat", "event": ["page-faults", "cs"], "all_cpus": True, "per": "cpu",
         "interval_ms": 1000, "expect": ["cs>0"], "retry": True, "delay_ms": -1},
        {"name": "cpu-0.x_Y", "command": "profile", "event": "cpu-clock", "freq": 99, "call_graph": True,
         "max_stack": 16, "by": "stack,comm", "top": 5, "cpu": "0", "duration_s": 0.5},
        {"name": "faults", "command": "mem", "event": "page-faults", "count": 1, "by": "page", "tid": "1",
         "interval_count": 3},
    ],
    "outputs": [{}, {"format": "json", "path": "/nowhere/x"}, {"activities": ["counts"], "format": "table"}],
    "resource": {"service.name": "shop", "deployment.environment": "${HOME}"},
    "limits": {"names_bytes": 1 << 24},
    "control": "fifo:ctl,ack",
}


@pytest.mark.parametrize("config", [good(), EVERYTHING, {"activities": [faults("a", "profile", pid="1")]}],
                         ids=["little", "everything", "a process"])
def test_what_the_program_takes_the_schema_takes(nhmtap, tmp_path, config):
    done = check(nhmtap, write(tmp_path / "c", config))
    assert done.status == 0, done.err
    assert accepts(config)
    assert done.records[-1]["reason"] == "checked"


@pytest.mark.parametrize("number", ["1000.0", "1e3", "1E+03"])
def test_a_whole_number_may_be_written_with_an_exponent_or_a_fraction_of_zero(nhmtap, tmp_path, number):
    """JSON Schema 2020-12, 4.2.3: integers are numbers with a zero fractional part."""
    text = json.dumps({**good(interval_ms=0), "outputs": [{"path": "x", "queue_bytes": 8192}]})
    config = write(tmp_path / "c", text.replace('"interval_ms": 0', f'"interval_ms": {number}').replace("8192", "8.192e3"))
    assert accepts(json.loads(config.read_text()))
    printed = json.loads(nhmtap("run", "--print-config", config).out)
    assert printed["activities"][0]["interval_ms"] == 1000 and printed["outputs"][0]["queue_bytes"] == 8192


def test_a_variable_may_be_a_format(nhmtap, tmp_path):
    config = {**good(), "outputs": [{"path": "x", "format": "${FORM}"}]}
    assert accepts(config) and check(nhmtap, write(tmp_path / "c", config), env={**os.environ, "FORM": "flat"}).status == 0


@pytest.mark.parametrize("member", ["count", "freq", "top", "interval_ms", "interval_count", "delay_ms", "duration_s"])
def test_every_number_that_the_program_takes_the_schema_takes(nhmtap, tmp_path, member):
    taken = 0
    for value in (1, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1):
        activity = {"name": "a", "command": "profile", "event": "page-faults", "all_cpus": True, member: value}
        if member == "interval_count":
            activity["interval_ms"] = 1000
        if check(nhmtap, write(tmp_path / "c", {"activities": [activity]})).status == 0:
            taken += 1
            assert accepts({"activities": [activity]}), value
    assert taken == 6 if member == "count" else taken


def options_of(name):
    """The long options that a command's help lists, with or without an argument."""
    said = subprocess.run([NHMTAP, name, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  (?:-\w, |    )--([a-z-]+)", said, re.M))


@pytest.mark.parametrize("name", ["analyze", "branch", "mem", "offcore", "profile", "stat", "stream"])
def test_members_of_an_activity_are_the_commands_options(name):
    members, = [case["properties"] for case in config_schema().schema["$defs"]["activity"]["oneOf"]
                if case["properties"]["command"]["const"] == name]
    other = {"interval": "interval_ms", "delay": "delay_ms", "duration": "duration_s"}
    named = {other.get(option, option.replace("-", "_")) for option in options_of(name)}
    own = {"name", "command", "retry"}
    line_only = {"control", "quiet", "live", "output", "append", "queue", "format", "events_dir", "pmu_events",
                 "help", "verbose", "repeat", "once", "per_cpu", "listen", "machine", "series", "memory", "cpu_share",
                 "temporality", "headers_file", "tls_ca_file", "tls_cert_file", "tls_key_file", "tls_insecure_skip_verify", "where", "no_where", "annotate"}
    assert set(members) - own <= named
    assert named - set(members) <= line_only
    for member in set(members) - {"name", "command", "retry"}:
        assert members[member]["description"]


@functools.cache
def manual_examples():
    text = manual.text_of("nhmtap-config.md")
    return [json.JSONDecoder().raw_decode(text, at.end())[0] for at in re.finditer(r"^ {4}(?=\{$)", text, re.M)]


def test_the_manuals_example_is_a_config(nhmtap, tmp_path):
    examples = manual_examples()
    assert examples
    for config in examples:
        assert accepts(config)
        done = check(nhmtap, write(tmp_path / "c", config), env={**os.environ, "ENVIRONMENT": "test"})
        assert done.status == 0, done.err
