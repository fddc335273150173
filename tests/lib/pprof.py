# SPDX-License-Identifier: GPL-2.0-only
"""A reader of pprof's files that shares nothing with the writer but the field numbers of
google/pprof's proto/profile.proto."""
import gzip

import protos

FIELDS = """
syntax = "proto2";
message ReadProfile {
  message Type { optional int64 type = 1; optional int64 unit = 2; }
  message Label { optional int64 key = 1; optional int64 str = 2; optional int64 num = 3; }
  message Sample { repeated uint64 location_id = 1; repeated int64 value = 2; repeated Label label = 3; }
  message Mapping {
    optional uint64 id = 1; optional uint64 memory_start = 2; optional uint64 memory_limit = 3;
    optional uint64 file_offset = 4; optional int64 filename = 5; optional int64 build_id = 6;
    optional bool has_functions = 7; optional bool has_filenames = 8;
    optional bool has_line_numbers = 9; optional bool has_inline_frames = 10;
  }
  message Line { optional uint64 function_id = 1; optional int64 line = 2; }
  message Location {
    optional uint64 id = 1; optional uint64 mapping_id = 2; optional uint64 address = 3;
    repeated Line line = 4; optional bool is_folded = 5;
  }
  message Function {
    optional uint64 id = 1; optional int64 name = 2; optional int64 system_name = 3;
    optional int64 filename = 4; optional int64 start_line = 5;
  }
  repeated Type sample_type = 1; repeated Sample sample = 2; repeated Mapping mapping = 3;
  repeated Location location = 4; repeated Function function = 5; repeated string string_table = 6;
  optional int64 time_nanos = 9; optional int64 duration_nanos = 10; optional Type period_type = 11;
  optional int64 period = 12; repeated int64 comment = 13;
}
"""


def read(path):
    """Returns the profile of a file, after checking all that pprof's own CheckValid() checks."""
    profile = protos.message("ReadProfile", FIELDS)()
    with gzip.open(path) as file:
        profile.ParseFromString(file.read())
    texts = profile.string_table
    assert texts[0] == "" and len(set(texts)) == len(texts)
    assert profile.sample_type and all(len(s.value) == len(profile.sample_type) for s in profile.sample)
    ids = {}
    for name in ("mapping", "location", "function"):
        ids[name] = [item.id for item in getattr(profile, name)]
        assert 0 not in ids[name] and len(set(ids[name])) == len(ids[name])
    for sample in profile.sample:
        assert set(sample.location_id) <= set(ids["location"])
        assert all(texts[label.key] and bool(label.str) + bool(label.num) <= 1 for label in sample.label)
    for location in profile.location:
        assert location.mapping_id in (0, *ids["mapping"])
        assert {line.function_id for line in location.line} <= set(ids["function"])
    for mapping in profile.mapping:
        assert mapping.memory_start < mapping.memory_limit
        within = [x.address for x in profile.location if x.mapping_id == mapping.id]
        assert all(mapping.memory_start <= address < mapping.memory_limit for address in within)
    for other in profile.mapping:
        assert not any(other.memory_start < m.memory_start < other.memory_limit for m in profile.mapping)
    return profile


def types(profile):
    return [(profile.string_table[t.type], profile.string_table[t.unit]) for t in profile.sample_type]


def labels(profile, sample):
    return {profile.string_table[x.key]: profile.string_table[x.str] if x.str else x.num
            for x in sample.label}
