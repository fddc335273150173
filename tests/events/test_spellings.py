# SPDX-License-Identifier: GPL-2.0-only
"""Events as libpfm4 and PAPI write them, against libpfm4 itself (Debian's libpfm4-dev): nhmtap
encodes them as libpfm4 does, or says where it differs. `make test` tries 500 random spellings;
`make check-spellings` tries each event of two CPUs with each kind of modifier."""
import glob
import json
import os
import random
import re
import subprocess

import hosts
import pytest
from event_tables import HERE, WARNINGS
from facts import read_tsv
from records import NHMTAP

# libpfm4's name of a CPU, ours, and its model.
CPUS = {"core": ("core2", 23), "nhm": ("nehalem-ep", 26), "nhm_ex": ("nehalem-ex", 46), "wsm": ("westmere-ep", 37),
        "wsm_dp": ("westmere-ep-dp", 44), "snb": ("sandybridge", 42), "snb_ep": ("sandybridge-ep", 45)}

# Why nhmtap refuses some events that libpfm4 encodes: each would count nothing, or the wrong thing.
REASONS = (
    "above those of 31, which must be zero",       # cmask above 31
    "so it counts nothing",                           # an off-core value without requests or responses
    "are reserved on this CPU",                       # an off-core response that the CPU lacks
    "has bits beyond 15",
    "outside of 3 to 65535 core cycles",              # a load-latency threshold below the guide's
    "its threshold is missing",
    "undefined with load latency",                    # cmask and inv
    "it would count on no side",                      # u=0 alone
    "itself. Next: leave it out",                     # c=N of an event that its own cmask defines
    "has the codes",                                  # a raw umask that two events of Intel share
    "but the kernel's driver does not",               # a precise event that its PEBS table lacks
    "but the CPU can't record this one",              # a precise event, on Sandy Bridge, of which no sample comes
    "it can't be recorded precisely",
    "sources disagree about",                         # MEM_UNCORE_RETIRED, which Intel's list leaves out
    "an event of sandybridge; this machine is sandybridge-ep",  # PAGE_WALKS, which the EP's list leaves out
    "has bits that the register has not",             # a raw value, on Sandy Bridge
    "has no response bit", "has no supplier bit", "has no snoop bit",
)


@pytest.fixture(scope="session")
def libpfm4(tmp_path_factory):
    program = tmp_path_factory.mktemp("libpfm4") / "libpfm4"
    subprocess.run(["gcc", *WARNINGS, "-o", program, HERE / "libpfm4.c", "-lpfm"], check=True)

    def run(*arguments, lines=()):
        return subprocess.run([program, *arguments], input="\n".join(lines), capture_output=True, text=True,
                              check=True, env={"LIBPFM_ENCODE_INACTIVE": "1"}).stdout.splitlines()
    return run


@pytest.fixture(scope="session")
def machine(tmp_path_factory):
    """A function that returns the root folder of a machine of a model."""
    roots = {}

    def make(model):
        if model not in roots:
            roots[model] = hosts.build(tmp_path_factory.mktemp(f"model{model}"),
                                       hosts.NEHALEM | {"proc/cpuinfo": hosts.cpuinfo(model=model, stepping=7)})
        return roots[model]
    return make


def explain_all(root, texts):
    """The record of each event, or the text of its refusal. A run takes longer to start than to explain an event, so
    events are explained together, and those among which one is refused in two halves."""
    done = subprocess.run([NHMTAP, "explain", "--host-root", root, "--format", "json", "--", *texts],
                          capture_output=True, text=True, timeout=60)
    half = len(texts) // 2
    records = [record for record in map(json.loads, done.stdout.splitlines()) if record["type"] == "event"]
    if done.returncode == 0:
        assert half == 0 or [record["event"]["name"] for record in records] == texts
        return records
    return explain_all(root, texts[:half]) + explain_all(root, texts[half:]) if half else [done.stderr]


def explain(root, text):
    return explain_all(root, [text])[0]


def attr_of(record):
    """The members that libpfm4 sets too. Its period is what samples are to be apart, which of a precise event is
    more than the kernel's period."""
    attr = record["event"]["attr"]
    return (int(attr["config"], 16), int(attr.get("config1", "0x0"), 16),
            attr.get("exclude_user", 0), attr.get("exclude_kernel", 0), attr.get("precise_ip", 0),
            attr.get("pinned", 0), attr.get("freq", 0), attr.get("sample_freq", record["event"].get("sample_distance", 0)))


