# SPDX-License-Identifier: GPL-2.0-only
"""Names from perf's own files (--pmu-events) are encoded as perf encodes them. perf has the files
of its version built in, and PERF_CPUID makes it assume any CPU. nhmtap reads the same files from
the kernel's source. Both get the same PMU in sysfs, and strace shows their system calls. Whether
the kernel grants them does not matter. Each run compares a different random selection of names."""
import json
import os
import random

import hosts
import kernel_source
import pytest
from records import parse
from straced import opened

SEED = random.randrange(1 << 32)
NAMES_OF_EACH = 45

FORMATS = {"event": "config:0-7", "umask": "config:8-15", "edge": "config:18", "pc": "config:19",
           "any": "config:21", "inv": "config:23", "cmask": "config:24-31", "offcore_rsp": "config1:0-63",
           "ldlat": "config1:0-15", "frontend": "config1:0-23"}
# arch/x86/events/amd/core.c
AMD_FORMATS = {"event": "config:0-7,32-35", "umask": "config:8-15", "edge": "config:18", "inv": "config:23",
               "cmask": "config:24-31"}


def core(name="cpu", type_=4, formats=FORMATS, **more):
    return hosts.pmu(name, type_, formats, max_precise=3, **more) | {
        f"{hosts.EVENT_SOURCE}/{name}/cpus": "0-3\n"}


def a_cpu(vendor, family, model, stepping, *pmus, named="cpu"):
    """Returns the PMU, perf's identifier of the CPU, and the machine's files."""
    files = hosts.MACHINE | {"proc/cpuinfo": hosts.cpuinfo(vendor, family, model, stepping)}
    for pmu in pmus:
        files |= pmu
    return named, f"{vendor}-{family}-{model:X}-{stepping:X}", files


CPUS = {
    "haswell": a_cpu("GenuineIntel", 6, 0x3c, 3, core()),
    "goldmont": a_cpu("GenuineIntel", 6, 0x5f, 1, core()),
    "skylakex": a_cpu("GenuineIntel", 6, 0x55, 4, core()),
    "cascadelakex": a_cpu("GenuineIntel", 6, 0x55, 7, core()),
    "icelakex": a_cpu("GenuineIntel", 6, 0x6a, 6, core()),
    "sapphirerapids": a_cpu("GenuineIntel", 6, 0x8f, 4, core()),
    "alderlake": a_cpu("GenuineIntel", 6, 0x97, 2, core("cpu_core"), core("cpu_atom", 10), named="cpu_atom"),
    "amdzen3": a_cpu("AuthenticAMD", 25, 0x21, 0, core(formats=AMD_FORMATS)),
}
WORDS = ("type", "config", "config1", "config2")
pytestmark = pytest.mark.xdist_group("pmu-events")


@pytest.fixture(scope="session")
def pmu_events():
    """tools/perf/pmu-events of the kernel that this perf belongs to."""
    return f"{kernel_source.tools()}/perf/pmu-events"


def listed(nhmtap, root, path):
    """The events of a source as nhmtap list reports them."""
    result = nhmtap("list", "--host-root", root, "--pmu-events", path, "--json")
    assert result.status == 0, result.err
    return [record for record in parse(result.out) if record.get("curated") is False]


def in_namespace(root, *command):
    """A command that sees the PMUs below the root folder."""
    mount = 'mount --bind "$1" /' + hosts.EVENT_SOURCE + ' && shift && exec "$@"'
    return ["unshare", "-m", "sh", "-c", mount, "sh", os.path.join(root, hosts.EVENT_SOURCE), *command]


def attributes(call):
    return [call.attr.get(name, 0) for name in ("type", "config", "config1", "config2")]


def by_perf(root, cpuid, text, output):
    """The events as perf encodes them. On a machine where another PMU has the type, perf would try
    those that it refuses again."""
    calls = opened(in_namespace(root, "perf", "stat", "-e", text, "true"), output, error="ENOENT", PERF_CPUID=cpuid)
    return [[call.attr.get(word, 0) for word in WORDS] for call in calls]


def attribute(event):
    attr = event["attr"]
    return [attr["type"], *(int(str(attr.get(word, 0)), 0) for word in WORDS[1:])]


@pytest.mark.parametrize("cpu", CPUS)
def test_names_are_encoded_as_perf_does(nhmtap, explain, pmu_events, tmp_path, cpu):
    pmu, cpuid, files = CPUS[cpu]
    root = hosts.build(tmp_path / cpu, files)
    records = [record for record in listed(nhmtap, root, pmu_events) if record.get("pmu", pmu) == pmu]
    names = random.Random(f"{SEED} {cpu}").sample(sorted({record["name"] for record in records}), NAMES_OF_EACH)
    text = ",".join(f"{pmu}/{name}/" for name in names)
    theirs = by_perf(root, cpuid, text.lower(), tmp_path / "perf.strace")
    ours = explain("--host-root", root, "--pmu-events", pmu_events, "--format", "json", text)
    assert len(theirs) == len(ours) == NAMES_OF_EACH, f"seed {SEED}"
    wrong = [(name, perf, attribute(event)) for name, perf, event in zip(names, theirs, ours)
             if perf != attribute(event)]
    assert not wrong, f"seed {SEED}"
    assert {(event["source"].split()[1], event["curated"]) for event in ours} == {(cpu, False)}


