# SPDX-License-Identifier: GPL-2.0-only
"""Profiles for OpenTelemetry, read back by a reader made from the published fields."""
import collections
import json
import os
import subprocess

import cgroups
import otlp_profiles
import pytest
from otlp import Receiver
from puppet import Puppet, command
from records import Result, program
from sessions import Session, faults

CALLS = os.path.abspath(program("calls"))
EVERY_FAULT = ["-e", "page-faults", "-c", "1"]
STEPS = ["graph=300", "deep=20,50", "plain=30"]
PATH = "/v1development/profiles"


def run(nhmtap, folder, *options, activity="profile", steps=STEPS):
    """Returns the records of a run, and its message in protobuf and in JSON."""
    nested, binary, text = (folder / name for name in ("nested", "x.pb", "x.json"))
    result = nhmtap(activity, "-o", nested, "-o", f"otlp-profiles={binary}", "-o", f"otlp-profiles-json={text}",
                    *options, "--", CALLS, *steps)
    assert result.status == 0, result.err
    line, = text.read_text().splitlines()
    return (Result(0, nested.read_text(), ""), otlp_profiles.read(binary.read_bytes()), otlp_profiles.read(line))


def without_ids(message):
    for profile in message.profiles:
        profile.ClearField("profile_id")
    for attribute in message.data.resource_profiles[0].resource.attributes:
        if attribute.key == "service.instance.id":
            attribute.value.string_value = ""
    return message.data


def test_a_cgroup_that_was_made_again_has_its_samples_in_one(nhmtap, tmp_path, cgroup):
    """Stack and attributes tell a profile's samples apart, which the reader checks. Frame pointers,
    since an unwind table may be loaded between the two, and an incomplete stack is another one."""
    path, folder = cgroup
    out, again = tmp_path / "x.json", f"{folder}/again"
    activity = faults("faults", "profile", cgroup=path, all_cpus=True, by="cgroup,symbol", unwind="fp")
    with Session(nhmtap, tmp_path, [activity], outputs=[{}, {"format": "otlp-profiles-json", "path": str(out)}]) as session:
        for _ in range(2):
            os.mkdir(again)
            subprocess.run(cgroups.inside(again, *command("faults=100", "exit=0")), check=True, stdin=subprocess.DEVNULL)
            cgroups.remove(again)
        session.do("snapshot")
        result = session.end()
    touched = [e for e in result.of("profile")[0]["entries"] if e["samples"] >= 100]
    assert [e["cgroup"] for e in touched] == [f"{path}/again"] * 2
    message = otlp_profiles.read(out.read_text().splitlines()[0])
    assert max(sample.values[0] for sample in message.of("page-faults", "samples").samples) >= 200


POD, CONTAINER = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", "0123456789abcdef" * 4


def test_each_sample_says_of_which_container_and_pod_it_is(nhmtap, tmp_path, cgroup):
    path, folder = cgroup
    inside = f"kubepods-burstable-pod{POD.replace('-', '_')}.slice/cri-containerd-{CONTAINER}.scope"
    os.makedirs(f"{folder}/{inside}")
    nested, text = tmp_path / "nested", tmp_path / "x.json"
    with Puppet(before=cgroups.inside(f"{folder}/{inside}")) as puppet:
        process = nhmtap.attach("profile", *EVERY_FAULT, "--by", "cgroup,stack", "-o", nested, "-o",
                                f"otlp-profiles-json={text}", "-o", "-", "-G", f"{path}/{inside}")
        puppet.do("faults=300")
        result = nhmtap.interrupt(process)
    assert result.status == 0, result.err
    found = Result(0, nested.read_text(), "")
    message = otlp_profiles.read(text.read_text())
    sums = collections.Counter()
    for sample in message.of("page-faults", "samples").samples:
        named = message.attributes(sample)
        sums[named["nhmtap.cgroup"], named["container.id"], named["k8s.pod.uid"], named["container.runtime"]] += sample.values[0]
    own = f"{path}/{inside}", CONTAINER, POD, "containerd"
    assert sums == {own: sum(entry["samples"] for entry in found.entries())} and sums[own] >= 300


def test_protobuf_and_json_say_the_same(nhmtap, tmp_path):
    _, binary, text = run(nhmtap, tmp_path, *EVERY_FAULT)
    assert without_ids(binary) == without_ids(text)


def test_a_receiver_of_1_9_reads_the_json_and_misreads_the_protobuf(nhmtap, tmp_path):
    binary, text = tmp_path / "x.pb", tmp_path / "x.json"
    result = nhmtap("profile", *EVERY_FAULT, "-o", f"otlp-profiles={binary}", "-o", f"otlp-profiles-json={text}", "--", CALLS, *STEPS)
    assert result.status == 0, result.err
    content, line = binary.read_bytes(), text.read_text()

    def values(read):
        return [[list(sample.values) for sample in profile.samples] for resource in read.resource_profiles
                for scope in resource.scope_profiles for profile in scope.profiles]
    right = values(otlp_profiles.read(content).data)
    assert values(otlp_profiles.read_by_1_9(line)) == right and sum(v for p in right for s in p for v in s) > 350
    assert values(otlp_profiles.read_by_1_9(content)) != right


