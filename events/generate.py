#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Reads the tables of what CPUs count and writes them as one C file for user/event/known_event.h.

Every mistake in a table is reported with its file and entry, and nothing is written.
"""

import argparse
import json
import os
import re
import sys

# The tables of a kind of their own; any other file of a CPU's folder is a topic of events.
OWN_KIND = ("offcore", "data_source", "lbr", "kernel", "contradictions", "metrics")
WORD = re.compile(r"[a-z][a-z0-9_-]*")
# A hyphen inside a word belongs to it, as in page-faults; a difference has spaces around it.
FORMULA_TOKEN = re.compile(r"\s*(?:([A-Za-z]\w*(?:[.:|-]\w+)*)|(\d+(?:\.\d+)?)|([-+*/()]))",
                           re.ASCII)
# The folder of metrics over perf's own events, and the interval's length in ns, which is none.
GENERIC, DURATION = "generic", "duration_time"

KINDS = ("remote", "partly_remote", "hitm", "prefetch", "no_line", "supplier", "snoop")  # enum offcore_kind

# Fields of perf_event_attr.config, and those that the kernel compares for a fixed counter
# (X86_RAW_EVENT_MASK) and for PEBS (X86_ALL_EVENT_FLAGS, pin control included).
CODE, UMASK, CMASK = 0xFF, 0xFF << 8, 0xFF << 24
EDGE, PIN, ANY, INV = 1 << 18, 1 << 19, 1 << 21, 1 << 23
FIXED_COMPARES = CODE | UMASK | EDGE | INV | CMASK
FLAGS = EDGE | PIN | ANY | INV | CMASK


class Faults(Exception):
    """All that is wrong with the tables, a line each."""


class Report:
    def __init__(self):
        self.lines = []

    def add(self, where, what):
        self.lines.append(f"{where}: {what}")

    def raise_if_any(self):
        if self.lines:
            raise Faults("\n".join(self.lines))


class Form:
    """The part of JSON Schema that schema.json uses, with messages that name the entry.

    The standard library has no validator, and building the program is to need no more than it.
    """

    TYPES = {"string": str, "integer": int, "array": list, "object": dict}
    KEYWORDS = {"$ref", "type", "const", "enum", "pattern", "minimum", "maximum", "maxLength",
                "items", "minItems", "uniqueItems", "properties", "additionalProperties",
                "propertyNames", "required", "dependentRequired", "minProperties", "oneOf",
                "title", "description"}

    def __init__(self, definitions):
        self.definitions = definitions

    def faults(self, kind, table):
        """What is wrong with a table, as pairs of an entry's label and a sentence."""
        return list(self.look({"$ref": f"#/$defs/{kind}"}, table, "", ""))

    def look(self, schema, value, label, field):
        unknown = schema.keys() - self.KEYWORDS
        if unknown:
            raise NotImplementedError(f"schema.json uses {', '.join(sorted(unknown))}")
        if "$ref" in schema:
            found = list(self.look(self.definitions[schema["$ref"].split("/")[-1]], value, label,
                                   field))
            yield from found
            if found:
                return
        if not self.is_right(schema, value):
            yield label, f"{field}must be {self.expected(schema)}, not {json.dumps(value)[:60]}"
        elif isinstance(value, dict):
            yield from self.look_at_members(schema, value, label, field)
        elif isinstance(value, list):
            yield from self.look_at_items(schema, value, label, field)

    def is_right(self, schema, value):
        """Without regard to what it contains."""
        if "type" in schema and type(value) is not self.TYPES[schema["type"]]:
            return False
        if "const" in schema and value is not schema["const"]:
            return False
        if "enum" in schema and value not in schema["enum"]:
            return False
        if isinstance(value, str):
            # Python's $ also matches before a final line break, JSON Schema's does not.
            pattern = re.sub(r"\$$", r"\\Z", schema.get("pattern", ""))
            return re.search(pattern, value) and len(value) <= schema.get("maxLength", len(value))
        if type(value) is int:
            return schema.get("minimum", value) <= value <= schema.get("maximum", value)
        return True

    @staticmethod
    def expected(schema):
        if "title" in schema:
            return schema["title"]
        if "enum" in schema:
            return f"one of {', '.join(schema['enum'])}"
        if "minimum" in schema:
            return f"a number from {schema['minimum']} to {schema['maximum']}"
        return {"object": "an object", "array": "a list"}.get(schema.get("type"), "something else")

    def look_at_members(self, schema, value, label, field):
        known = schema.get("properties", {})
        for key in value:
            here = f"{field}\"{key}\" "
            if "propertyNames" in schema:
                yield from self.look(schema["propertyNames"], key, label, here)
            if key in known:
                yield from self.look(known[key], value[key], label, here)
            elif schema.get("additionalProperties") is False:
                yield label, f"{field}unknown field \"{key}\"; known: {', '.join(known)}"
            elif "additionalProperties" in schema:
                yield from self.look(schema["additionalProperties"], value[key], label, here)
        for key in schema.get("required", ()):
            if key not in value:
                yield label, f"{field}\"{key}\" is missing"
        for key, others in schema.get("dependentRequired", {}).items():
            for other in others:
                if key in value and other not in value:
                    yield label, f"{field}\"{key}\" means nothing without \"{other}\""
        choices = [choice["required"][0] for choice in schema.get("oneOf", ())]
        if choices and sum(key in value for key in choices) != 1:
            yield label, f"{field}needs either \"{choices[0]}\" or \"{choices[1]}\""
        if len(value) < schema.get("minProperties", 0):
            yield label, f"{field}is empty"

    def look_at_items(self, schema, value, label, field):
        if len(value) < schema.get("minItems", 0):
            yield label, f"{field}must have {schema['minItems']} or more entries"
        if schema.get("uniqueItems") and len({json.dumps(item) for item in value}) < len(value):
            yield label, f"{field}has an entry twice"
        for number, item in enumerate(value if "items" in schema else (), 1):
            if not isinstance(item, dict):
                yield from self.look(schema["items"], item, label, f"{field}entry {number} ")
                continue
            name = next((item[key] for key in ("name", "id", "key") if key in item), None)
            if not isinstance(name, str):
                name = f"{field}entry {number}"
            yield from self.look(schema["items"], item, name, "")


