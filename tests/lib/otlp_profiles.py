# SPDX-License-Identifier: GPL-2.0-only
"""A reader of OpenTelemetry's profiles that shares nothing with the writer but the field numbers of
opentelemetry-proto 1.11 (profiles/v1development, resource/v1, common/v1)."""
import base64
import collections
import datetime
import json

import protos
from google.protobuf import json_format

FIELDS = """
syntax = "proto3";
message AnyValue {
  oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; }
}
message KeyValue { string key = 1; AnyValue value = 2; int32 key_strindex = 3; }
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
message Scope { string name = 1; string version = 2; repeated KeyValue attributes = 3; }
message KeyValueAndUnit { int32 key_strindex = 1; AnyValue value = 2; int32 unit_strindex = 3; }
message Stack { repeated int32 location_indices = 1; }
message Link { bytes trace_id = 1; bytes span_id = 2; }
message Function {
  int32 name_strindex = 1; int32 system_name_strindex = 2; int32 filename_strindex = 3; int64 start_line = 4;
}
message Line { int32 function_index = 1; int64 line = 2; int64 column = 3; }
message Location {
  int32 mapping_index = 1; uint64 address = 2; repeated Line lines = 3; repeated int32 attribute_indices = 4;
}
message Mapping {
  uint64 memory_start = 1; uint64 memory_limit = 2; uint64 file_offset = 3; int32 filename_strindex = 4;
  repeated int32 attribute_indices = 5;
}
message ValueType { int32 type_strindex = 1; int32 unit_strindex = 2; }
message Sample {
  int32 stack_index = 1; repeated int32 attribute_indices = 2; int32 link_index = 3; repeated int64 values = 4;
  repeated fixed64 timestamps_unix_nano = 5;
}
message Profile {
  ValueType sample_type = 1; repeated Sample samples = 2; fixed64 time_unix_nano = 3; uint64 duration_nano = 4;
  ValueType period_type = 5; int64 period = 6; bytes profile_id = 7; uint32 dropped_attributes_count = 8;
  string original_payload_format = 9; bytes original_payload = 10; repeated int32 attribute_indices = 11;
}
message ScopeProfiles { Scope scope = 1; repeated Profile profiles = 2; string schema_url = 3; }
message ResourceProfiles { Resource resource = 1; repeated ScopeProfiles scope_profiles = 2; string schema_url = 3; }
message Dictionary {
  repeated Mapping mapping_table = 1; repeated Location location_table = 2; repeated Function function_table = 3;
  repeated Link link_table = 4; repeated string string_table = 5; repeated KeyValueAndUnit attribute_table = 6;
  repeated Stack stack_table = 7;
}
message ReadProfiles { repeated ResourceProfiles resource_profiles = 1; Dictionary dictionary = 2; }
"""


# Sample had other numbers in 1.9; nothing else that nhmtap writes has changed since.
FIELDS_OF_1_9 = FIELDS.replace(
    "repeated int32 attribute_indices = 2; int32 link_index = 3; repeated int64 values = 4;",
    "repeated int64 values = 2; repeated int32 attribute_indices = 3; int32 link_index = 4;").replace(
    "ReadProfiles", "ReadProfilesOf19")


def scalar(value):
    return getattr(value, value.WhichOneof("value"))


class Part:
    """The profiles of one resource."""

    def __init__(self, part):
        scope, = part.scope_profiles
        assert scope.scope.name == "nhmtap" and scope.scope.version
        self.resource = {a.key: scalar(a.value) for a in part.resource.attributes}
        assert {"service.name", "service.instance.id", "host.name"} <= set(self.resource)
        self.profiles = scope.profiles