def told(record):
    """Whether the record says that libpfm4 encodes the event differently."""
    return "libpfm4 encodes" in record["event"].get("note", "")


def alike(record, theirs):
    """Whether both encodings agree. The codes may differ if the record says so, but the modifiers
    must be the same. nhmtap samples a precise event at its own rate if the event has none."""
    ours = attr_of(record)
    return ((ours[:2] == theirs[:2] or told(record)) and ours[2:6] == theirs[2:6]
            and (ours[6:] == theirs[6:] or theirs[6:] == (0, 0)))


def compare(libpfm4, root, pmu, texts):
    """The events that differ although nhmtap does not say so, and how many libpfm4 knows."""
    answers = libpfm4("encode", lines=[f"{pmu}::{text}" for text in texts])
    assert len(answers) == len(texts)
    known = [(text, tuple(map(int, answer.split()))) for text, answer in zip(texts, answers)
             if answer != "refused"]
    ours = [answer for i in range(0, len(known), 16)
            for answer in explain_all(root, [f"{pmu}::{text}" for text, _ in known[i:i + 16]])]
    wrong = {}
    for (text, theirs), our in zip(known, ours):
        if isinstance(our, str):
            if not any(reason in our for reason in REASONS):
                wrong[text] = our
        elif not alike(our, theirs):
            wrong[text] = (theirs, attr_of(our))
    return wrong, len(known)


def any_case(text, chance):
    return chance.choice((text, text.lower(), text.upper()))


def modified(text, chance):
    """The spelling with modifiers in random order and case; I is left out, as perf has its own."""
    words = [chance.choice(("e", "e=1", "e=0", "E")), chance.choice(("i", "i=1", "i=0")),
             f"c={chance.choice((0, 1, 2, 31, 200, '0x10'))}", chance.choice(("t", "T=1", "t=0"))]
    sides = chance.choice(([], ["u"], ["k"], ["u", "k"], ["u=0", "k=1"], ["u=1", "k=0"], ["K"], ["u=0"]))
    chosen = chance.sample(words, chance.choice((0, 0, 1, 1, 2, 4))) + sides
    chance.shuffle(chosen)
    event, *umask = text.split(":")
    if umask and chance.random() < 0.2:  # libpfm4 also accepts modifiers before the umask
        return ":".join([any_case(event, chance), *chosen, any_case(umask[0], chance)])
    return ":".join([any_case(text, chance), *chosen])


def offcore(register, words, chance):
    """Several requests and responses in any order, with either kind left out, or a raw value."""
    if chance.random() < 0.15:
        return f"{register}:{chance.randrange(1 << 16):#x}"
    return ":".join([register, *chance.sample(words, chance.randrange(0, 4))])


def spelling(events, chance):
    text = chance.choice(events)
    name = text.split(":")[0]
    if name.startswith("OFFCORE_RESPONSE"):
        words = [event.split(":")[1] for event in events if event.startswith(name + ":")]
        text = offcore(name, words, chance)
        return text + chance.choice(("", ":u", ":k=1:u=0", ":e=0"))
    if text.endswith("LATENCY_ABOVE_THRESHOLD"):
        return f"{text}:ldlat={chance.choice((1, 2, 3, 30, 65535))}"
    if ":" in text and chance.random() < 0.1:
        text = f"{name}:{chance.randrange(256):#x}"
    return modified(text, chance)


def test_500_spellings_are_encoded_as_libpfm4_does_it_or_the_difference_is_told(libpfm4, machine):
    seed = int(os.environ.get("NHMTAP_SEED", 1))
    print(f"NHMTAP_SEED={seed}")
    chance = random.Random(seed)
    for pmu, (_, model) in CPUS.items():
        events = libpfm4("list", pmu)
        wrong, known = compare(libpfm4, machine(model), pmu, [spelling(events, chance) for _ in range(84)])
        # Core 2 has no second thread, so libpfm4 refuses t there.
        assert wrong == {} and known > (15 if pmu == "core" else 40)


@pytest.mark.parametrize("pmu, least", [("core", 400), ("nhm", 370), ("nhm_ex", 370), ("wsm", 390), ("wsm_dp", 385),
                                        ("snb", 430), ("snb_ep", 438)])
def test_every_event_of_libpfm4_is_encoded_as_it_does_or_the_difference_is_told(libpfm4, machine, pmu, least):
    wrong, known = compare(libpfm4, machine(CPUS[pmu][1]), pmu, libpfm4("list", pmu))
    assert wrong == {} and known >= least