def spelling(name):
    """What two names have in common that a user may take for each other."""
    return name.lower().replace(":", ".")


class Cpu:
    """One CPU's tables, those it inherits included. All but the kernel's are by spelling(name)."""

    TABLES = ("events", "offcore", "registers", "requests", "responses", "presets", "data_sources", "branches", "kernel",
              "contradictions", "metrics")

    def __init__(self, entry, parent):
        self.entry = entry
        self.name = entry["name"]
        self.load_latency = entry.get("load_latency", getattr(parent, "load_latency", None))
        self.precise_store = entry.get("precise_store", getattr(parent, "precise_store", None))
        for table in self.TABLES:
            setattr(self, table, dict(getattr(parent, table, {})))


class Tables:
    def __init__(self, folder):
        self.folder = folder
        self.files = []
        self.report = Report()
        self.sources = {}
        self.cpus = {}
        self.generic = {}

    # ---- reading ----

    def read(self, folder, where):
        """The content of a JSON file, or None after reporting why it cannot be read."""
        file = os.path.join(folder, where)
        self.files.append(file)

        def no_field_twice(pairs):
            keys = [key for key, _ in pairs]
            for key in dict.fromkeys(key for key in keys if keys.count(key) > 1):
                self.report.add(where, f"field \"{key}\" stands twice in one object")
            return dict(pairs)

        try:
            with open(file, encoding="utf-8") as stream:
                return json.load(stream, object_pairs_hook=no_field_twice)
        except (OSError, ValueError) as error:
            self.report.add(where, str(error))
            return None

    def form_is_right(self, where, kind, table):
        faults = self.form.faults(kind, table)
        for label, fault in faults:
            self.report.add(f"{where}: {label}" if label else where, fault)
        return not faults

    def entries(self, where, listed, key="name"):
        """The entries of a list by the field that names them."""
        found = {}
        for entry in listed:
            here = f"{where}: {entry[key]}"
            if spelling(entry[key]) in found:
                self.report.add(here, "stands twice")
            self.check_sources(here, entry)
            found[spelling(entry[key])] = entry
        return found

    def check_sources(self, where, entry):
        quoted = [*entry.get("aliases", ()), *entry.get("says", ())]
        if "source" in entry:
            quoted.append(re.match(r"[\w-]*", entry["source"]).group(0))
        for key in quoted:
            if key not in self.sources:
                self.report.add(where, f"quotes \"{key}\", which is no key of sources.json "
                                       f"({', '.join(self.sources)})")

    def load(self):
        schema = self.read(os.path.dirname(sys.argv[0]), "schema.json")
        self.report.raise_if_any()
        self.form = Form(schema["$defs"])
        sources, cpus = (self.read(self.folder, name) for name in ("sources.json", "cpus.json"))
        self.report.raise_if_any()
        right = [self.form_is_right("sources.json", "sources", sources),
                 self.form_is_right("cpus.json", "cpus", cpus)]
        if all(right):
            self.sources = self.entries("sources.json", sources, "key")
            for entry in self.entries("cpus.json", cpus).values():
                self.load_cpu(entry)
            self.load_generic()
            self.check_models()
            self.check_folders()
        self.report.raise_if_any()

    def load_generic(self):
        """Which events perf has, the program knows; a test compares."""
        where = f"{GENERIC}/metrics.json"
        if not os.path.isdir(os.path.join(self.folder, GENERIC)):
            return
        table = self.read(self.folder, where)
        if table is not None and self.form_is_right(where, "metrics", table):
            self.generic = self.entries(where, table)
            for metric in self.generic.values():
                self.formula_events(f"{where}: {metric['name']}", metric)

    def load_cpu(self, entry):
        where = f"cpus.json: {entry['name']}"
        parent = entry.get("inherits")
        if parent and parent not in self.cpus:
            self.report.add(where, f"inherits \"{parent}\", which does not stand before it")
            return
        cpu = self.cpus[entry["name"]] = Cpu(entry, self.cpus.get(parent))
        if not os.path.isdir(os.path.join(self.folder, cpu.name)):
            self.report.add(where, f"has no folder {cpu.name}/")
            return
        self.take_away(cpu)
        topics = {}
        faults = len(self.report.lines)
        for file in sorted(os.listdir(os.path.join(self.folder, cpu.name))):
            stem, extension = os.path.splitext(file)
            if extension == ".json":
                self.load_table(cpu, f"{cpu.name}/{file}", stem, topics)
        cpu.events.update(topics)
        # What a table that cannot be read would have held is missed everywhere else.
        if len(self.report.lines) == faults:
            self.check_cpu(cpu)

    def load_table(self, cpu, where, stem, topics):
        table = self.read(self.folder, where)
        kind = stem if stem in OWN_KIND else "events"
        if not WORD.fullmatch(stem):
            self.report.add(where, "a topic is a lower-case word")
        elif table is None or not self.form_is_right(where, kind, table):
            return
        elif stem == "offcore":
            self.load_offcore(cpu, where, table)
        elif stem == "kernel":
            self.load_kernel(cpu, where, table)
        elif stem == "data_source":
            cpu.data_sources.update(self.entries(where, table, "code"))
        elif stem == "lbr":
            cpu.branches.update(self.entries(where, table, "filter"))
        elif stem == "contradictions":
            cpu.contradictions.update(self.entries(where, table, "id"))
        elif stem == "metrics":
            cpu.metrics.update(self.entries(where, table))
        else:
            self.load_topic(cpu, where, stem, table, topics)

    def load_topic(self, cpu, where, topic, table, seen):
        self.check_sources(where, {"source": table["source"]})
        for key, entry in self.entries(where, table["events"]).items():
            here = f"{where}: {entry['name']}"
            if key in seen:
                self.report.add(here, f"stands in {seen[key]['where']} too")
            event = {"source": table["source"], **entry, "topic": topic, "where": where}
            event.setdefault("counters", list(range(cpu.entry["general_counters"])))
            self.check_event(cpu, here, event)
            seen[key] = event

    def load_offcore(self, cpu, where, table):
        self.check_sources(where, table)
        for key in ("source", "period"):
            if key in table:
                cpu.offcore[key] = table[key]
            elif key not in cpu.offcore:
                self.report.add(where, f"\"{key}\" is missing")
        for key, entry in self.entries(where, table.get("registers", [])).items():
            entry.setdefault("counters", list(range(cpu.entry["general_counters"])))
            self.check_counters(cpu, f"{where}: {entry['name']}", entry)
            cpu.registers[key] = entry
        for key, parts in (("requests", cpu.requests), ("responses", cpu.responses)):
            parts.update(self.entries(where, table.get(key, [])))
        lowest = min((part["bit"] for part in cpu.responses.values() if "bit" in part), default=64)
        for part in cpu.requests.values():
            if part.get("bit", -1) >= lowest:
                self.report.add(f"{where}: {part['name']}",
                                "a bit of requests is below those of responses")
        cpu.presets.update(self.entries(where, table.get("presets", [])))
        cpu.offcore["where"] = where

    def load_kernel(self, cpu, where, table):
        """Rules have no names, so a CPU's own table replaces the inherited one."""
        self.check_sources(where, table)
        for key in ("precise", "fixed", "counters"):
            for number, entry in enumerate(table[key], 1):
                self.check_counters(cpu, f"{where}: \"{key}\" entry {number}", entry)
        cpu.kernel = table

    def take_away(self, cpu):
        for table, names in cpu.entry.get("without", {}).items():
            for name in names:
                if getattr(cpu, table).pop(spelling(name), None) is None:
                    self.report.add(f"cpus.json: {cpu.name}",
                                    f"is without {name}, which it does not inherit")

    # ---- checks of what the fields mean together ----

    def check_counters(self, cpu, where, entry):
        general, fixed = cpu.entry["general_counters"], cpu.entry["fixed_counters"]
        counters = entry.get("counters", [])
        for counter in counters:
            if counter >= general:
                self.report.add(where, f"counter {counter} does not exist: "
                                       f"{cpu.name} has {general}")
        if counters != sorted(counters):
            self.report.add(where, "\"counters\" must ascend")
        if entry.get("fixed_counter", -1) >= fixed:
            self.report.add(where, f"fixed counter {entry['fixed_counter']} does not exist: "
                                   f"{cpu.name} has {fixed}")

    def check_event(self, cpu, where, event):
        def wrong(what):
            self.report.add(where, what)

        self.check_counters(cpu, where, event)
        if not event["counters"] and "fixed_counter" not in event:
            wrong("no counter can count it")
        code, umask = int(event["code"], 16), int(event["umask"], 16)
        if code == 0 and "fixed_counter" not in event:
            wrong("code 0x00 is only perf's name for a fixed counter")
        if event.get("any") and "pebs" in event:
            wrong("the kernel refuses \"any\" in a PEBS event")
        latency = cpu.load_latency and config(cpu.load_latency)
        if ("threshold" in event) != (umask << 8 | code == latency):
            wrong("\"threshold\" belongs to the event of \"load_latency\", and to nothing else")
        if "threshold" in event and ("cmask" in event or "inv" in event):
            wrong("load latency allows neither \"cmask\" nor \"inv\" (guide 3.7)")

    def check_cpu(self, cpu):
        self.check_names(cpu)
        self.check_encodings(cpu)
        self.check_offcore(cpu)
        self.check_periods(cpu)
        if cpu.data_sources and len(cpu.data_sources) != 16:
            self.report.add(f"{cpu.name}/data_source.json",
                            f"has {len(cpu.data_sources)} of the 16 codes")
        for metric in cpu.metrics.values():
            self.check_formula(cpu, metric)

    def check_names(self, cpu):
        taken = {key: event["name"] for key, event in cpu.events.items()}
        for key, event in cpu.events.items():
            if key.split(".")[0] in cpu.registers:
                self.report.add(f"{event['where']}: {event['name']}",
                                "is composed from offcore.json and needs no entry")
            self.check_aliases(event, f"{event['where']}: {event['name']}", taken)
        where = cpu.offcore.get("where", "")
        taken = {key: entry["name"] for parts in (cpu.registers, cpu.requests, cpu.responses)
                 for key, entry in parts.items()}
        for parts in (cpu.registers, cpu.requests, cpu.responses):
            for entry in parts.values():
                self.check_aliases(entry, f"{where}: {entry['name']}", taken)

    def check_aliases(self, entry, where, taken):
        for names in entry.get("aliases", {}).values():
            for alias in names:
                owner = taken.setdefault(spelling(alias), entry["name"])
                if owner != entry["name"] or spelling(alias) == spelling(entry["name"]):
                    self.report.add(where, f"alias {alias} is already a name of {owner}")

    def check_encodings(self, cpu):
        seen = {}
        for event in cpu.events.values():
            key = (config(event), event.get("threshold"), event.get("pebs"),
                   tuple(event["counters"]), event.get("fixed_counter"))
            other = seen.setdefault(key, event["name"])
            if other != event["name"]:
                self.report.add(f"{event['where']}: {event['name']}",
                                f"is encoded exactly as {other}; make it an alias")

    def check_offcore(self, cpu):
        where = cpu.offcore.get("where", f"{cpu.name}/offcore.json")
        for parts in (cpu.requests, cpu.responses):
            bits = {}
            for part in parts.values():
                if "bit" in part:
                    other = bits.setdefault(part["bit"], part["name"])
                    if other != part["name"]:
                        self.report.add(f"{where}: {part['name']}",
                                        f"bit {part['bit']} is already {other}")
                try:
                    part_bits(part, parts)
                except ValueError as error:
                    self.report.add(f"{where}: {part['name']}", str(error))
        for preset in cpu.presets.values():
            for field, parts in (("requests", cpu.requests), ("responses", cpu.responses)):
                for name in preset[field].split(","):
                    if spelling(name) not in parts:
                        self.report.add(f"{where}: {preset['name']}",
                                        f"names {name}, which does not exist")

    def check_periods(self, cpu):
        lowest = cpu.kernel.get("lowest_period", 1)
        for event in cpu.events.values():
            if event["period"] < lowest:
                self.report.add(f"{event['where']}: {event['name']}",
                                f"\"period\" {event['period']} is refused by the kernel of "
                                f"{cpu.name}: at least {lowest}")

    def check_formula(self, cpu, metric):
        where = f"{cpu.name}/metrics.json: {metric['name']}"
        for name in self.formula_events(where, metric):
            if not self.counts(cpu, name):
                self.report.add(where, f"\"formula\" names {name}, which {cpu.name} does not count")

    def formula_events(self, where, metric):
        names = []
        try:
            names = [name for name in formula_names(metric["formula"]) if name != DURATION]
            if not names:
                raise ValueError("names no event")
        except ValueError as error:
            self.report.add(where, f"\"formula\" {error}")
        return names

    def counts(self, cpu, name):
        steps = spelling(name).split(".", 2)
        return spelling(name) in cpu.events or len(steps) == 3 and all(
            step in parts
            for step, parts in zip(steps, (cpu.registers, cpu.requests, cpu.responses)))

    def check_folders(self):
        for name in sorted(os.listdir(self.folder)):
            if os.path.isdir(os.path.join(self.folder, name)) \
                    and name not in (*self.cpus, GENERIC) and not name.startswith(("_", ".")):
                self.report.add(name, "is a folder of no CPU in cpus.json")

    def check_models(self):
        seen = {}
        for cpu in self.cpus.values():
            for model in cpu.entry["models"]:
                key = (cpu.entry["vendor"], cpu.entry["family"], model)
                other = seen.setdefault(key, cpu.name)
                if other != cpu.name:
                    self.report.add(f"cpus.json: {cpu.name}", f"model {model} is already {other}")