class Message:
    """A message whose dictionary keeps the rules of profiles.proto."""

    def __init__(self, data):
        self.data, self.dictionary = data, data.dictionary
        self.texts = self.dictionary.string_table
        self.parts = [Part(part) for part in data.resource_profiles]
        self.resource = self.parts[0].resource
        self.profiles = [profile for part in self.parts for profile in part.profiles]
        self.check_dictionary()
        for profile in self.profiles:
            self.check_profile(profile)

    def check_dictionary(self):
        tables = [getattr(self.dictionary, field.name) for field in self.dictionary.DESCRIPTOR.fields]
        for table in tables:
            items = [item if isinstance(item, str) else item.SerializeToString() for item in table]
            assert items and len(set(items)) == len(items)
        for table in tables:
            if table is not self.texts and table is not self.dictionary.link_table:
                assert not table[0].ListFields()
        assert self.texts[0] == "" and self.dictionary.link_table[0].trace_id == bytes(16)
        assert self.dictionary.link_table[0].span_id == bytes(8)
        used = {"location_table": set(), "stack_table": set(), "attribute_table": set(), "mapping_table": set(),
                "function_table": set()}
        for profile in self.profiles:
            used["attribute_table"] |= set(profile.attribute_indices)
            for sample in profile.samples:
                used["stack_table"].add(sample.stack_index)
                used["attribute_table"] |= set(sample.attribute_indices)
        for stack in self.dictionary.stack_table:
            used["location_table"] |= set(stack.location_indices)
        for location in self.dictionary.location_table:
            used["mapping_table"].add(location.mapping_index)
            used["function_table"] |= {line.function_index for line in location.lines}
            used["attribute_table"] |= set(location.attribute_indices)
        for mapping in self.dictionary.mapping_table:
            used["attribute_table"] |= set(mapping.attribute_indices)
        for name, places in used.items():
            assert places | {0} == set(range(len(getattr(self.dictionary, name)))), name  # none dangles or is unused
        for location in self.dictionary.location_table[1:]:
            mapping = self.dictionary.mapping_table[location.mapping_index]
            if location.mapping_index:
                assert mapping.memory_start <= location.address < mapping.memory_limit

    def check_profile(self, profile):
        assert profile.time_unix_nano and len(profile.profile_id) == 16 and any(profile.profile_id)
        assert all(self.type(profile)) and all(self.type(profile, "period_type"))
        keys = [(s.stack_index, tuple(sorted(s.attribute_indices))) for s in profile.samples]
        assert len(set(keys)) == len(keys)
        assert all(len(s.values) == 1 and not s.timestamps_unix_nano for s in profile.samples)

    def type(self, profile, which="sample_type"):
        kind = getattr(profile, which)
        return self.texts[kind.type_strindex], self.texts[kind.unit_strindex]

    def attributes(self, item):
        found = [self.dictionary.attribute_table[i] for i in item.attribute_indices]
        assert len({a.key_strindex for a in found}) == len(found)
        return {self.texts[a.key_strindex]: scalar(a.value) for a in found}

    def stack(self, sample):
        """The functions of a sample from the outermost, "?" where the name is not known."""
        names = []
        for place in self.dictionary.stack_table[sample.stack_index].location_indices:
            lines = self.dictionary.location_table[place].lines
            names += [self.texts[self.dictionary.function_table[line.function_index].name_strindex]
                      for line in lines] or ["?"]
        return tuple(reversed(names))

    def of(self, event, kind):
        """The profile of an event with values of this type."""
        profile, = [p for p in self.profiles if self.attributes(p)["nhmtap.event"] == event and self.type(p)[0] == kind]
        return profile

    def total(self, event, kind):
        return sum(sample.values[0] for sample in self.of(event, kind).samples)


def read(data):
    """Returns the Message in bytes of protobuf, or in a line of JSON."""
    return Message(parsed(data, protos.message("ReadProfiles", FIELDS)()))


def read_by_1_9(data):
    """Returns what a receiver of opentelemetry-proto 1.9 takes the same for, unchecked."""
    return parsed(data, protos.message("ReadProfilesOf19", FIELDS_OF_1_9)())


def parsed(data, made):
    if isinstance(data, str):
        value = json.loads(data)
        for link in value["dictionary"]["linkTable"]:  # OTLP has ids in hexadecimal, where ProtoJSON has base64
            link.update({name: base64.b64encode(bytes.fromhex(text)).decode() for name, text in link.items()})
        json_format.ParseDict(value, made)
    else:
        made.ParseFromString(data)
    return made


# --- what a run's records say ------------------------------------------------------------------------

