# SPDX-License-Identifier: GPL-2.0-only
"""A reader of speedscope's documents that checks what its file-format-schema.json says, and what its importer
relies on: samples and weights go together, and frames are indexes."""
import json

UNITS = {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}


def read(path):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    assert set(document) == {"$schema", "exporter", "name", "activeProfileIndex", "shared", "profiles"}
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert isinstance(document["exporter"], str) and isinstance(document["name"], str)
    assert set(document["shared"]) == {"frames"}
    frames, profiles = document["shared"]["frames"], document["profiles"]
    for frame in frames:
        assert {"name"} <= set(frame) <= {"name", "file", "line", "col"} and isinstance(frame["name"], str)
        assert isinstance(frame.get("file", ""), str) and isinstance(frame.get("line", 1), int)
    assert len({(f["name"], f.get("file")) for f in frames}) == len(frames)
    assert profiles and 0 <= document["activeProfileIndex"] < len(profiles)
    for profile in profiles:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["type"] == "sampled" and profile["unit"] in UNITS
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["startValue"] == 0 and profile["endValue"] == sum(profile["weights"])
        assert all(isinstance(i, int) and 0 <= i < len(frames) for s in profile["samples"] for i in s)
    return document


def stacks(document, name):
    """[(names of the frames, outermost first; weight)] of a profile."""
    frames = document["shared"]["frames"]
    profile, = [p for p in document["profiles"] if p["name"] == name]
    return [(tuple(frames[i]["name"] for i in sample), weight)
            for sample, weight in zip(profile["samples"], profile["weights"])]