# ---- meaning ----

def config(event):
    """perf_event_attr.config (guide, Table 10)."""
    return (int(event.get("code", "0x00"), 16) | int(event.get("umask", "0x00"), 16) << 8
            | event.get("edge", False) * EDGE | event.get("any", False) * ANY
            | event.get("inv", False) * INV | event.get("cmask", 0) << 24)


def part_bits(part, parts, within=()):
    if "bit" in part:
        return 1 << part["bit"]
    if part["name"] in within:
        raise ValueError("is composed of itself")
    bits = 0
    for name in part.get("of", ()):
        if spelling(name) not in parts:
            raise ValueError(f"is composed of {name}, which does not exist")
        bits |= part_bits(parts[spelling(name)], parts, (*within, part["name"]))
    return bits


def formula_names(formula):
    """The events of a formula in order; ValueError says what is wrong with it."""
    tokens, position = [], 0
    while formula[position:].strip():
        match = FORMULA_TOKEN.match(formula, position)
        if not match:
            raise ValueError(f"has something that is no event, number or operator: "
                             f"\"{formula[position:].strip()}\"")
        tokens.append(match.group(0).strip())
        position = match.end()
    names = []

    def term():
        token = tokens.pop(0) if tokens else None
        if token == "(":
            sum_()
            if not tokens or tokens.pop(0) != ")":
                raise ValueError("lacks a closing parenthesis")
        elif token is None or token in "+-*/)":
            raise ValueError("lacks an event or number")
        elif token[0].isalpha() and token not in names:
            names.append(token)

    def sum_():
        term()
        while tokens and tokens[0] in "+-*/":
            tokens.pop(0)
            term()

    sum_()
    if tokens:
        raise ValueError(f"does not end at \"{tokens[0]}\"")
    return names


