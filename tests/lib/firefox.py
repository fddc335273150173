# SPDX-License-Identifier: GPL-2.0-only
"""A reader of the Firefox Profiler's processed profiles that checks what its types (src/types/profile.js, version 48) and
its upgraders rely on: the columns of each table, their lengths, and that each index leads somewhere."""
import json

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
LIB = {"arch", "name", "path", "debugName", "debugPath", "breakpadId", "codeId"}


def check_indexes(values, length, least=0):
    assert all(isinstance(value, int) and least <= value < length for value in values if value is not None)


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
    return document


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
