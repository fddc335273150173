# SPDX-License-Identifier: GPL-2.0-only
"""What the files of a profile for other viewers say of how far it can be trusted: a reader for each format, which
returns the remarks as texts."""
import json
import re

import callgrind
import firefox
import pprof
import speedscope


def of_folded(path):
    with open(path, encoding="utf-8") as file:
        return re.findall("^# (.*) 0$", file.read(), re.M)


def of_callgrind(path):
    callgrind.read(path)
    with open(path, encoding="utf-8") as file:
        return re.findall("^desc: (.*)", file.read(), re.M)


def of_pprof(path):
    profile = pprof.read(path)
    return [profile.string_table[i] for i in profile.comment]


def of_speedscope(path):
    return speedscope.read(path)["name"].split("; ")[1:]


def of_firefox(path):
    return [f"{entry['label']}: {entry['value']}" for section in firefox.read(path)["meta"]["extra"]
            for entry in section["entries"]]


def of_otlp_profiles(path):
    with open(path, encoding="utf-8") as file:
        table = json.loads(file.read().splitlines()[0])["dictionary"]
    texts = table["stringTable"]
    found = {texts[a["keyStrindex"]]: a["value"] for a in table["attributeTable"] if "keyStrindex" in a}
    words = [f"{name}: {next(iter(value.values()))}" for name, value in found.items() if name.startswith("nhmtap.samples.")]
    return [f"there was at least so much: {value['stringValue']}" for name, value in found.items() if name == "nhmtap.why"] + words


READERS = {"folded": of_folded, "callgrind": of_callgrind, "pprof": of_pprof, "speedscope": of_speedscope,
           "firefox": of_firefox, "otlp-profiles-json": of_otlp_profiles}
