# SPDX-License-Identifier: GPL-2.0-only
"""Every table follows events/schema.json, and the program applies that schema correctly."""

import copy
import json
import subprocess

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import extend

import hosts
from event_tables import HERE, ROOT

EVENTS = ROOT / "events"
SCHEMA = json.loads((EVENTS / "schema.json").read_text("utf-8"))
TABLES = sorted(path for path in EVENTS.rglob("*.json") if path.name != "schema.json")
OWN_DEFINITION = ("cpus", "sources", "offcore", "data_source", "lbr", "msr", "escr", "kernel", "contradictions",
                  "metrics", "accounting", "identities")


def once(check):
    """A keyword's check that remembers what it has found right: variants of a value share all parts but one."""
    right = {}

    def checked(validator, value, instance, schema):
        shared = isinstance(instance, (dict, list))
        if shared and (id(schema), id(instance)) in right:
            return
        errors = 0
        for error in check(validator, value, instance, schema) or ():
            errors += 1
            yield error
        if shared and not errors:
            right[id(schema), id(instance)] = schema, instance  # while they are kept, nothing else has their numbers
    return checked


def validator(stem, judge=Draft202012Validator):
    kind = stem if stem in OWN_DEFINITION else "events"
    return judge({**{key: SCHEMA[key] for key in ("$schema", "$id", "$defs")},
                                 "$ref": f"#/$defs/{kind}"})


def read(path):
    return json.loads(path.read_text("utf-8"))


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """A function that returns, for each value of a kind in a schema, whether the program accepts its form."""
    program = tmp_path_factory.mktemp("forms") / "forms"
    user = ROOT / "user"
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Werror", "-g", "-O1", "-I", user, "-o", program,
                    HERE / "forms.c", *(user / "base" / f"{name}.c" for name in ("json_schema", "memory", "list", "nearest")),
                    "-ljansson"], check=True)

    def judge(kind, tables, schema=EVENTS / "schema.json"):
        text = "".join(f"{kind} {json.dumps(table)}\n" for table in tables)
        said = subprocess.run([program, schema], input=text, text=True, check=True,
                              stdout=subprocess.PIPE).stdout.split()
        assert len(said) == len(tables)
        return [word == "right" for word in said]
    return judge


def objects(value):
    """Every object of a table whose members have fixed names."""
    if isinstance(value, list):
        for item in value:
            yield from objects(item)
    elif isinstance(value, dict):
        yield value
        for key, item in value.items():
            if key not in ("aliases", "says", "without"):
                yield from objects(item)


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: str(path.relative_to(EVENTS)))
def test_a_table_follows_the_schema(path):
    assert [error.message for error in validator(path.stem).iter_errors(read(path))] == []
    assert Draft202012Validator(SCHEMA).is_valid(read(path))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: str(path.relative_to(EVENTS)))
def test_every_object_of_a_table_refuses_an_unknown_member(path):
    table = read(path)
    # The first few are enough: all entries of a list have one schema.
    for number in range(min(4, len(list(objects(table))))):
        changed = copy.deepcopy(table)
        list(objects(changed))[number]["surprise"] = 1
        assert not validator(path.stem).is_valid(changed)


def test_every_cpu_has_its_own_folder_and_every_folder_a_cpu():
    assert set(hosts.TABLES) == {cpu["name"] for cpu in read(EVENTS / "cpus.json")}


def remembering():
    """python3-jsonschema for values that don't change while it is used."""
    return extend(Draft202012Validator, {name: once(check) for name, check in Draft202012Validator.VALIDATORS.items()})


def spoilt(value, spoil):
    """Every copy of a value that differs in one place: a member is missing, unknown or replaced."""
    members = value.items() if isinstance(value, dict) else \
        enumerate(value) if isinstance(value, list) else ()
    for key, item in members:
        without = copy.copy(value)
        del without[key]
        yield without
        for other in (*spoil, *spoilt(item, spoil)):
            changed = copy.copy(value)
            changed[key] = other
            yield changed
    if isinstance(value, dict):
        yield {**value, "surprise": 1}
    if isinstance(value, list):
        yield [*value, *value]


def shortened(table):
    """A table with only the first two entries of each list, which have every kind of member."""
    if isinstance(table, list):
        return table[:2]
    return {key: item[:2] if isinstance(item, list) else item for key, item in table.items()}


@pytest.mark.parametrize("path", TABLES, ids=lambda path: str(path.relative_to(EVENTS)))
def test_the_program_reads_the_schema_as_python3_jsonschema_does(path, forms):
    kind = path.stem if path.stem in OWN_DEFINITION else "events"
    judge = validator(path.stem, remembering())
    instead = [None, True, 0, 99, "", "x", [], {}]
    tables = list(spoilt(shortened(read(path)), instead))
    disagreed = [table for table, right in zip(tables, forms(kind, tables)) if judge.is_valid(table) != right]
    assert disagreed == []


# With every member that the schema of CONFIG names.
CONFIG = {
    "activities": [{"name": "a", "command": "stat", "retry": True}, {"name": "b.B_1-", "command": "mem"}],
    "outputs": [{}, {"format": "json", "path": "x", "types": ["count"], "queue_bytes": 8192, "series": 1, "activities": ["a"]}],
    "resource": {"service.name": "shop", "a": ""},
    "limits": {"names_bytes": 1 << 20, "memory": "64M", "cpu_share": ".5%"},
    "control": "fifo:a", "heartbeat_s": 86400, "listen": "[::1]:80", "events_dir": "x", "pmu_events": "x",
}


def test_the_program_reads_the_schema_of_config_as_python3_jsonschema_does(forms):
    schema = ROOT / "schema" / "config.schema.json"
    judge = remembering()(read(schema))
    instead = [None, True, False, 0, 1, 86401, "", "x", "session", "fifo:", "unix:", "1%", "1K", "process.pid", [], ["x"] * 17, {},
               {"process.pid": "x"}, {"x": "x"}]
    configs = [CONFIG, *spoilt(CONFIG, instead)]
    assert judge.is_valid(CONFIG)
    disagreed = [config for config, right in zip(configs, forms("-", configs, schema)) if judge.is_valid(config) != right]
    assert disagreed == []