@pytest.mark.parametrize("activity, options, members", [
    ("profile", EVERY_FAULT, {"samples": "samples", "period": "page-faults"}),
    ("profile", ["-e", "page-faults", "-c", "7", "--by", "stack,pid,tid,comm,cpu"],
     {"samples": "samples", "period": "page-faults"}),
    ("profile", [*EVERY_FAULT, "--top", "2"], {"samples": "samples", "period": "page-faults"}),
    ("profile", ["-F", "1000"], {"samples": "samples", "period": "cpu"}),
    ("mem", [*EVERY_FAULT, "--by", "stack,page"], {"samples": "samples", "period": "page-faults"}),
])
def test_the_sums_are_those_of_the_records(nhmtap, tmp_path, activity, options, members):
    result, message, _ = run(nhmtap, tmp_path, *options, activity=activity, steps=[*STEPS, "spin=100"])
    parts = result.of(activity)
    record = parts[0]
    entries = [entry for part in parts for entry in part["entries"]] + [p["rest"] for p in parts if "rest" in p]
    for member, kind in members.items():
        assert message.total(record["event"], kind) == sum(entry[member] for entry in entries)
    account = message.attributes(message.profiles[0])
    assert account["nhmtap.samples.aggregated"] == record["samples"]["aggregated"] == \
        message.total(record["event"], "samples")
    assert account["nhmtap.samples.lost.table_full"] == 0
    assert message.type(message.profiles[0])[0] == members["period"]  # viewers show the first profile


def test_each_way_through_the_calls_is_a_stack(nhmtap, tmp_path):
    _, message, _ = run(nhmtap, tmp_path, *EVERY_FAULT)
    found = collections.Counter()
    for sample in message.of("page-faults", "page-faults").samples:
        stack = message.stack(sample)
        found[stack[stack.index("main"):] if "main" in stack else ()] += sample.values[0]
    assert found["main", "graph", "left", "middle", "touch"] == 300
    assert found["main", "graph", "right", "middle", "touch"] == 600
    assert found["main", *["down"] * 20, "middle", "touch"] == 50
    assert found["main", "touch"] == 30


@pytest.mark.parametrize("options, kind, period", [
    (EVERY_FAULT, ("page-faults", "count"), 1),
    (["-e", "page-faults", "-c", "7"], ("page-faults", "count"), 7),
    (["-e", "cpu-clock:u", "-F", "1000"], ("cpu", "nanoseconds"), 1000000),
])
def test_the_period_is_the_distance_of_samples(nhmtap, tmp_path, options, kind, period):
    _, message, _ = run(nhmtap, tmp_path, *options, steps=["graph=100", "spin=300"])
    for profile in message.profiles:
        assert message.type(profile, "period_type") == kind and profile.period == period


WAYS = {"period": ["-c", "7"], "frequency": ["-F", "2000"], "share": ["-c", "1", "--cpu-share", "1%"]}