# ---- writing C ----

def c_string(value):
    """Bytes beyond ASCII go out as they are: the tables and the compiler agree on UTF-8."""
    return "NULL" if value is None else json.dumps(value, ensure_ascii=False)


def initializer(**members):
    """A struct's initializer that names its members, a line each."""
    return "{\n" + "".join(f"\t\t.{name} = {value},\n" for name, value in members.items()) + "\t}"


def strings(entry, *names):
    return {name: c_string(entry.get(name)) for name in names}


def counter_mask(counters):
    return f"{sum(1 << counter for counter in counters):#x}"


class Writer:
    """Collects the C file; a CPU's arrays come before what points at them."""

    def __init__(self):
        self.definitions = []

    def array(self, kind, owner, member, rows):
        """Defines an array; returns the members that point at it and hold its length."""
        if not rows:
            return {member: "NULL", f"nr_{member}": 0}
        name = f"{owner}_{member}"
        self.definitions.append(f"static const {kind} {name}[] = {{\n"
                                + "".join(f"\t{row},\n" for row in rows) + "};\n")
        return {member: name, f"nr_{member}": len(rows)}

    def struct(self, kind, name, **members):
        """Defines a struct; returns a pointer to it."""
        self.definitions.append(f"static const {kind} {name} = "
                                + initializer(**members).replace("\n\t", "\n") + ";\n")
        return f"&{name}"

    def cpu(self, cpu):
        own = cpu.name.replace("-", "_")
        entry = cpu.entry
        return initializer(
            **strings(entry, "name", "title", "vendor", "libpfm4"),
            **self.array("struct cpu_model", own, "models",
                         [f"{{{entry['family']}, {model.lower()}}}" for model in entry["models"]]),
            general_counters=entry["general_counters"],
            fixed_counters=entry["fixed_counters"],
            general_counters_smt=entry.get("general_counters_smt", 0),
            load_latency=f"{config(cpu.load_latency) if cpu.load_latency else 0:#x}",
            precise_store=f"{config(cpu.precise_store) if cpu.precise_store else 0:#x}",
            **self.array("struct known_event", own, "events",
                         [event_row(cpu.events[key]) for key in sorted(cpu.events)]),
            **self.array("struct known_alias", own, "aliases", alias_rows(cpu.events.values())),
            offcore=self.offcore(cpu, f"{own}_offcore"),
            kernel=self.kernel(cpu, f"{own}_kernel"),
            **self.array("struct known_data_source", own, "data_sources",
                         [data_source_row(cpu.data_sources[key])
                          for key in sorted(cpu.data_sources)]),
            **self.array("struct known_branch_kind", own, "branches",
                         [initializer(**strings(kind, "filter", "note", "why", "source", "remedy"),
                                      records=kind.get("records", "0x0").lower())
                          for kind in cpu.branches.values()]),
            **self.array("struct known_contradiction", own, "contradictions",
                         [self.contradiction(entry, own) for entry in cpu.contradictions.values()]),
            **self.array("struct known_metric", own, "metrics", metric_rows(cpu.metrics)))

    def offcore(self, cpu, own):
        if not cpu.registers:
            return "NULL"
        every = [*cpu.registers.values(), *cpu.requests.values(), *cpu.responses.values()]
        return self.struct(
            "struct known_offcore", own,
            **self.array("struct offcore_register", own, "registers",
                         [initializer(name=c_string(entry["name"]), config=f"{config(entry):#x}",
                                      msr=entry["msr"].lower(),
                                      counters=counter_mask(entry["counters"]))
                          for entry in cpu.registers.values()]),
            **self.array("struct offcore_part", own, "requests", part_rows(cpu.requests)),
            **self.array("struct offcore_part", own, "responses", part_rows(cpu.responses)),
            **self.array("struct offcore_preset", own, "presets",
                         [initializer(**strings(preset, "name", "requests", "responses"))
                          for preset in cpu.presets.values()]),
            **self.array("struct known_alias", own, "aliases", alias_rows(every)),
            reserved=f"{sum(1 << part['bit'] for part in every if part.get('reserved')):#06x}ULL",
            default_period=cpu.offcore["period"],
            source=c_string(cpu.offcore["source"]))

    def kernel(self, cpu, own):
        if not cpu.kernel:
            return "NULL"
        every = list(range(cpu.entry["general_counters"]))
        precise = [rule(("code" in entry and CODE) | ("umask" in entry and UMASK)
                        | (0 if "flags" in entry else FLAGS),
                        config(entry), entry.get("counters", every), entry=entry)
                   for entry in cpu.kernel["precise"]]
        placed = [rule(FIXED_COMPARES, config(entry), entry.get("counters", every),
                       entry["fixed_counter"]) for entry in cpu.kernel["fixed"]]
        placed += [rule(CODE | ("umask" in entry and UMASK),
                        config({**entry, "code": code}), entry["counters"], entry=entry)
                   for entry in cpu.kernel["counters"] for code in entry["codes"]]
        return self.struct(
            "struct known_kernel", own,
            **self.array("struct kernel_rule", own, "precise", precise),
            **self.array("struct kernel_rule", own, "placed", placed),
            **self.array("struct known_generic", own, "generic",
                         [initializer(name=c_string(entry["name"]), config=f"{config(entry):#x}",
                                      config1=entry.get("config1", "0x0").lower(),
                                      note=c_string(entry.get("note")))
                          for entry in cpu.kernel["generic"]]),
            **self.array("struct known_erratum", own, "errata",
                         [initializer(**strings(entry, "name", "description"),
                                      all_events=str(entry.get("all_events", False)).lower())
                          for entry in cpu.kernel["errata"]]),
            **self.array("struct known_microcode", own, "microcode",
                         [f"{{{entry['model'].lower()}, {entry['stepping']}, "
                          f"{entry['revision'].lower()}}}"
                          for entry in cpu.kernel.get("microcode", [])]),
            precise_cycles=f"{config(cpu.kernel.get('precise_cycles', {})):#x}",
            own_registers=str(cpu.kernel.get("own_registers", False)).lower(),
            lowest_period=cpu.kernel["lowest_period"],
            access_bits=str(cpu.kernel.get("access_bits", False)).lower(),
            source=c_string(cpu.kernel["source"]))

    def contradiction(self, entry, own):
        its = f"{own}_{entry['id'].replace('-', '_')}"
        return initializer(
            **strings(entry, "id", "subject"),
            **self.array("char *const", its, "names",
                         [c_string(name) for name in entry.get("names", [])]),
            **self.array("struct source_claim", its, "says",
                         [f"{{{c_string(source)}, {c_string(claim)}}}"
                          for source, claim in entry["says"].items()]),
            **strings(entry, "we_do", "why"))