MODIFIERS = [
    "u", "k", "u:k", "u=0:k=1", "u=1:k=0", "U", "K=1", "e", "e=1", "e=0", "E", "i", "i=1", "i=0", "t", "t=1",
    "T=0", "c=1", "c=0", "c=31", "c=32", "C=0x1f", "c=255", "e:i:c=2:t:u", "u:c=3:i", "k:e=1:t=1", "ldlat=3",
    "ldlat=1000", "ldlat=65535:u", "precise=1", "precise=2:u", "precise=2:period=100007:k", "precise=0", "period=1000", "freq=99:u",
    "pinned", "pinned=1:k", "pinned=0"]


# make check-spellings tries them all.
@pytest.mark.parametrize("pmu", ["nhm", "wsm", "snb", "snb_ep"] if "NHMTAP_ALL_SPELLINGS" in os.environ else ["nhm", "wsm", "snb"])
@pytest.mark.parametrize("modifiers", MODIFIERS if "NHMTAP_ALL_SPELLINGS" in os.environ else
                         ["e:i:c=2:t:u", "ldlat=3", "precise=2:period=100007:k"])
def test_every_event_with_every_modifier(libpfm4, machine, pmu, modifiers):
    texts = [f"{text}:{modifiers}" for text in libpfm4("list", pmu)]
    wrong, known = compare(libpfm4, machine(CPUS[pmu][1]), pmu, texts)
    # libpfm4 accepts ldlat for one event, precise for PEBS events, and e without c=N only if the
    # event has its own cmask.
    edges = {"e", "e=1", "e=0"} & set(modifiers.lower().split(":")) and "c=" not in modifiers
    assert wrong == {} and known >= (1 if "ldlat" in modifiers else 10 if edges else 25 if "precise" in modifiers else 200)


# Core 2 has neither load latency nor a second thread, and fewer precise events.
@pytest.mark.parametrize("modifiers, least", [("e:i:c=2:u", 350), ("k:i=1:c=1", 350), ("precise=2:period=100007:k", 8)])
def test_every_event_of_core_2_with_modifiers(libpfm4, machine, modifiers, least):
    wrong, known = compare(libpfm4, machine(23), "core", [f"{text}:{modifiers}" for text in libpfm4("list", "core")])
    assert wrong == {} and known >= least


# Why nhmtap refuses umasks together that libpfm4 combines.
REASONS_OF_SEVERAL = (
    "exclude each other",                             # MESI with one state: libpfm4 counts any state
    "stands for itself",                              # a umask of 0, of which nothing would be left
)


def test_umasks_about_different_things_are_combined_as_libpfm4_does_it(libpfm4, machine):
    """Which cores, which requests, which states: two or three of each event's, in any order."""
    seed = int(os.environ.get("NHMTAP_SEED", 1))
    print(f"NHMTAP_SEED={seed}")
    chance = random.Random(seed)
    umasks = {}
    for text in libpfm4("list", "core"):
        event, *own = text.split(":")
        umasks.setdefault(event, []).extend(own)
    texts = [":".join([event, *chance.sample(own, chance.choice((2, 2, 3)) if len(own) > 2 else 2)])
             for event, own in umasks.items() if len(own) > 1 for _ in range(5)]
    wrong, known = compare(libpfm4, machine(23), "core", texts)
    assert {text: why for text, why in wrong.items()
            if not any(reason in why for reason in REASONS_OF_SEVERAL)} == {} and known > 100


def test_dots_separate_umasks_as_libpfm4_takes_them(libpfm4, machine):
    """L2_LD.SELF.M_STATE, as Intel's tools write it."""
    texts = [text.replace(":", ".") for text in libpfm4("list", "core") if text.count(":") > 1]
    texts += [f"{event}.SELF.{state}" for event in ("L2_LD", "L2_ST", "L2_LOCK", "L2_IFETCH")
              for state in ("MESI", "M_STATE", "E_STATE", "S_STATE", "I_STATE", "E_STATE.M_STATE")]
    wrong, known = compare(libpfm4, machine(23), "core", texts)
    assert wrong == {} and known >= 24


@pytest.mark.parametrize("text, letter", [("L2_LD:SELF:M", "M"), ("L2_IFETCH:SELF:S", "S"), ("L2_LD:SELF:I", "I"),
                                          ("L1D_CACHE_LD:E", "E"), ("L2_LD.SELF:E", "E")])