# The members of the entries whose sums a profile has, with its type and unit; None: the event's own.
MEASURES = {
    "profile": {"samples": ("samples", "count"), "period": None},
    "mem": {"samples": ("samples", "count"), "period": None, "latency_sum_period": ("latency", "cycles")},
    "branch": {"count": ("branches", "count"), "period": None, "mispredicted": ("mispredicted", "count"),
               "mispredicted_period": ("mispredicted_period", "count")},
}
CONVENTIONS = {"pid": "process.pid", "tid": "thread.id", "comm": "thread.name", "cpu": "cpu.logical_number"}
# What an entry has besides: measured values, and what is in the stack.
BESIDES = {"samples", "period", "count", "mispredicted", "mispredicted_period", "latency_sum", "latency_max", "latency_sum_period",
           "stack", "stack_lost", "value", "bytes", "entries"}


def nanoseconds(time):
    whole, part = time.rstrip("Z").split(".")
    at = datetime.datetime.fromisoformat(whole + "+00:00")
    return int(at.timestamp()) * 10**9 + int(part.ljust(9, "0"))


def keys_of(entry):
    """The attributes that an entry's sample has: a branch has those of both its ends."""
    for name, value in entry.items():
        if isinstance(value, dict) and name in ("from", "to"):
            yield from ((f"nhmtap.{name}_{part}", v) for part, v in value.items() if not isinstance(v, (list, dict)))
        elif not isinstance(value, (list, dict)) and name not in BESIDES:
            yield CONVENTIONS.get(name, name if "." in name else f"nhmtap.{name}"), value


def account_of(record):
    for name, value in record["samples"].items():
        if name == "lost":
            yield from ((f"nhmtap.samples.lost.{cause}", count) for cause, count in value.items())
        else:
            yield f"nhmtap.samples.{name}", value


def period_of(event, entries, count):
    """The distance of two samples, of all that a record has."""
    attr, clock = event["attr"], event["attr"]["type"] == 1 and event["attr"]["config"] in ("0x0", "0x1")
    if attr.get("sample_freq") and clock:
        return 10**9 // attr["sample_freq"]
    if not attr.get("sample_freq"):
        return event["sample_distance"]
    return sum(e["period"] for e in entries) // max(1, sum(e[count] for e in entries))


def of_records(found):
    """What the profiles of a run of one command have to be, by its records: {(start in ns, event, type): a dictionary}."""
    start, profiles = found[0], {}
    for record in found:
        for member, kind in MEASURES.get(record["type"], {}).items():
            event, = (e for e in start["events"] if e["name"] == record["event"])
            clock = event["attr"]["type"] == 1 and event["attr"]["config"] in ("0x0", "0x1")
            own = ("cpu", "nanoseconds") if clock else (event["name"], "count")
            at = nanoseconds(record["start_time"]), record["event"], (kind or own)[0]
            profile = profiles.setdefault(at, {"entries": [], "sums": collections.Counter(), "account": dict(account_of(record))})
            profile |= {"unit": (kind or own)[1], "period_type": own, "duration": record["duration_ns"]}
            profile["entries"] += record["entries"]  # of a part
            for entry in [*record["entries"], *(record[name] for name in ("rest", "rest_of_ranges") if name in record)]:
                if entry[member]:
                    profile["sums"][frozenset(keys_of(entry))] += entry[member]
            count = "count" if record["type"] == "branch" else "samples"
            asked = period_of(event, profile["entries"], count)
            shared = [e["period"] for e in profile["entries"]], sum(e[count] for e in profile["entries"])
            profile["period"] = sum(shared[0]) // shared[1] if "share" in record and shared[1] else asked
    for profile in profiles.values():
        del profile["entries"]
    return profiles


def of_messages(messages):
    """The same by the messages."""
    profiles = {}
    for message in messages:
        for profile in message.profiles:
            own = message.attributes(profile)
            kind, unit = message.type(profile)
            new = {"sums": collections.Counter(), "account": {k: v for k, v in own.items() if k.startswith("nhmtap.samples.")},
                   "unit": unit, "period_type": message.type(profile, "period_type"), "duration": profile.duration_nano,
                   "period": profile.period}
            kept = profiles.setdefault((profile.time_unix_nano, own["nhmtap.event"], kind), new)
            for sample in profile.samples:
                kept["sums"][frozenset(message.attributes(sample).items())] += sample.values[0]
    return profiles
