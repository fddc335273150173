# SPDX-License-Identifier: GPL-2.0-only
"""Runs nhmtap and reads its records. Every record is checked against its schema before a test sees
it."""
import collections
import fcntl
import functools
import json
import os
import re
import signal
import subprocess

import callers
import jsonschema

NHMTAP = os.environ.get("NHMTAP", "build/nhmtap")
FILE = os.environ.get("NHMTAP_FILE", NHMTAP)  # differs if callers.py wraps NHMTAP
PROGRAMS = os.environ.get("NHMTAP_PROGRAMS", "build/programs")
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SANITIZED = 99  # the exit status after a sanitizer's report: user/base/memory.c


def sanitized():
    """Whether nhmtap is built with AddressSanitizer."""
    with open(FILE, "rb") as file:
        return b"__asan_init" in file.read()


def program(name):
    """Returns the path of a program of tests/programs."""
    return os.path.join(PROGRAMS, name)


def build_shim(name, folder):
    """Builds a shim of tests/shims in a folder and returns its path."""
    path = os.path.join(folder, f"{name}.so")
    subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", path, os.path.join(HERE, "shims", f"{name}.c")], check=True)
    return path


def held(*command):
    """Wraps a command so that its parent, nhmtap, is stopped while it runs and reads no table."""
    return ["sh", "-c", 'kill -STOP $PPID; "$@"; status=$?; kill -CONT $PPID; exit $status', "held",
            *map(str, command)]


def remember_code():
    """Returns a validator that checks each distinct piece of code once, because entries repeat
    them."""
    seen = set()
    look = jsonschema.Draft202012Validator.VALIDATORS["$ref"]

    def ref(validator, name, instance, schema):
        key = json.dumps(instance) if name.endswith("/$defs/code") else None
        if key and key in seen:
            return
        errors = list(look(validator, name, instance, schema))
        if key and not errors:
            seen.add(key)
        yield from errors
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, {"$ref": ref})


def remember_types(validator):
    """Has a validator look up once what kind of value each of Python's types is, which takes a quarter of its time. Of a float,
    the value decides."""
    look, seen = validator.is_type, {}

    def is_type(self, instance, name):
        kind = type(instance), name
        if kind not in seen or kind[0] is float:
            seen[kind] = look(self, instance, name)
        return seen[kind]
    validator.is_type = is_type
    return validator


Validator = remember_types(remember_code())