def event_row(event):
    return initializer(
        **strings(event, "name", "description", "topic"),
        config=f"{config(event):#x}",
        config1=f"{event.get('threshold', 0):#x}",
        default_period=event["period"],
        counters=counter_mask(event["counters"]),
        fixed_counter=event.get("fixed_counter", -1),
        precise={None: 0, "can": 1, "only": 2}[event.get("pebs")],
        **strings(event, "errata", "source"))


def rule(mask, value, counters, fixed_counter=-1, entry=()):
    return (f"{{.mask = {mask:#x}, .config = {value:#x}, .counters = {counter_mask(counters)}, "
            f".fixed_counter = {fixed_counter}, "
            f".exclusive = {'true' if 'exclusive' in entry else 'false'}}}")


def part_rows(parts):
    ordered = sorted(parts.values(), key=lambda part: ("of" in part, part.get("bit", 0)))
    return [initializer(**strings(part, "name", "description"),
                        bits=f"{part_bits(part, parts):#06x}ULL",
                        kinds=sum(1 << KINDS.index(kind) for kind in part.get("kinds", [])))
            for part in ordered]


def metric_rows(metrics):
    return [initializer(**strings(metric, "name", "formula", "unit", "description", "source"))
            for metric in metrics.values()]


def alias_rows(entries):
    rows = {}
    for entry in entries:
        for source, names in entry.get("aliases", {}).items():
            for name in names:
                # Two sources may spell alike; the first one is enough to name.
                rows.setdefault(spelling(name), f"{{{c_string(name)}, {c_string(entry['name'])}, "
                                                f"{c_string(source)}}}")
    return [rows[key] for key in sorted(rows)]


