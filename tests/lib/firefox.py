# SPDX-License-Identifier: GPL-2.0-only
"""A reader of the Firefox Profiler's processed profiles that checks what its types (src/types/profile.ts and markers.ts, with
what CHANGELOG-formats.md says of version 48) and its upgraders rely on: the columns of each table, their lengths, that each
index leads somewhere, and that each marker has a schema that knows its fields."""
import json
import re

COLUMNS = {"samples": {"stack", "weight", "time"},
           "markers": {"data", "name", "startTime", "endTime", "phase", "category"},
           "stackTable": {"frame", "prefix", "category", "subcategory"},
           "frameTable": {"func", "address", "inlineDepth", "category", "subcategory", "line", "nativeSymbol", "innerWindowID",
                          "implementation", "column"},
           "funcTable": {"name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"},
           "resourceTable": {"lib", "name", "host", "type"},
           "nativeSymbols": {"libIndex", "address", "name", "functionSize"}}
THREAD = {"processType", "processStartupTime", "processShutdownTime", "registerTime", "unregisterTime", "pausedRanges", "name",
          "isMainThread", "pid", "tid", "stringArray", *COLUMNS}
COUNTER = {"name", "category", "description", "pid", "mainThreadIndex", "samples"}
SCHEMA = {"name", "tooltipLabel", "tableLabel", "chartLabel", "display", "data", "graphs"}
DISPLAY = {"marker-chart", "marker-table", "timeline-overview", "timeline-memory", "timeline-ipc", "timeline-fileio"}
INSTANT, INTERVAL = 0, 1
COMMON = "counts and loads"  # the thread of counters and markers
LIB = {"arch", "name", "path", "debugName", "debugPath", "breakpadId", "codeId"}


def check_indexes(values, length, least=0):
    assert all(isinstance(value, int) and least <= value < length for value in values if value is not None)


def check_markers(thread, schemas, categories):
    markers = thread["markers"]
    check_indexes(markers["name"], len(thread["stringArray"]))
    check_indexes(markers["category"], categories)
    for start, end, phase, data in zip(*(markers[column] for column in ("startTime", "endTime", "phase", "data"))):
        assert start >= 0 and (phase, end) == (INSTANT, None) or phase == INTERVAL and end > start
        fields = {field["key"]: field["format"] for field in schemas[data["type"]]["data"]}
        assert set(data) == {"type", *fields}
        assert all(isinstance(data[key], int if form == "integer" else (int, float)) for key, form in fields.items())


def check_schema(schema):
    fields = {field["key"] for field in schema["data"]}
    labels = "".join(schema[name] for name in ("tooltipLabel", "tableLabel", "chartLabel"))
    assert set(schema) == SCHEMA and set(schema["display"]) <= DISPLAY
    assert all(set(field) == {"key", "label", "format"} and field["format"] in ("integer", "decimal") for field in schema["data"])
    assert set(re.findall(r"\{([^}]*)\}", labels)) <= {"marker.name", *(f"marker.data.{key}" for key in fields)}
    assert all(graph["key"] in fields and graph["type"] in ("bar", "line", "line-filled") for graph in schema["graphs"])


def check_counter(counter, threads):
    assert set(counter) == COUNTER and threads[counter["mainThreadIndex"]]["pid"] == counter["pid"]
    samples = counter["samples"]
    assert set(samples) == {"time", "count", "length"} and len(samples["time"]) == len(samples["count"]) == samples["length"]
    assert samples["time"] == sorted(samples["time"]) and samples["time"][0] >= 0


def check_thread(thread, libs, categories):
    assert set(thread) == THREAD and isinstance(thread["pid"], str) and isinstance(thread["tid"], int)
    for name, columns in COLUMNS.items():
        table = thread[name]
        assert set(table) == columns | {"length"} | ({"weightType"} if name == "samples" else set()), name
        assert {len(table[column]) for column in columns} == {table["length"]}, name
    strings, stacks, frames, functions, resources = (
        thread["stringArray"], thread["stackTable"], thread["frameTable"], thread["funcTable"], thread["resourceTable"])
    assert all(isinstance(text, str) for text in strings) and len(set(strings)) == len(strings)
    check_indexes(thread["samples"]["stack"], stacks["length"])
    check_indexes(stacks["frame"], frames["length"])
    assert all(prefix is None or 0 <= prefix < i for i, prefix in enumerate(stacks["prefix"])), "a parent comes first"
    check_indexes(stacks["category"] + frames["category"], categories)
    check_indexes(frames["func"], functions["length"])
    check_indexes(functions["name"] + functions["fileName"] + resources["name"], len(strings))
    check_indexes(functions["resource"], resources["length"], -1)
    check_indexes(resources["lib"], len(libs))
    times = thread["samples"]["time"]
    assert times == sorted(times) and all(time >= 0 for time in times)
    assert thread["samples"]["weightType"] in ("samples", "tracing-ms")


def read(path):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    meta = document["meta"]
    assert set(document) == {"meta", "libs", "pages", "counters", "threads"}
    assert meta["preprocessedProfileVersion"] == 48 and meta["interval"] > 0 and meta["startTime"] > 0
    assert all(set(category) == {"name", "color", "subcategories"} for category in meta["categories"])
    assert all(set(lib) == LIB for lib in document["libs"])
    for thread in document["threads"]:
        check_thread(thread, document["libs"], len(meta["categories"]))
        check_markers(thread, {schema["name"]: schema for schema in meta["markerSchema"]}, len(meta["categories"]))
    for schema in meta["markerSchema"]:
        check_schema(schema)
    for counter in document["counters"]:
        check_counter(counter, document["threads"])
    pids = {thread["pid"] for thread in document["threads"]}
    assert sorted(thread["pid"] for thread in document["threads"] if thread["isMainThread"]) == sorted(pids), "one of each process"
    assert document["threads"], "the viewer shows none without a thread"
    return document


def threads(document):
    """The threads that have samples."""
    return [thread for thread in document["threads"] if thread["name"] != COMMON]


def counts(document):
    """{name of the counter: sum}."""
    return {counter["name"]: sum(counter["samples"]["count"]) for counter in document["counters"]}


def loads(document):
    """[(source, start, end, fields)] of the markers, in ms; end is None for a single load."""
    common, = [thread for thread in document["threads"] if thread["name"] == COMMON]
    markers = common["markers"]
    return [(common["stringArray"][name], start, end, data) for name, start, end, data in
            zip(*(markers[column] for column in ("name", "startTime", "endTime", "data")))]


def stacks(document):
    """[(name of the thread, names of the functions from the outermost, weight)]."""
    found = []
    for thread in document["threads"]:
        table, frames, functions = thread["stackTable"], thread["frameTable"]["func"], thread["funcTable"]["name"]
        for at, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            names = []
            while at is not None:
                names.insert(0, thread["stringArray"][functions[frames[table["frame"][at]]]])
                at = table["prefix"][at]
            found.append((thread["name"], tuple(names), weight))
    return found