def inlined(schema, shared):
    """Returns the schema with the shared definitions of single values in place of references, which take
    a third of the time of a validation."""
    if isinstance(schema, list):
        return [inlined(part, shared) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = shared.get(str(schema.get("$ref")).split("/")[-1], {"properties": {}})
    if not {"properties", "allOf"} & found.keys():
        schema = {**found, **{name: value for name, value in schema.items() if name != "$ref"}}
    return {name: inlined(value, shared) for name, value in schema.items()}


MORE_MEMBERS = {"patternProperties", "dependentSchemas", "additionalProperties"}


def parts_of(schema, shared, keywords):
    """A schema, and those that these keywords of it lead to."""
    below = [schema[name] for name in keywords if name in schema] + [shared.get(str(schema.get("$ref")).split("/")[-1], [])]
    parts = [part for value in below for part in (value if isinstance(value, list) else [value])]
    return [schema] + [found for part in parts for found in parts_of(part, shared, keywords)]


def closed(schema, shared):
    """Returns the schema with its members by name in place of unevaluatedProperties, for which python3-jsonschema validates
    each member once or twice more."""
    if isinstance(schema, list):
        return [closed(part, shared) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("unevaluatedProperties") is False:
        members = {name for part in parts_of(schema, shared, ["allOf"]) for name in part.get("properties", ())}
        for part in parts_of(schema, shared, ["allOf", "anyOf", "oneOf", "if", "then", "else"]):
            assert members >= part.get("properties", {}).keys() and not MORE_MEMBERS & part.keys(), "it depends on the others"
        schema = {**schema, "properties": {**dict.fromkeys(sorted(members), True), **schema.get("properties", {})},
                  "additionalProperties": False}
        del schema["unevaluatedProperties"]
    return {name: closed(value, shared) for name, value in schema.items()}


@functools.cache
def validator(record_type=None):
    schema = json.loads(subprocess.run([NHMTAP, "schema"] + ([record_type] if record_type else []),
                                       stdout=subprocess.PIPE, check=True, text=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    shared = schema["$defs"]["common"]["$defs"]
    return Validator(inlined(closed(schema, shared), shared))


def refuse_constant(text):
    raise ValueError(f"{text} is not JSON")


WHOLE = 2000  # records of a type in one stream that are checked whole
DIGITS = str.maketrans("123456789", "0" * 9)


def form_of(line):
    """A record's text without what tells one sample from another of its form: digits, and the digits of addresses."""
    return re.sub("0x[0-9a-f]+", "0x0", line).translate(DIGITS)


def chosen(records, record_type, **members):
    """Those of a type that have these members."""
    return [r for r in records if r["type"] == record_type and all(r.get(name) == value for name, value in members.items())]


def whole(records):
    """The records with the entries of their further parts in the first one: how many parts a table takes depends on how long its
    entries' texts are."""
    found = []
    for record in records:
        if record.get("part", 1) > 1 and "entries" in record:
            found[-1]["entries"] = found[-1]["entries"] + record["entries"]
        else:
            found.append(dict(record))
    return found


def of_type(records, record_type):
    """Those of a type, each with all of its entries."""
    return whole(chosen(records, record_type))


def summed(pairs):
    """{key: the sum of its numbers}"""
    found = collections.Counter()
    for key, number in pairs:
        found[key] += number
    return dict(found)


def parse_among(said):
    """Returns the records among other lines, checked as by parse()."""
    return parse("".join(f"{line}\n" for line in said.splitlines() if line.startswith("{")))


def parse(text):
    """Returns the records of a stream, each checked against its schema. Of tens of thousands of a type, those after the
    first WHOLE are checked once for each form."""
    records, numbers, forms = [], collections.Counter(), set()
    assert text == "" or text.endswith("\n"), "the last record is cut off"
    for line in text.split("\n")[:-1]:  # splitlines() would also split at U+2028, which JSON allows
        assert len(line.encode()) <= 8192, "a record is longer than 8 KiB"
        record = json.loads(line, parse_constant=refuse_constant)
        numbers[record["type"]] += 1
        form = form_of(line) if numbers[record["type"]] > WHOLE else None
        if form not in forms:
            validator(record["type"]).validate(record)
            if form:
                forms.add(form)
        records.append(record)
    return records


def check_stream(records):
    """Checks what holds for every whole stream: its first and last record, and sums that agree."""
    assert records[0]["type"] in ("start", "error"), "a stream begins with start, or error"
    assert records[-1]["type"] == "end", "a stream ends with end"
    assert [r["seq"] for r in records] == list(range(len(records)))
    assert len({r["run_id"] for r in records}) == 1
    assert records[-1]["records"] == len(records)
    if records[0].get("activity") == "session":
        check_session(records)
    else:
        check_activity(records)
        names = {r.get("activity") for r in records}  # None: it measures nothing, or is older than 2.0.0
        assert len(names) == 1 and names <= {None, records[0].get("command", *names)}


def check_session(records):
    """Checks a session of several activities. The session's own records come first and last. Each
    time that an activity starts, its records lie between a start and an end record."""
    first, last = records[0], records[-1]
    if first["type"] == "error":  # the session could not start
        assert [r["activity"] for r in records] == ["session"] * 2
        return
    assert first["command"] == "run" and last["activity"] == "session"
    own = [r for r in records if r["activity"] == "session" and not r.get("part", 1) > 1]
    assert {r["type"] for r in own[1:-1]} <= {"error", "gap", "heartbeat", "process_context", "reload",
                                            "warning"}
    for name in {r["activity"] for r in records} - {"session"}:
        going = []
        for record in [r for r in records if r["activity"] == name]:
            if record["type"] == "start" and record.get("part", 1) == 1:
                assert not going, f"{name} begins, and has not ended"
            elif not going:
                assert record["type"] == "error", f"{name} has not begun"
                continue
            going.append(record)
            if record["type"] == "end":
                assert "records" not in record
                check_activity(going)
                going = []
        # CONFIG was only checked, or the activity continues in another stream after HUP.
        assert not going or last["reason"] in ("checked", "reloaded"), f"{name} has no end"
        if going and last["reason"] == "reloaded":
            check_activity(going)


def check_activity(records):
    """Checks the records of an activity from its start to its end."""
    assert [r["type"] for r in records].count("start") <= max(
        1, records[0].get("parts", 1)), "it starts once"
    for record in records:
        samples = record.get("samples")
        if samples:
            assert samples["expected"] == samples["aggregated"] + sum(samples["lost"].values())
    for branches in [r for r in records if r["type"] == "branch" and "branches" in r]:
        check_branches(branches, [r for r in records if r["type"] == "branch"
                                  and r["event"] == branches["event"]
                                  and r["start_time"] == branches["start_time"]],
                       records[0]["by"], 32 * os.cpu_count() if "interval_ms" in records[0] else 0)
    for kind in ("profile", "mem"):
        for event in {r["event"] for r in records if r["type"] == kind}:
            check_entries([r for r in records if r["type"] == kind and r["event"] == event])
    for first in [r for r in records if r["type"] == "profile" and "stacks" in r]:
        check_stacks(records, first, [r for r in records if r["type"] == "profile" and
                                      all(r[k] == first[k] for k in ("event", "start_time"))])


def check_branches(first, pieces, by, on_their_way):
    """Each delivered branch is counted in an edge, and each two consecutive branches in a range,
    unless the range is broken or the table was full. on_their_way: how many branches may be off,
    because the end of an interval may come while a stack is being added to a table."""
    assert len(pieces) == first.get("parts", 1)
    told = first["branches"]
    entries = [e for p in pieces for e in p["entries"]] + [first[name] for name in ("rest", "rest_of_ranges") if name in first]
    total = sum(e["count"] for e in entries) + told["broken"] + told["table_full"]
    edges = told["delivered"] if set(by) & {"edge", "function", "callpair", "line", "symbol"} else 0
    if "trace" in first:
        trace = first["trace"]
        assert trace["records"] == told["delivered"]
        assert (trace["status"] == "complete") == (not any(trace["lost"].values()))
        # A thread's first branch, and the first after a gap, have no predecessor.
        assert edges <= total <= edges + (told["delivered"] if "range" in by else 0)
        return
    depths = first["stacks"]["by_depth"]
    assert sum(depth * n for depth, n in enumerate(depths)) == told["delivered"]
    ranges = told["delivered"] - sum(depths[1:]) if "range" in by else 0
    assert abs(total - edges - ranges) <= on_their_way


def check_stacks(records, first, pieces):
    """Checks that every stack consists of frames that were defined before, and that every sample
    has a stack or is counted as one without."""
    stacks, defined = first["stacks"], frames_of(records, first)
    assert stacks["delivered"] + stacks["failed"] + stacks["table_full"] == first["samples"]["aggregated"]
    assert stacks["truncated"] <= stacks["delivered"]
    if "whole" in stacks:  # each walk by tables ends for exactly one reason
        ends = ("whole", "truncated", "no_table", "no_row", "unreadable")
        assert sum(stacks[end] for end in ends) == stacks["delivered"] >= stacks["guessed"]
    assert list(defined) == list(range(len(defined)))
    used = set()
    for entry in (e for p in pieces for e in p["entries"]):
        assert ("stack_lost" in entry) == (not entry["stack"])
        used.update(entry["stack"])
    assert used == set(defined)


def frames_of(records, profile):
    """Returns the frames that the stacks of a profile record consist of: {id: frame}."""
    return {frame["id"]: frame for r in records if r["type"] == "frames" and r["seq"] < profile["seq"]
            and (r["event"], r.get("nth"), r["start_time"]) == (profile["event"], profile.get("nth"), profile["start_time"])
            for frame in r["frames"]}


def check_entries(profiles):
    """Checks that the entries of an interval add up to its number of aggregated samples."""
    for first in [p for p in profiles if p.get("part", 1) == 1]:
        pieces = [p for p in profiles if all(p.get(k) == first.get(k) for k in ("event", "nth", "start_time"))]
        assert len(pieces) == first.get("parts", 1)
        total = sum(e["samples"] for p in pieces for e in p["entries"])
        total += first.get("rest", {"samples": 0})["samples"]
        assert total == first["samples"]["aggregated"]
        if "sources" in first:
            assert total == sum(s["samples"] for s in first["sources"])


class Result:
    """The result of a run: status, out and err (text), and its records. said: the measured
    command's output, if the records went into a file."""

    def __init__(self, status, out, err, said=""):
        assert status != SANITIZED, err
        self.status, self.out, self.err, self.said = status, out, err, said

    @functools.cached_property
    def records(self):
        records = parse(self.out)
        check_stream(records)
        return records

    def of(self, record_type, **members):
        """Returns the records of a type that have these members."""
        if "event" in members:
            members["event"] = callers.name_of(members["event"])
        return chosen(self.records, record_type, **members)

    def one(self, record_type, **members):
        found = whole(self.of(record_type, **members))
        assert len(found) == 1, f"{len(found)} records of type {record_type}: {self.out}{self.err}"
        return found[0]

    def entries(self, kind="profile", **members):
        """Returns the entries with these members, of all records of this type."""
        return [e for p in self.of(kind) for e in p["entries"]
                if all(e.get(name) == value for name, value in members.items())]

    def count(self, event):
        return self.one("count", event=event)["value"]


class Tool:
    def __init__(self):
        self.started = []

    def command(self, *arguments):
        return [NHMTAP, *map(str, arguments)]

    def __call__(self, *arguments, timeout=None, before=(), **options):
        emulated = any(str(argument).startswith("--machine") for argument in arguments)
        timeout = timeout or (570 if emulated else 240)  # several others may want the CPU that the machine needs
        done = subprocess.run([*before, *self.command(*arguments)], capture_output=True, text=True,
                              errors="surrogateescape", timeout=timeout,
                              **({} if "input" in options else {"stdin": subprocess.DEVNULL}), **options)
        return Result(done.returncode, done.stdout, done.stderr)

    def into(self, path, command, *arguments, **options):
        """Runs it with -o: records go into the file, and stdout belongs to the measured command."""
        result = self(command, "-o", path, *arguments, **options)
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return Result(result.status, file.read(), result.err, result.out)

    def start(self, *arguments, before=(), **options):
        """Starts it in the background, with pipes for its streams."""
        process = subprocess.Popen([*before, *self.command(*arguments)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, errors="surrogateescape",
                                stdin=subprocess.DEVNULL, **options)
        # Room for the records that come before finish() reads: a full pipe would delay intervals.
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 1 << 20)
        self.started.append(process)
        return process

    def kill(self):
        """Kills what a failed test left running: it would disturb other tests, and -a samples them
        too."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()

    def attach(self, *arguments, records=1, **options):
        """Starts it and waits for its start record, from which on it counts, or for more records."""
        process = self.start(*arguments, **options)
        began = b""
        while began.count(b"\n") < records:
            byte = os.read(process.stdout.fileno(), 1)  # no more than that: finish() reads the rest
            assert byte, process.stderr.read()
            began += byte
        process.began = began.decode()
        return process

    def finish(self, process, timeout=240):
        out, err = process.communicate(timeout=timeout)
        return Result(process.returncode, getattr(process, "began", "") + out, err)

    def interrupt(self, process):
        """Sends SIGINT, as ^C does, and returns the result."""
        process.send_signal(signal.SIGINT)
        return self.finish(process)