def test_a_letter_that_may_mean_a_state_is_not_taken_for_a_modifier(machine, text, letter):
    """The event would count all states. libpfm4 refuses these, but takes I for i, which inverts."""
    assert f"write {letter}_STATE for the state of a line" in explain(machine(23), text)


def test_e_is_libpfm4s_edge_where_a_state_or_a_threshold_is_named_anywhere(libpfm4, machine):
    texts = ["L1D_CACHE_LD:i=1:E:c=0x10:t:E_STATE", "L1D_CACHE_LD:E:c=2", "L1D_CACHE_LD:c=2:E:M_STATE", "L1D_CACHE_LD:E:mesi:C=1"]
    wrong, known = compare(libpfm4, machine(26), "nhm", texts)
    assert wrong == {} and known == len(texts)


def test_a_raw_umask_is_of_the_code_of_the_events_own_rows(libpfm4, machine):
    """The SDM's BR_INST_RETIRED.MISPRED is of another code."""
    for text in ("BR_INST_RETIRED:0x04", "L2_RQSTS:0x41", "BUS_TRANS_IO:0x60"):
        answer, = libpfm4("encode", lines=[f"core::{text}"])
        assert attr_of(explain(machine(23), text)) == tuple(map(int, answer.split())), text
    assert attr_of(explain(machine(23), "BR_INST_RETIRED.MISPRED"))[0] == 0xc5


@pytest.mark.parametrize("model, text", [(42, "OFFCORE_RESPONSE_0:0x10001:DMND_RFO"), (26, "L2_RQSTS:IFETCH_HIT:0x3")])
def test_a_raw_umask_beside_named_ones_is_refused_as_such(libpfm4, machine, model, text):
    pmu, = [pmu for pmu, (_, of) in CPUS.items() if of == model]
    answer, = libpfm4("encode", lines=[f"{pmu}::{text}"])
    assert not answer.replace(" ", "").isdigit()
    assert "which has names beside it. Next: write either the number or the names" in explain(machine(model), text)


def test_umasks_that_exclude_each_other_are_refused_together(libpfm4, machine):
    for text, column in (("L2_LINES_IN:SELF:BOTH_CORES", 18), ("L2_LINES_IN:SELF:PREFETCH:ANY", 27),
                         ("BUS_TRANS_IO:THIS_AGENT:ALL_AGENTS", 25), ("EXT_SNOOP:ANY:HITM", 15)):
        assert libpfm4("encode", lines=[f"core::{text}"]) == ["refused"]
        message, shown, caret = explain(machine(23), text).splitlines()
        assert "exclude each other. Next: leave out one of them" in message
        assert shown == "  " + text and caret.index("^") - 2 == column - 1, caret


def test_the_description_of_combined_umasks_has_that_of_each(machine):
    record = explain(machine(23), "L2_LD:I_STATE:S_STATE:BOTH_CORES")["event"]
    assert record["attr"]["config"] == "0xf329"
    assert "; or: " in record["description"] and "; and: " in record["description"]
    record = explain(machine(23), "INST_RETIRED:ANY_P:ANY_P")["event"]
    assert (record["attr"]["config"], record["description"]) == ("0xc0", "An instruction retires")


@pytest.fixture(scope="session")
def papi():
    """PAPI's presets of a CPU, from the table in its library: {name: [(how its events are combined,
    events)]}."""
    library, = glob.glob("/usr/lib/*/libpapi.so.[0-9]*.[0-9]*.[0-9]*")
    with open(library, "rb") as file:
        lines = re.findall(rb"^(?:CPU|PRESET),[ -~]+", file.read().replace(b"\0", b"\n"), re.MULTILINE)

    def of(cpu):
        found, cpus, before = {}, [], ""
        for kind, *words in ([word.strip() for word in line.decode().split(",")] for line in lines):
            if kind == "CPU":
                cpus = words if before != kind else cpus + words
            elif cpu in cpus:
                found.setdefault(words[0], []).append((words[1], words[2:]))
            before = kind
        return found
    return of


