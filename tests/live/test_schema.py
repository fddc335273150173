# SPDX-License-Identifier: GPL-2.0-only
"""The schemas that the program prints: every record matches its schema, and every required member is really
required."""
import copy
import json
import os
import subprocess

import jsonschema
import pytest
from puppet import command, touched
from records import NHMTAP, WHOLE, form_of, parse, program, validator

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMES = sorted(name.removesuffix(".schema.json")
               for name in os.listdir(os.path.join(ROOT, "schema"))
               if name.endswith(".schema.json") and name != "config.schema.json")
TYPES = [name for name in NAMES if name != "common"]


def printed(*arguments):
    return json.loads(subprocess.run([NHMTAP, "schema", *arguments], check=True, text=True,
                                     stdout=subprocess.PIPE).stdout)


def version():
    with open(os.path.join(ROOT, "schema", "VERSION"), encoding="ascii") as file:
        return file.read().strip()


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """A record of each type that a run writes."""
    out = tmp_path_factory.mktemp("records") / "out"
    found = {}
    for arguments in (["stat", "-e", "cs", "-r", "2", "--expect", "cs>=0", "--", "true"],
                      ["profile", "-e", "page-faults", "-c", "1", "--top", "1", "--by",
                       "ip,comm,pid", "--", "true"],
                      ["profile", "-g", "-e", "page-faults", "-c", "1", "--", "true"],
                      ["stat", "-e", "cycels", "--", "true"]):
        out.unlink(missing_ok=True)  # a refused run would leave it as it is
        subprocess.run([NHMTAP, arguments[0], "-o", out, *arguments[1:]], check=False,
                       stderr=subprocess.DEVNULL)
        for line in out.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            found.setdefault(record["type"], record)
    text = subprocess.run([NHMTAP, "explain", "-F", "99", "cpu-clock:u"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    found["event"] = json.loads(text)
    return found


# The types that a run on this machine writes. Tests of other commands cover the others.
SEEN = ["count", "end", "error", "event", "expectation", "frames", "profile", "start", "summary"]


def test_the_whole_is_a_valid_schema():
    schema = printed()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert sorted(schema["$defs"]) == NAMES


@pytest.mark.parametrize("name", TYPES)
def test_each_type_is_a_valid_schema_of_its_version(name):
    schema = printed(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"].split("/")[-2:] == [version(), f"{name}.schema.json"]
    assert schema["properties"]["type"] == {"const": name}


def test_common_is_no_type():
    done = subprocess.run([NHMTAP, "schema", "common"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize("name", SEEN)
def test_each_record_satisfies_its_own_schema_and_the_whole(records, name):
    validator(name).validate(records[name])
    validator().validate(records[name])
    assert records[name]["schema_version"] == version()


@pytest.mark.parametrize("name", SEEN)
def test_no_record_satisfies_the_schema_of_another_type(records, name):
    for other in SEEN:
        assert validator(other).is_valid(records[name]) == (other == name)


def objects(value, path=()):
    """The paths of all objects in a record whose members have fixed names."""
    if isinstance(value, dict):
        if path[-1:] != ("why",):  # that of explain has a reason for each field
            yield path
        for name, member in value.items():
            yield from objects(member, (*path, name))
    elif isinstance(value, list):
        for i, member in enumerate(value):
            yield from objects(member, (*path, i))


def at(record, path):
    for step in path:
        record = record[step]
    return record


@pytest.mark.parametrize("name", SEEN)
def test_every_object_refuses_an_unknown_member(records, name):
    for path in objects(records[name]):
        record = copy.deepcopy(records[name])
        at(record, path)["nobody_knows_this"] = 1
        assert not validator(name).is_valid(record), f"{path} takes anything"


@pytest.mark.parametrize("name", SEEN)
def test_every_required_member_is_missed(records, name):
    schema = printed(name)
    envelope = [] if name == "event" else ["schema_version", "time", "run_id", "seq"]
    for member in [*schema["required"], *envelope]:
        record = copy.deepcopy(records[name])
        del record[member]
        assert not validator(name).is_valid(record), f"nothing misses {member}"


@pytest.mark.parametrize("name, member, wrong", [
    ("count", "value", -1), ("count", "value", 1.5), ("count", "value", "1"),
    ("count", "status", "maybe"), ("count", "time", "yesterday"), ("count", "run_id", "1"),
    ("count", "seq", -1), ("start", "command", "banana"), ("end", "reason", "boredom"),
    ("error", "errno", "EACCES (13)"), ("error", "why", ""), ("profile", "entries", {}),
    ("start", "time", "2026-01-31T23:59:59Z")])
def test_a_wrong_value_is_refused(records, name, member, wrong):
    record = copy.deepcopy(records[name])
    assert member in record or name == "error"
    record[member] = wrong
    assert not validator(name).is_valid(record)


def test_a_count_that_never_ran_may_not_be_scaled(records):
    record = copy.deepcopy(records["count"]) | {
        "status": "not_counted", "running_ns": 0, "why": "its counter was taken"}
    assert not validator("count").is_valid(record)
    del record["scaled"]
    assert validator("count").is_valid(record)


def test_only_a_later_part_may_leave_out_what_the_first_has(records):
    record = copy.deepcopy(records["profile"])
    for member in ("samples", "value", "enabled_ns", "running_ns"):
        del record[member]
    assert not validator("profile").is_valid(record)
    assert not validator("profile").is_valid(record | {"part": 1, "parts": 2})
    assert validator("profile").is_valid(record | {"part": 2, "parts": 2})


# --- long records and strange bytes ---------------------------------------------------------------


def test_a_long_profile_is_cut_into_records_of_eight_kibibytes_at_most(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", "-e", "page-faults", "-c", "1", "--by",
                         "tid,ip,comm", "--", *command(*["thread=1"] * 300, "exit=0"))
    parts = result.of("profile")
    assert len(parts) > 1
    assert [part["part"] for part in parts] == list(range(1, len(parts) + 1))
    assert {part["parts"] for part in parts} == {len(parts)}
    assert all("samples" not in part for part in parts[1:])
    # Nothing is lost at a cut, and the order is kept.
    where = touched(result.said)
    assert sum(1 for e in result.entries() if where(e["ip"])) == 301
    samples = [entry["samples"] for part in parts for entry in part["entries"]]
    assert samples == sorted(samples, reverse=True)
    # All lines but the last are full: the next entry would not have fitted.
    lines = [line for line in result.out.splitlines() if '"type":"profile"' in line]
    assert all(len(line) > 7600 for line in lines[:-1])


def test_a_start_with_many_events_is_cut_too(nhmtap):
    result = nhmtap("stat", "-e", ",".join(["page-faults:u"] * 150), "--", "true")
    starts = result.of("start")
    assert len(starts) > 1
    assert sum(len(start["events"]) for start in starts) == 150


def test_a_long_command_line_is_cut_and_says_so(nhmtap):
    result = nhmtap("stat", "-e", "cs", "--", "true", *["argument"] * 5000)
    target = result.one("start")["target"]
    assert target["arguments_cut"] is True
    assert 10 < len(target["process.command_args"]) < 5000


def test_a_very_long_argument_is_cut(nhmtap):
    target = nhmtap("stat", "-e", "cs", "--", "true", "x" * 100000).one("start")["target"]
    assert target["process.command_args"][0] == "true"
    assert set(target["process.command_args"][1]) == {"x"}
    assert target["arguments_cut"] is True


@pytest.mark.parametrize("raw, shown", [
    (b"plain", "plain"), ("ümlaut".encode(), "ümlaut"), ("日本".encode(), "日本"),
    (b"a\xffb", "a\ufffdb"), (b"\xc3", "\ufffd"), (b"a\xc3(", "a\ufffd("),
    (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),  # a surrogate: RFC 3629 forbids it
    (b"\xc0\xaf", "\ufffd\ufffd"),  # an overlong "/"
    (b"\xf4\x90\x80\x80", "\ufffd" * 4),  # beyond U+10FFFF
    (b'a"b\\c', 'a"b\\c'), (b"a\nb\tc\x01", "a\nb\tc\x01"), ("\u2028".encode(), "\u2028"),
    (b"\x7f", "\x7f"), (b"\xf0\x9f\x92\xa9", "\U0001f4a9")])
def test_any_bytes_in_argv_and_comm_become_text(nhmtap, tmp_path, raw, shown):
    result = nhmtap.into(tmp_path / "out", "profile", "-e", "page-faults", "-c", "1", "--by",
                         "comm,ip", "--", "env", "--", *command("name=" + raw.hex(), "faults=50"), )
    where = touched(result.said)
    assert sum(e["samples"] for e in result.entries(comm=shown) if where(e["ip"])) == 50
    done = subprocess.run([os.fsencode(NHMTAP), b"stat", b"-e", b"cs", b"--", b"true", raw],
                          capture_output=True, check=True)
    start = json.loads(done.stdout.split(b"\n")[0])
    assert start["target"]["process.command_args"] == ["true", shown]


def test_a_wrong_record_among_very_many_is_noticed(nhmtap, tmp_path):
    """Of the last ones only the forms are checked: records.py."""
    text = nhmtap.into(tmp_path / "out", "stream", "-e", "page-faults:u", "-c", "1", "--fields", "addr,comm", "--",
                       program("pages"), WHOLE + 100).out
    lines = text.splitlines(keepends=True)
    assert len(set(map(form_of, lines[-50:-10]))) < 20
    for member, other in ((b'"sample_time":"20', b'"sample_time":"x20'), (b'"address":"0x', b'"address":"'), (b'"comm":', b'"name":')):
        wrong = lines[-10].encode().replace(member, other).decode()
        assert wrong != lines[-10]
        with pytest.raises(jsonschema.ValidationError):
            parse("".join([*lines[:-10], wrong, *lines[-9:]]))


def test_numbers_are_written_the_same_in_every_locale(nhmtap):
    environment = os.environ | {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}
    result = nhmtap("stat", "-e", "page-faults", "-r", "2", "--", "true", env=environment)
    assert isinstance(result.one("summary")["mean"], float)


def test_the_times_of_a_stream_never_go_back(nhmtap):
    records = nhmtap("stat", "-e", "cs,page-faults", "-I", "20", "--", "sleep", "0.2").records
    times = [record["time"] for record in records]
    assert times == sorted(times)


def test_every_run_has_an_id_of_its_own(nhmtap):
    ids = {nhmtap("stat", "-e", "cs", "--", "true").one("end")["run_id"] for _ in range(5)}
    assert len(ids) == 5


def test_the_start_record_says_who_writes_it(nhmtap):
    start = nhmtap("stat", "-e", "cs", "--", "true").one("start")
    assert start["resource"]["host.name"] == os.uname().nodename
    assert start["resource"]["host.arch"] == "amd64"
    assert start["host"]["kernel"] == os.uname().release
    assert start["host"]["cpus_online"] == os.sysconf("SC_NPROCESSORS_ONLN")
    assert subprocess.run([NHMTAP, "--version"], capture_output=True, text=True,
                          check=True).stdout.split()[-1] == start["version"]