def test_a_bare_name_is_the_big_cores_where_there_are_two_kinds(explain, pmu_events, tmp_path):
    root = hosts.build(tmp_path / "alderlake", CPUS["alderlake"][2])
    bare, big, small = explain("--host-root", root, "--pmu-events", pmu_events, "--format", "json",
                               "MEM_LOAD_RETIRED.L1_HIT:u,cpu_core/mem_load_retired.l1_hit/u,cpu_atom/inst_retired.any/")
    assert attribute(bare) == attribute(big) == [4, 0x1d1, 0, 0]
    assert attribute(small) == [10, 0xc0, 0, 0]


# --- formats of other tools ---------------------------------------------------------------------

PERFMON = {
    "mapfile.csv": "Family-model,Version,Filename,EventType,Core Type,Native Model ID,Core Role Name\n"
                   "GenuineIntel-6-55-[01234],V9.9,/OLD/events/old_core.json,core,,,\n"
                   "GenuineIntel-6-97,V1.24,/NEW/events/small_core.json,hybridcore,0x20,0x000001,Atom\n"
                   "GenuineIntel-6-97,V1.24,/NEW/events/big_core.json,hybridcore,0x40,0x000001,Core\n"
                   "GenuineIntel-6-97,V1.24,/NEW/events/outside.json,uncore,,,\n",
    "OLD/events/old_core.json": [
        {"EventCode": "0xB7, 0xBB", "UMask": "0x01", "EventName": "FAR.ANSWER", "BriefDescription": "far",
         "SampleAfterValue": "100003", "MSRIndex": "0x1a6,0x1a7", "MSRValue": "0x3FC0408000",
         "CounterMask": "0", "Invert": "0", "AnyThread": "0", "EdgeDetect": "0"},
        {"EventCode": "0x3C", "UMask": "0x00", "EventName": "EDGES", "MSRIndex": "0x00", "MSRValue": "0x00",
         "CounterMask": "1", "Invert": "1", "AnyThread": "1", "EdgeDetect": "1"},
        {"EventCode": "0x00", "UMask": "0x01", "EventName": "INST_RETIRED.ANY", "MSRIndex": "0x00"},
        {"EventCode": "0x01", "UMask": "0x01", "EventName": "OF_A_REGISTER_THAT_HAS_NO_TERM", "MSRIndex": "0x123"},
    ],
    "NEW/events/small_core.json": {"Header": {}, "Events": [{"EventCode": "0x04", "UMask": "0x02", "EventName": "ONE"}]},
    "NEW/events/big_core.json": {"Header": {}, "Events": [{"EventCode": "0x05", "UMask": "0x03", "EventName": "ONE"}]},
}
OF_PERF_LIST = [
    {"Unit": "cpu", "Topic": "cache", "EventName": "l1d.replacement", "EventType": "Kernel PMU event",
     "BriefDescription": "lines", "Encoding": "cpu/event=0x51,period=0x186a3,umask=0x1/"},
    {"Unit": "uncore_imc", "EventName": "reads", "Encoding": "uncore_imc/event=0x4/"},
    {"Unit": "software", "EventName": "cpu-clock"},
    {"MetricName": "ipc", "MetricExpr": "a / b"},
]


def written(folder, files):
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(folder)


def encodings(nhmtap, explain, root, path):
    """Every event of a source: {(PMU, name): config and config1}."""
    found = {}
    for record in listed(nhmtap, root, path):
        pmu = record.get("pmu", "cpu")
        event, = explain("--host-root", root, "--pmu-events", path, "--format", "json", f"{pmu}/{record['name']}/")
        found[pmu, record["name"]] = attribute(event)[1:3]
    return found


def test_perfmons_files_are_read(nhmtap, explain, tmp_path):
    root = hosts.build(tmp_path / "host", CPUS["skylakex"][2])
    path = written(tmp_path / "perfmon", PERFMON)
    assert encodings(nhmtap, explain, root, path) == {
        ("cpu", "FAR.ANSWER"): [0x1b7, 0x3fc0408000], ("cpu", "EDGES"): [0x1a4003c | 1 << 23, 0],
        ("cpu", "INST_RETIRED.ANY"): [0xc0, 0]}
    assert {record["source"] for record in listed(nhmtap, root, path)} == {"perfmon, old_core.json V9.9"}