@pytest.mark.parametrize("event", ["page-faults:u", "cpu-clock"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("activity, keys", [("profile", "stack,pid,tid,comm,cpu"), ("mem", "stack,page,comm")])
def test_each_interval_has_what_its_records_have(nhmtap, tmp_path, activity, keys, way, event):
    """Sums by all keys, periods, times, and what was lost. The message's own rules are the reader's."""
    ways = {**WAYS, "share": ["-F", "4999", "--cpu-share", "0.1%"]} if event == "cpu-clock" and way == "share" else WAYS
    ways = {**ways, "period": ["-c", "1000000"]} if event == "cpu-clock" else ways
    if activity == "mem" and event == "cpu-clock":
        keys = "stack,comm"
    nested, text = tmp_path / "nested", tmp_path / "x.json"
    result = nhmtap(activity, "-e", event, *ways[way], "--by", keys, "-I", "60", "--top", "5", "-o", nested, "-o", f"otlp-profiles-json={text}", "--",
                    CALLS, "graph=300", "spin=100", "deep=20,3000", "spin=100")
    assert result.status == 0, result.err
    records = Result(0, nested.read_text(), "").records
    messages = [otlp_profiles.read(line) for line in text.read_text().splitlines()]
    wanted = otlp_profiles.of_records(records)
    assert otlp_profiles.of_messages(messages) == wanted
    assert len({at for at, _, _ in wanted}) > 1 and sum(profile["sums"].total() for profile in wanted.values()) > 10
    resource = records[0]["resource"] | {"service.instance.id": records[0]["run_id"]}
    assert all(resource.items() <= message.resource.items() for message in messages)


def test_keys_have_the_names_of_the_semantic_conventions(nhmtap, tmp_path):
    result, message, _ = run(nhmtap, tmp_path, *EVERY_FAULT, "--by", "stack,pid,tid,comm,cpu")
    record, = result.of("profile")
    wanted = collections.Counter()
    for entry in record["entries"]:
        wanted[entry["pid"], entry["tid"], entry["comm"], entry["cpu"]] += entry["samples"]
    found = collections.Counter()
    for sample in message.of("page-faults", "samples").samples:
        named = message.attributes(sample)
        named.pop("nhmtap.incomplete", None)
        found[named.pop("process.pid"), named.pop("thread.id"), named.pop("thread.name"),
              named.pop("cpu.logical_number")] += sample.values[0]
        assert not named
    assert found == wanted


def test_each_event_has_profiles_of_its_own(nhmtap, tmp_path):
    _, message, _ = run(nhmtap, tmp_path, "-e", "page-faults:u,minor-faults:u", "-c", "1")
    events = [(message.attributes(p)["nhmtap.event"], message.type(p)[0]) for p in message.profiles]
    assert events == [("page-faults:u", "page-faults:u"), ("page-faults:u", "samples"),
                      ("minor-faults:u", "minor-faults:u"), ("minor-faults:u", "samples")]


@pytest.mark.parametrize("keys", ["stack", "stack,symbol"])
def test_code_of_the_kernel_is_told_from_that_of_programs(nhmtap, tmp_path, keys):
    _, message, _ = run(nhmtap, tmp_path, *EVERY_FAULT, "--by", keys, steps=["graph=10", "kernel=200"])
    kinds = collections.defaultdict(set)
    for location in message.dictionary.location_table[1:]:
        named = message.attributes(location)
        module = message.texts[message.dictionary.mapping_table[location.mapping_index].filename_strindex]
        kinds[named["profile.frame.type"]].add(module)
    assert CALLS in kinds["native"] and not any(module.startswith("/") for module in kinds["kernel"])


@pytest.mark.parametrize("form, media", [("otlp-profiles", "application/x-protobuf"),
                                         ("otlp-profiles-json", "application/json")])
def test_each_interval_of_each_activity_is_a_request(nhmtap, tmp_path, puppet, form, media):
    activities = [faults(name, "profile", pid=str(puppet.pid), by="stack") for name in ("one", "two")]
    with Receiver() as receiver, Session(nhmtap, tmp_path, activities, outputs=[
            {}, {"format": form, "path": receiver.url(PATH)}]) as session:
        for number in (10, 20):
            puppet.do(f"faults={number}")
            session.do("snapshot")
            totals = {}
            while len(totals) < 4:
                request = receiver.next()
                assert request.path == PATH and request.headers["Content-Type"] == media
                message = otlp_profiles.read(request.body.decode() if form.endswith("json") else request.body)
                totals.update({(message.attributes(p)["nhmtap.activity"], message.type(p)[0]): sum(
                    s.values[0] for s in p.samples) for p in message.profiles})
            assert totals == {(name, kind): number for name in ("one", "two") for kind in ("samples", "page-faults")}
        assert session.end().status == 0


def test_rejected_profiles_are_told(nhmtap, tmp_path):
    answer = json.dumps({"partialSuccess": {"rejectedProfiles": "2", "errorMessage": "no"}}).encode()
    with Receiver((200, {"Content-Type": "application/json"}, answer)) as receiver:
        result = nhmtap("profile", *EVERY_FAULT, "-o", tmp_path / "out", "-o",
                        f"otlp-profiles={receiver.url(PATH)}", "--", *command("faults=100", "exit=0"))
    assert result.status == 3 and "2 profiles are rejected: no" in result.err


def test_a_file_in_protobuf_holds_one_message(nhmtap, tmp_path):
    result = nhmtap("profile", *EVERY_FAULT, "-I", "100", "-o", f"otlp-profiles={tmp_path / 'x'}", "--", "true")
    assert result.status == 1 and "%t" in result.err
    result = nhmtap("profile", *EVERY_FAULT, "-I", "100", "-o", tmp_path / "records", "-o",
                    f"otlp-profiles={tmp_path}/%t.pb", "--", CALLS, "graph=100", "spin=300")
    assert result.status == 0, result.err
    records = Result(0, (tmp_path / "records").read_text(), "").of("profile")
    messages = [otlp_profiles.read(path.read_bytes()) for path in tmp_path.glob("*.pb")]
    assert sum(m.total("page-faults", "samples") for m in messages) == sum(r["samples"]["aggregated"] for r in records)
