# SPDX-License-Identifier: GPL-2.0-only
"""Every compiled encoding is compared with perfmon's facts."""

import re

from event_tables import CPUS, SANDYBRIDGES, numbers

OFFCORE_MSRS = ("0x1a6", "0x1a7")
LOAD_LATENCY_MSR = "0x3f6"


def stated(row):
    """The events of a row of facts: two if the row names two offcore registers."""
    msrs = row["msr"].lower().split(",")
    codes = [int(code or "0", 16) for code in row["code"].split(",")]
    fixed = re.fullmatch(r"Fixed counter (\d)", row["counters"])
    offcore = msrs[0] in OFFCORE_MSRS
    for code, msr in zip(codes, msrs):
        # The events of the second register have the same names after its own prefix.
        name = row["name"].replace("OFFCORE_RESPONSE.", "OFFCORE_RESPONSE_1.") \
            if msr == "0x1a7" else row["name"]
        yield name, {
            "config": hex(code | int(row["umask"] or "0", 16) << 8
                          | int(row["edge"]) << 18 | int(row["any"]) << 21
                          | int(row["inv"]) << 23 | int(row["cmask"]) << 24),
            "config1": hex(int(row["msr_value"] or "0", 16)),
            "msr": msr if offcore else "",
            "counters": "" if fixed else row["counters"],
            "fixed_counter": str(int(fixed[1]) - (row["code"] != "")) if fixed else "-1",
            "pebs": row["pebs"],
            "period": row["sample_after"],
            "errata": row["errata"],
        }
        assert offcore or msr in ("", LOAD_LATENCY_MSR)


def tabled(compiled, cpu):
    """The compiled events of a CPU in the form of stated(), with offcore responses composed
    here."""
    events = {}
    # Of eight counters, perfmon lists the four that a thread has if its core runs two threads.
    of_a_thread = 0xF
    for row in compiled.list("event", cpu):
        events[row["name"]] = {
            "config": hex(row["config"]), "config1": hex(row["config1"]), "msr": "",
            "counters": ",".join(map(str, numbers(row["counters"] & of_a_thread))),
            "fixed_counter": str(row["fixed_counter"]), "pebs": str(row["precise"]),
            "period": str(row["period"]), "errata": row["errata"],
        }
    period = compiled.list("offcore", cpu)[0]["period"]
    for register in compiled.list("register", cpu):
        for request in compiled.list("request", cpu):
            for response in compiled.list("response", cpu):
                name = ".".join((register["name"], request["name"], response["name"]))
                events[name] = {
                    "config": hex(register["config"]),
                    "config1": hex(request["bits"] | response["bits"]),
                    "msr": hex(register["msr"]),
                    "counters": ",".join(map(str, numbers(register["counters"] & of_a_thread))),
                    "fixed_counter": "-1", "pebs": "0", "period": str(period), "errata": "",
                }
    return events


def known_as(compiled, cpu):
    """A function that returns the name in the tables for a name of perfmon's."""
    events = {row["name"]: row["of"] for row in compiled.list("alias", cpu)}
    parts = {row["name"]: row["of"] for row in compiled.list("offcore_alias", cpu)
             if row["source"] == "perfmon"}

    def find(name):
        steps = name.split(".")
        return events.get(name) or ".".join([steps[0], *(parts.get(step, step) for step in steps[1:])])
    return find


def excepted(exceptions, cpu):
    return {(name, entry["field"]): (values["facts"], values["tables"])
            for entry in exceptions if cpu in entry["cpus"]
            for name, values in entry["events"].items()}


def differences(facts, compiled, cpu):
    """The values of the facts and of the tables where they differ, by event and field."""
    theirs = {name: fields for row in facts(cpu) for name, fields in stated(row)}
    ours = tabled(compiled, cpu)
    find, found = known_as(compiled, cpu), {}
    for name in theirs.keys() - ours.keys():
        if find(name) in ours:
            ours[name] = ours[find(name)]
    for name in theirs.keys() | ours.keys():
        if name not in theirs and name.startswith("OFFCORE") and cpu in SANDYBRIDGES:
            continue  # perfmon lists only some of the responses
        if name not in theirs or name not in ours:
            found[name, "presence"] = ("yes" if name in theirs else "no",
                                       "yes" if name in ours else "no")
            continue
        for field, value in theirs[name].items():
            if ours[name][field] != value:
                found[name, field] = (value, ours[name][field])
    return found


def of_first_register(found):
    """The differences without the second register, whose events differ as the first one's do."""
    return {key: value for key, value in found.items()
            if not key[0].startswith("OFFCORE_RESPONSE_1.")}


def test_every_event_is_encoded_as_perfmon_states(cpu, facts, compiled, exceptions):
    allowed = excepted(exceptions, cpu)
    found = of_first_register(differences(facts, compiled, cpu))
    assert {key: value for key, value in found.items() if allowed.get(key) != value} == {}


def test_every_exception_still_applies(cpu, facts, compiled, exceptions):
    found = differences(facts, compiled, cpu)
    assert {key: value for key, value in excepted(exceptions, cpu).items()
            if found.get(key) != value} == {}


def test_both_offcore_registers_count_the_same_responses(cpu, facts, compiled):
    ours = tabled(compiled, cpu)
    products = [{name.split(".", 1)[1]: fields["config1"] for name, fields in ours.items()
                 if name.startswith(register["name"] + ".")}
                for register in compiled.list("register", cpu)]
    assert products[0] and all(product == products[0] for product in products)
    # If perfmon lists the second register too, it differs from the tables as the first one does.
    found = differences(facts, compiled, cpu)
    first, second = ({(name.split(".", 1)[1], field): value for (name, field), value in found.items()
                      if name.startswith(register)} for register in ("OFFCORE_RESPONSE.", "OFFCORE_RESPONSE_1."))
    if any("0x1a7" in row["msr"] for row in facts(cpu)):
        assert second == first
    else:
        assert {field for _, field in second} <= {"presence"}


def test_every_exception_gives_a_reason(exceptions):
    assert all(len(entry["why"]) > 20 and entry["events"] and entry["cpus"] for entry in exceptions)


def test_the_facts_are_complete(facts):
    assert {cpu: len(facts(cpu)) for cpu in CPUS} == \
        {"nehalem-ep": 558, "nehalem-ex": 553, "westmere-ep": 576, "westmere-ep-dp": 542,
         "westmere-ex": 579, "sandybridge": 406, "sandybridge-ep": 353}


def test_the_models_are_those_of_perfmon(compiled):
    models = {cpu: [(row["family"], row["model"]) for row in compiled.list("model", cpu)]
              for cpu in CPUS}
    assert models == {"nehalem-ep": [(6, 0x1A), (6, 0x1E), (6, 0x1F)], "nehalem-ex": [(6, 0x2E)],
                      "westmere-ep": [(6, 0x25)], "westmere-ep-dp": [(6, 0x2C)],
                      "westmere-ex": [(6, 0x2F)], "sandybridge": [(6, 0x2A)],
                      "sandybridge-ep": [(6, 0x2D)]}


def test_every_cpu_has_its_general_and_three_fixed_counters(cpu, compiled):
    row = compiled.list("cpu", cpu)[0]
    general = 8 if cpu in SANDYBRIDGES else 4
    assert (row["general_counters"], row["fixed_counters"], row["vendor"]) == (general, 3, "GenuineIntel")