def test_perfmons_two_kinds_of_cores_are_told_apart(nhmtap, explain, tmp_path):
    root = hosts.build(tmp_path / "host", CPUS["alderlake"][2])
    path = written(tmp_path / "perfmon", PERFMON)
    assert encodings(nhmtap, explain, root, path) == {("cpu_atom", "ONE"): [0x204, 0], ("cpu_core", "ONE"): [0x305, 0]}


def test_what_perf_list_writes_is_read(nhmtap, explain, tmp_path):
    root = hosts.build(tmp_path / "host", CPUS["skylakex"][2])
    path = written(tmp_path, {"list.json": OF_PERF_LIST}) + "/list.json"
    assert encodings(nhmtap, explain, root, path) == {("cpu", "l1d.replacement"): [0x151, 0]}
    record, = listed(nhmtap, root, path)
    assert (record["default_period"], record["source"]) == (0x186a3, "list.json")


@pytest.mark.parametrize("files, below, why", [
    ({}, "/nowhere", "No such file"),
    ({"notes.txt": "none"}, "", "no events of the core"),
    ({"mapfile.csv": "Family-model,Version,Filename,EventType\nGenuineIntel-6-AA,v1,x,core\n"}, "",
     "no row for GenuineIntel-6-55-4"),
    # Each further '+' doubles what regcomp(3) allocates: no memory would be enough for these.
    ({"mapfile.csv": f"Family-model,Version,Filename,EventType\nGenuineIntel-6-5{'5' + '+' * 60},v1,x,core\n"}, "",
     "no row for GenuineIntel-6-55-4"),
    ({"cache.json": "[{"}, "", "cache.json, line 1"),
    ({"mapfile.csv": "GenuineIntel-6-55,v1,nofolder,core\n"}, "", "nofolder can't be read"),
])
def test_what_has_no_events_for_this_cpu_is_refused(nhmtap, tmp_path, files, below, why):
    root = hosts.build(tmp_path / "host", CPUS["skylakex"][2])
    path = written(tmp_path / "files", {"empty": "", **files})
    result = nhmtap("list", "--host-root", root, "--pmu-events", path + below)
    assert result.status == 1
    assert "option --pmu-events" in result.err and why in result.err and "perfmon" in result.err


@pytest.mark.parametrize("at", ["", "/list.json", "/x86/mapfile.csv"])
@pytest.mark.parametrize("kind", ["pipe", "device", "huge"])
def test_what_is_no_plain_file_is_refused_and_not_waited_for(nhmtap, tmp_path, at, kind):
    """Given as the path itself, as a file in the folder, and as the mapfile.csv of a tree."""
    file = tmp_path / f"files{at}"
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        file.write_text("[]", encoding="ascii")
        os.truncate(file, 1 << 40)
    result = nhmtap("list", "--pmu-events", tmp_path / "files", timeout=240)
    assert result.status == 1 and "option --pmu-events" in result.err


def test_its_texts_steer_no_terminal(nhmtap, tmp_path):
    root = hosts.build(tmp_path / "host", CPUS["skylakex"][2])
    events = [{"EventName": "CATS\u009b2J", "BriefDescription": "a\u202egpj", "EventCode": "0xC1"}]
    path = written(tmp_path, {"list.json": events}) + "/list.json"
    for arguments in (["list", "--format", "table"], ["explain", "CATS\u009b2", "--format", "table"],
                      ["explain", "CATS\u009b2J", "--format", "table"]):
        said = nhmtap(*arguments, "--host-root", root, "--pmu-events", path)
        assert r"CATS\u009b2J" in said.out + said.err
        assert "\u009b" not in said.out + said.err and "\u202e" not in said.out + said.err


def test_a_name_that_no_source_has_is_likened_to_those_that_it_has(nhmtap, tmp_path):
    root = hosts.build(tmp_path / "host", CPUS["skylakex"][2])
    path = written(tmp_path / "perfmon", PERFMON)
    result = nhmtap("explain", "--host-root", root, "--pmu-events", path, "FAR.ANSWERS")
    assert result.status == 1 and "did you mean FAR.ANSWER" in result.err


def test_a_curated_table_goes_first(explain, tmp_path):
    root = hosts.build(tmp_path / "host", hosts.NEHALEM)
    path = written(tmp_path, {"x.json": [{"EventName": "INST_RETIRED.ANY_P", "EventCode": "0xC1"},
                                         {"EventName": "ONLY.HERE", "EventCode": "0xC1"}]}) + "/x.json"
    table, file = explain("--host-root", root, "--pmu-events", path, "--format", "json", "INST_RETIRED.ANY_P,ONLY.HERE")
    assert "curated" not in table and attribute(table)[1] == 0x1c0
    assert file["curated"] is False and attribute(file)[1] == 0xc1