def data_source_row(entry):
    return initializer(code=entry["code"].lower(),
                       reserved=str(entry.get("reserved", False)).lower(),
                       **strings(entry, "name", "description"),
                       perf_data_src=entry["perf_data_src"].lower(), perf=c_string(entry["perf"]))


def write_c(tables):
    writer = Writer()
    cpus = [writer.cpu(cpu) for cpu in tables.cpus.values()]
    sources = [f"{{{c_string(source['key'])}, {c_string(source['title'])}}}"
               for source in tables.sources.values()]
    return "\n".join([
        "/* Written by events/generate.py from the tables beside it: change those. */\n"
        "#include \"known_event.h\"\n",
        *writer.definitions,
        public_array("struct cpu_events", "known_cpus", cpus),
        public_array("struct known_metric", "generic_metrics", metric_rows(tables.generic)),
        public_array("struct known_source", "known_sources", sources)])


def public_array(kind, name, rows):
    return (f"const {kind} {name}[] = {{\n" + "".join(f"\t{row},\n" for row in rows) + "};\n"
            f"const size_t nr_{name} = {len(rows)};\n")


def write_depfile(path, output, inputs):
    """The empty rules let make go on when a table has been removed."""
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(f"{output}: {' '.join(inputs)}\n" + "".join(f"{name}:\n" for name in inputs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="the tables, with cpus.json and a folder a CPU")
    parser.add_argument("-o", "--output", required=True, help="the C file to write")
    parser.add_argument("--depfile", help="write the tables that were read as a make dependency")
    arguments = parser.parse_args()

    tables = Tables(arguments.folder)
    try:
        tables.load()
    except Faults as faults:
        print(faults, file=sys.stderr)
        return 1
    with open(arguments.output, "w", encoding="utf-8") as stream:
        stream.write(write_c(tables))
    if arguments.depfile:
        # The folders too, or a new table would not be noticed.
        folders = [os.path.join(arguments.folder, name) for name in tables.cpus]
        if tables.generic:
            folders.append(os.path.join(arguments.folder, GENERIC))
        write_depfile(arguments.depfile, arguments.output,
                      [sys.argv[0], *tables.files, arguments.folder, *folders])
    return 0


if __name__ == "__main__":
    sys.exit(main())