@pytest.mark.parametrize("pmu, least", [("nhm", 45), ("wsm", 42)])
def test_a_preset_of_papi_that_is_one_event_is_that_event(libpfm4, machine, papi, pmu, least):
    """Only presets with one meaning in PAPI; PAPI_L2_TCW has two on Nehalem."""
    presets = {name: events[0] for name, ((how, events), *others) in papi(pmu).items()
               if how == "NOT_DERIVED" and not others and name != "PAPI_L2_TCW"}
    assert len(presets) >= least
    answers = libpfm4("encode", lines=[f"{pmu}::{event}" for event in presets.values()])
    wrong = {}
    for preset, answer in zip(presets, answers):
        record = explain(machine(CPUS[pmu][1]), preset)
        if isinstance(record, str) or attr_of(record) != tuple(map(int, answer.split())):
            wrong[preset] = (answer, record if isinstance(record, str) else attr_of(record))
    assert wrong == {}


def test_what_libpfm4_refuses_in_values_is_refused_with_its_column(libpfm4, machine):
    for text, column in (("INST_RETIRED:c=256", 16), ("INST_RETIRED:i=2", 16), ("INST_RETIRED:c", 14),
                         ("INST_RETIRED:u:c=-1", 18), ("INST_RETIRED:zz", 14), ("INST_RETIRED:", 14),
                         ("INST_RETIRED:any_p:nonsense=1", 20)):
        assert libpfm4("encode", lines=[f"nhm::{text}"]) == ["refused"]
        message, shown, caret = explain(machine(26), text).splitlines()
        assert shown == "  " + text and caret.index("^") - 2 == column - 1, message


def test_a_modifier_that_stands_twice_is_refused_with_its_column(machine):
    for text, column in (("cycles:uu", 9), ("INST_RETIRED:u:u", 16), ("INST_RETIRED:c=1:i:c=2", 20),
                         ("INST_RETIRED:pppp", 17)):
        message, shown, caret = explain(machine(26), text).splitlines()
        assert caret.index("^") - 2 == column - 1, message


def test_what_an_offcore_event_takes_unnamed_is_in_its_record(machine):
    record = explain(machine(26), "OFFCORE_RESPONSE_0:LOCAL_DRAM")["event"]
    assert int(record["attr"]["config1"], 16) == 0x40ff
    assert "no request is named: ANY_REQUEST is taken" in record["note"]


def test_a_umask_that_looks_like_a_modifier_is_the_umask_wherever_it_stands(libpfm4, machine):
    for text in ("L2_LINES_IN:I", "L2_LINES_IN:S", "L2_LINES_IN:e:e=1:c=10", "L2_LINES_IN:i=1:i", "L2_LINES_IN:I:i",
                 "L2_LINES_IN:u:E", "L2_LINES_IN:E:e=0:k"):
        answer, = libpfm4("encode", lines=[f"snb::{text}"])
        assert attr_of(explain(machine(42), text)) == tuple(map(int, answer.split())), text
    # libpfm4's names have no dot: behind Intel's, it is a modifier.
    assert attr_of(explain(machine(42), "L2_LINES_IN.ALL:e:c=1"))[0] == 0x10407f1


def test_a_word_that_means_another_thing_in_libpfm4_is_told(machine):
    record = explain(machine(26), "OFFCORE_RESPONSE_0:ANY_DATA:LOCAL_DRAM")
    assert "0x33" in record["event"]["note"] and "offcore-any-data" in record["disagreements"]
    assert "note" not in explain(machine(26), "OFFCORE_RESPONSE.ANY_DATA.LOCAL_DRAM")["event"]


def test_an_event_of_another_cpu_is_told_with_both_cpus(machine):
    refusal = explain(machine(26), "ept.walk_cycles")
    assert ("an event of westmere-ep, westmere-ep-dp, westmere-ex, sandybridge, sandybridge-ep; "
            "this machine is nehalem-ep") in refusal
    refusal = explain(machine(44), "mem_uncore_retired.l3_data_miss_unknown")
    assert "the table of westmere-ep-dp lacks it, as sources disagree about" in refusal


def test_libpfm4s_name_of_the_cpu_may_stand_in_front(machine):
    for text in ("nhm::INST_RETIRED:ANY_P:u", "NHM::inst_retired:any_p:u"):
        assert attr_of(explain(machine(26), text)) == attr_of(explain(machine(26), "INST_RETIRED.ANY_P:u"))
    assert attr_of(explain(machine(26), "ix86arch::BRANCH_INSTRUCTIONS_RETIRED"))[0] == 0xc4
    assert "an event of westmere-ep; this machine is nehalem-ep" in explain(machine(26), "wsm::INST_RETIRED")
    assert "none of the CPUs" in explain(machine(26), "skl::INST_RETIRED")
    for text in ("wsm_unc::unc_qmc_writes:full_any", "SNBEP_UNC_PCU::UNC_P_CLOCKTICKS", "snb_unc_cbo1::unc_clockticks"):
        assert "no table has libpfm4's names of what is outside" in explain(machine(45), text)


def test_events_that_only_libpfm4_has_say_so(libpfm4, machine):
    record = explain(machine(26), "PIC_ACCESSES:TPR_READS")
    assert "libpfm4-only-events" in record["disagreements"]


@pytest.mark.parametrize("cpu, pmu, least", [("architectural", "core", 10), ("core2", "core", 400), ("sandybridge", "snb", 200),
                                             ("sandybridge-ep", "snb_ep", 200)])
def test_an_event_that_libpfm4_names_is_encoded_as_it_does_or_a_contradiction_quotes_it(cpu, pmu, least, compiled, libpfm4):
    configs = {row["name"]: row["config"] for row in compiled.list("event", cpu)}
    names = {**{name: name for name in configs}, **{row["name"]: row["of"] for row in compiled.list("alias", cpu)}}
    listed = [name for name in libpfm4("list", pmu) if name.replace(":", ".") in names]
    encoded = libpfm4("encode", lines=[f"{pmu}::{name}" for name in listed])
    quoted = {name for row in compiled.list("contradiction", cpu) if "libpfm4" in row["says"] for name in row["names"].split()}
    for name, answer in zip(listed, encoded, strict=True):
        ours = names[name.replace(":", ".")]
        assert configs[ours] == int(answer.split()[0]) or ours in quoted, name
    assert len(listed) >= least


# --- libpfm4's own cases: tests/validate_x86.c, with the registers that it expects ----------------------

# More reasons why nhmtap refuses libpfm4's own cases.
REASONS_OF_CASES = (
    "it stands twice", "stands for itself",          # libpfm4 takes the last one
    "has bits that the register has not",
    "is no umask of", "is no event", "this machine is core2",
)
USR, OS, INT, EN = 1 << 16, 1 << 17, 1 << 20, 1 << 22


def cases():
    return [(*row["event"].split("::"), row["codes"]) for row in read_tsv("libpfm4-cases.tsv")]


def wanted(codes):
    """The members of perf_event_attr that correspond to libpfm4's registers."""
    select, *extra = (int(code, 16) for code in codes.split(","))
    return (select & ~(USR | OS | INT | EN), *(extra or [0]), int(not select & USR), int(not select & OS))


@pytest.mark.parametrize("pmu, model, least", [
    ("core", 23, 10), ("nhm", 26, 12), ("nhm_ex", 46, 0), ("wsm", 37, 18), ("wsm_dp", 44, 3), ("snb", 42, 35), ("snb_ep", 45, 24)])
def test_libpfm4s_own_cases_are_encoded_alike_or_the_difference_is_told(pmu, model, least, machine):
    alike = 0
    for text, codes in ((text, codes) for of, text, codes in cases() if of == pmu and codes != "refused"):
        found = explain(machine(model), text)
        if isinstance(found, str):
            assert any(reason in found for reason in (*REASONS, *REASONS_OF_CASES)), (text, found)
        elif attr_of(found)[:4] == wanted(codes):
            alike += 1
        else:
            assert told(found), text
    assert alike >= least


def test_a_name_among_the_terms_of_the_cores_pmu_is_the_name_with_modifiers(libpfm4, machine):
    """As perf takes the names of its own files. That the other spelling is right is tested above."""
    chance = random.Random(35)
    for pmu in ("nhm", "wsm_dp", "snb_ep"):
        root = machine(CPUS[pmu][1])
        names = {text for text in libpfm4("list", pmu) if "offcore" not in text.lower()}
        for name in chance.sample(sorted(names), 12):
            theirs, ours = explain(root, f"{name}:c=2:e=1:i=1:u"), explain(root, f"cpu/inv,{name},edge,cmask=2,name=mine/u")
            # libpfm4 gives no second value to a modifier that the event itself has; perf does.
            if isinstance(theirs, str):
                assert isinstance(ours, str) or "the event has set" in theirs
                continue
            assert ours["event"]["name"] == "mine" and attr_of(ours) == attr_of(theirs), name
    plain = explain(machine(26), "cpu/inst_retired.any_p,period=1009/pp")
    assert (plain["event"]["attr"]["config"], plain["event"]["attr"]["precise_ip"]) == ("0x1c0", 2)
    assert "has no such term" in explain(machine(26), "cpu/INST_RETIRED.NONE_SUCH/")
