# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap makes the same requests to the kernel as perf, given the same text. strace shows the system calls of
both. Whether the kernel grants them does not matter here. perf sees a Nehalem because a PMU's folder is
mounted over sysfs in a mount namespace and PERF_CPUID selects its tables. nhmtap sees it through --host-root.
Where only the syntax matters, nhmtap knows the PMU and not the CPU, because it refuses some requests that
perf lets through to a Nehalem."""
import json
import os
import random
import re
import subprocess

import hosts
import pytest
from facts import read_tsv
from records import NHMTAP
from straced import CALL, Call, opened

# perf takes samples from a ring buffer, and nhmtap uses none. IDENTIFIER and ID serve the ring too. The read
# format of a group differs because nhmtap reads each member separately.
OF_THE_RING = {"sample_type", "read_format", "wakeup_events", "wakeup_watermark", "watermark"}
# Records about processes, mappings and symbols, for the ring as well.
OF_RECORD = OF_THE_RING | {"mmap", "comm", "task", "mmap2", "comm_exec", "ksymbol", "bpf_event",
                           "sample_id_all", "mmap_data", "build_id", "cgroup", "text_poke"}

IN_NAMESPACE = ['mount --bind "$1" /' + hosts.EVENT_SOURCE + ' && shift && exec "$@"', "sh"]


@pytest.fixture
def nehalem(tmp_path):
    return hosts.build(tmp_path / "nehalem", hosts.NEHALEM)


@pytest.fixture
def other(tmp_path):
    return hosts.build(tmp_path / "other", hosts.OTHER_PMU)


def by_perf(nehalem, tmp_path, *arguments, **how):
    return opened(["unshare", "-m", "sh", "-c", *IN_NAMESPACE,
                   os.path.join(nehalem, hosts.EVENT_SOURCE), "perf", *arguments],
                  tmp_path / "perf.strace", PERF_CPUID="GenuineIntel-6-1A-5", **how)


def by_nhmtap(nehalem, tmp_path, command, *arguments, **how):
    calls = opened([NHMTAP, command, "--host-root", nehalem, *arguments], tmp_path / "nhmtap.strace",
                   **how)
    # What tells when the kernel ends the counting of a command counts nothing itself.
    return [call for call in calls if not call.attr.get("comm_exec")]


def without(attr, names):
    return {name: value for name, value in attr.items() if name not in names}


@pytest.mark.parametrize("text", [
    # software
    "cpu-clock", "task-clock", "page-faults", "faults", "minor-faults", "major-faults",
    "context-switches", "cs", "cpu-migrations", "migrations", "alignment-faults",
    "emulation-faults", "dummy", "bpf-output", "cgroup-switches",
    # hardware
    "cpu-cycles", "cycles", "instructions", "cache-references", "cache-misses", "branches",
    "branch-instructions", "branch-misses", "bus-cycles", "ref-cycles",
    "stalled-cycles-frontend", "idle-cycles-frontend", "stalled-cycles-backend",
    "idle-cycles-backend",
    # caches
    "L1-dcache-loads", "L1-dcache-load-misses", "L1-dcache-stores", "L1-icache-load-misses",
    "LLC-loads", "LLC-load-misses", "LLC-stores", "LLC-prefetches", "dTLB-load-misses",
    "dTLB-stores", "iTLB-loads", "iTLB-load-misses", "branch-loads", "branch-load-misses",
    "node-loads", "node-store-misses", "node-prefetch-misses", "l1d-loads", "LLC-store", "L2", "bpu-miss",
    "L1-data-refs", "Data-TLB-speculative-load-miss", "LLC-misses-store",
    # numbers
    "1:1", "4:0x1c0", "1:0x3:k", "4:0x3c/name=x/u", "4:0300", "04:0192/config1=011/", "cpu/event=0192,umask=01/",
    # raw
    "r1c0", "r01C0", "rcb", "r2801c2", "r10cb:u",
    # terms
    "cpu/event=0xc0/", "cpu/event=0xc0,umask=0x1/", "cpu/umask=1,event=192/",
    "cpu/event=0x3c,edge/", "cpu/event=0x3c,edge=1,inv=0,cmask=1/",
    "cpu/event=0xc2,umask=0x1,cmask=16,inv/", "cpu/event=0x3c,any/", "cpu/event=0x3c,any=1,pc/",
    "cpu/event=0xb7,umask=1,offcore_rsp=0x4711/", "cpu/event=0x0b,umask=0x10,ldlat=30/",
    "cpu/config=0x1c0/", "cpu/config=0x1b7,config1=0xff/", "cpu/umask=1,config=0xc0/", "cpu/inv,cmask=2,r1c0/", "cpu/mem-loads/",
    "mem-loads", "cpu/event=0xc0,name=retired/", "cpu/event=branch-misses/", "cpu/r1c0/", "cpu/r0x1c0/",
    "cycles/name='a,b=c:d'/u",
    # periods, which counting leaves out
    "cycles/name=retired,period=1000/", "cpu/event=0xc0,period=50/u", "r1c0/period=7/", "page-faults/period=1/k", "cpu-clock/period=5/",
    # modifiers
    "cycles:u", "cycles:k", "cycles:uk", "cycles:kh", "cycles:ukh", "cycles:p",
    "cycles:pp", "cycles:upp", "cycles:kp", "cycles:G", "cycles:H", "cycles:GH", "cycles:uG",
    "cycles:uH", "cycles:I", "cycles:D", "cycles:uD", "cycles:e", "{cycles}:W", "r1c0:ue", "r1c0:pp", "cpu/event=0xc0,umask=1/pp",
    "cpu/event=0xc0,umask=1/u", "cpu/event=0xc0,umask=1/ukpp", "page-faults:u", "page-faults:k",
    "cs:k", "LLC-load-misses:u",
])
def test_counting_asks_for_what_perf_stat_asks_for(other, tmp_path, text):
    # The first call is what the text asks for; perf tries others when that is refused.
    theirs = by_perf(other, tmp_path, "stat", "-e", text, "true")[0]
    ours = by_nhmtap(other, tmp_path, "stat", "-e", text, "--", "true")[0]
    assert without(ours.attr, OF_THE_RING) == without(theirs.attr, OF_THE_RING)
    assert (ours.cpu, ours.group) == (theirs.cpu, theirs.group)


@pytest.mark.parametrize("text", [
    "inst_retired.any", "INST_RETIRED.MMX:u", "mem_load_retired.llc_miss",
    "mem_load_retired.l1d_hit:k", "uops_retired.any", "br_misp_exec.any", "itlb_miss_retired",
    "l2_rqsts.miss", "dtlb_load_misses.walk_completed", "resource_stalls.any",
    "mem_inst_retired.latency_above_threshold_64", "uops_executed.core_stall_count",
    "fp_comp_ops_exe.x87", "snoop_response.hitm",
])
def test_names_of_the_cpu_are_what_perfs_table_of_it_has(nehalem, tmp_path, text):
    theirs = by_perf(nehalem, tmp_path, "stat", "-e", text, "true")[0]
    ours = by_nhmtap(nehalem, tmp_path, "stat", "-e", text, "--", "true")[0]
    assert without(ours.attr, OF_THE_RING) == without(theirs.attr, OF_THE_RING)
    assert (ours.cpu, ours.group) == (theirs.cpu, theirs.group)


@pytest.mark.parametrize("text", [
    "{page-faults,cs}", "{task-clock,page-faults,cs}", "{page-faults,faults}:u", "{page-faults:k,cs}",
    "page-faults,{cs,migrations},dummy", "{page-faults,cs},{cs,dummy}",
    "{page-faults:k,faults}:u", "mine{page-faults,cs}", "mine \t{ page-faults , cs }", "{page-faults,cs}:D", "{page-faults,cs:k}:ue"])
def test_groups_are_opened_as_perf_stat_opens_them(nehalem, tmp_path, text):
    theirs = by_perf(nehalem, tmp_path, "stat", "-e", text, "true")
    ours = by_nhmtap(nehalem, tmp_path, "stat", "-e", text, "--", "true")
    assert len(theirs) > 1
    assert [without(call.attr, OF_THE_RING) for call in ours] == [
        without(call.attr, OF_THE_RING) for call in theirs]
    assert [call.group < 0 for call in ours] == [call.group < 0 for call in theirs]


@pytest.mark.parametrize("text, options", [
    ("page-faults", ["-c", "1"]), ("page-faults:u", ["-c", "100"]), ("cs", ["-c", "3"]),
    ("cpu-clock", ["-F", "997"]), ("cpu-clock:u", ["-F", "997"]), ("task-clock", ["-c", "100000"]),
    ("cycles:pp", ["-c", "1000003"]), ("cycles:u", ["-F", "500"]), ("r1c0:p", ["-c", "2000003"]),
    ("cpu/event=0xc0,umask=1,period=5000/pp", []), ("cpu/event=0xc0,freq=50/", []),
    ("cpu/mem-loads/pp", ["-c", "1000"]),
    ("mem_load_retired.llc_miss:pp", ["-c", "10007"]), ("cycles:up", ["-c", "10007"]),
    ("cpu/event=0xc0,umask=1/ukpp", ["-c", "10007"])])
def test_sampling_asks_for_what_perf_record_asks_for(nehalem, tmp_path, text, options):
    theirs = by_perf(nehalem, tmp_path, "record", "-o", "/dev/null", *options, "-e", text,
                     "true")[0]
    ours = by_nhmtap(nehalem, tmp_path, "profile", *options, "-e", text, "--", "true")[0]
    # A precise sample takes an event more than the kernel's period, for which perf does not allow.
    if theirs.attr["precise_ip"] and not theirs.attr["freq"]:
        theirs.attr["sample_period"] -= 1
    assert without(ours.attr, OF_RECORD) == without(theirs.attr, OF_RECORD)
    # nhmtap's BPF program reads the registers, which come with every sample. It needs no ring.
    assert ours.attr["sample_type"] == 1  # PERF_SAMPLE_IP
    # Without these, PEBS records are batched and most would not reach the BPF program.
    assert (ours.attr["wakeup_events"], ours.attr["watermark"]) == (1, 0)


def test_a_term_behind_an_alias_replaces_its_value_and_is_not_mixed_with_it(nehalem, tmp_path):
    # perf 6.1 ors 64 into the alias's ldlat=3 and samples loads over 67 cycles: pmu_format_value().
    text = "cpu/mem-loads,ldlat=64/"
    theirs = by_perf(nehalem, tmp_path, "stat", "-e", text, "true")[0]
    ours = by_nhmtap(nehalem, tmp_path, "stat", "-e", text, "--", "true")[0]
    assert ours.attr["config1"] == 64
    ignored = OF_THE_RING | {"config1"}
    assert without(ours.attr, ignored) == without(theirs.attr, ignored)


def test_instructions_retired_keep_their_umask(nehalem, tmp_path):
    # perf's generator replaces the table's 0x01c0 by the architectural 0x00c0 (jevents.py,
    # "fixed"). A Nehalem counts both alike (SDM 3B).
    theirs = by_perf(nehalem, tmp_path, "stat", "-e", "inst_retired.any_p", "true")[0]
    ours = by_nhmtap(nehalem, tmp_path, "stat", "-e", "inst_retired.any_p", "--", "true")[0]
    assert (theirs.attr["config"], ours.attr["config"]) == (0xc0, 0x1c0)


@pytest.mark.parametrize("options", [["-a"], ["-C", "0"]])
def test_whole_cpus_are_opened_as_perf_stat_opens_them(tmp_path, options):
    arguments = ["stat", *options, "-e", "page-faults:u"]
    theirs = opened(["perf", *arguments, "true"], tmp_path / "perf.strace", whole=True)
    ours = opened([NHMTAP, *arguments, "--", "true"], tmp_path / "nhmtap.strace", whole=True)
    assert [(call.pid, call.cpu, call.group) for call in ours] == [
        (call.pid, call.cpu, call.group) for call in theirs]
    # Only events of tasks are inherited; perf sets the bit anyway.
    ignored = OF_THE_RING | {"inherit"}
    assert [without(call.attr, ignored) for call in ours] == [
        without(call.attr, ignored) for call in theirs]


@pytest.mark.parametrize("command", ["stat", "profile"])
def test_there_is_one_call_an_event(nehalem, tmp_path, command):
    # No probing, and no fallback to another event. Symbol names would need side-band events.
    nameless = ["--by", "comm"] if command == "profile" else []
    calls = by_nhmtap(nehalem, tmp_path, command, *nameless, "-e", "page-faults,cs,dummy", "--", "true")
    assert [call.attr["config"] for call in calls] == [2, 3, 9]


# The drivers' events for loads and stores on Sandy Bridge and Skylake: mem_events_attrs in
# intel/core.c. perf mem looks for the PMU where a mount can't put one, so perf record gets the
# event's text instead.
MEMORY_EVENTS = {
    "sandybridge": {"mem-loads": "event=0xcd,umask=0x1,ldlat=3", "mem-stores": "event=0xcd,umask=0x2"},
    "skylake": {"mem-loads": "event=0xcd,umask=0x1,ldlat=3", "mem-stores": "event=0xd0,umask=0x82"},
}


@pytest.mark.parametrize("cpu", MEMORY_EVENTS)
@pytest.mark.parametrize("options, text", [
    (["--loads"], "cpu/mem-loads,ldlat=31/pp"), (["--stores"], "cpu/mem-stores/pp"),
    (["--stores", "--side", "u"], "cpu/mem-stores/upp")])
def test_loads_and_stores_are_those_of_the_driver(tmp_path, cpu, options, text):
    files = {f"{hosts.EVENT_SOURCE}/cpu/events/{name}": terms for name, terms in MEMORY_EVENTS[cpu].items()}
    root = hosts.build(tmp_path / cpu, hosts.OTHER_PMU | files)
    theirs = by_perf(root, tmp_path, "record", "-o", "/dev/null", "-d", "-c", "1000", "-e", text, "true")[0]
    threshold = ["--ldlat", "31"] if "--loads" in options else []
    ours = by_nhmtap(root, tmp_path, "mem", *options, *threshold, "-c", "1000", "--", "true")[0]
    # perf 6.1 ors a term into the alias's: 31 has the bits of 3.
    assert without(ours.attr, OF_RECORD) == without(theirs.attr, OF_RECORD)


def test_loads_that_want_a_companion_are_opened_behind_it(tmp_path):
    aux = {f"{hosts.EVENT_SOURCE}/cpu/events/mem-loads-aux": "event=0x03,umask=0x82"}
    root = hosts.build(tmp_path / "sapphirerapids", hosts.OTHER_PMU | aux)
    leader = by_nhmtap(root, tmp_path, "mem", "-c", "1000", "--", "true")[0]
    # The companion counts without sampling, and enables its group. The loads are opened after it on
    # a machine that has the PMU (tests/machine).
    assert (leader.attr["config"], leader.attr["sample_period"], leader.attr["precise_ip"]) == (0x8203, 0, 0)
    assert (leader.attr["disabled"], leader.attr["enable_on_exec"], leader.group) == (1, 1, -1)


# --- all of the grammar, without a PMU ------------------------------------------------------------------

MEMBERS = ("type", "config", "config1", "config2", "exclude_user", "exclude_kernel", "exclude_hv", "exclude_host",
           "exclude_guest", "exclude_idle", "precise_ip", "pinned", "exclusive")


def number(text):
    """A member as strace prints it: 7, or "0x1<<16|0<<8|0x2"."""
    parts = re.findall(r"(0x[0-9a-f]+|[0-9]+)(?:<<([0-9]+))?", str(text))
    return sum(int(part, 0) << int(shift or 0) for part, shift in parts)


def granted_to_perf(tmp_path, texts):
    """The attrs that perf stat opens, and whether each event joins a group. strace grants them all, so this
    machine's PMU doesn't matter."""
    root = hosts.build(tmp_path / "grammar", hosts.OTHER_PMU | hosts.pmu("software", 1))
    events = [word for text in texts for word in ("-e", text)]
    calls = by_perf(root, tmp_path, "stat", *events, "true", granted=True)
    return [({name: number(call.attr[name]) for name in MEMBERS if number(call.attr.get(name, 0))}, call.group >= 0)
            for call in calls]


def explained(tmp_path, texts):
    root = hosts.build(tmp_path / "explained", hosts.OTHER_PMU | {f"{hosts.EVENT_SOURCE}/cpu/caps/max_precise": "3\n"})
    done = subprocess.run([NHMTAP, "explain", "--host-root", root, "--format", "json", "--force", "--", *texts],
                          capture_output=True, check=True, timeout=60)
    events = [record["event"] for record in map(json.loads, done.stdout.splitlines()) if record["type"] == "event"]
    groups = [None, *(event.get("group") for event in events)]
    numbers = [{name: int(str(event["attr"].get(name, 0)), 0) for name in MEMBERS} for event in events]
    return [({name: value for name, value in attr.items() if value}, group is not None and group == before)
            for attr, before, group in zip(numbers, groups, groups[1:])]


def test_what_the_facts_say_of_perfs_own_texts_is_what_perf_opens(tmp_path):
    facts = [fact for fact in read_tsv("perf-parse-events.tsv") if not fact["refused"] and "cpu_core" not in fact["text"]
             # perf takes its own names as terms of a PMU, and a name that is a word of terms, from 6.6 on.
             and not re.search("cpu/(cycles|cache-misses|L1)|name=name", fact["text"])]
    events = [event for fact in facts for event in fact["attrs"].split("; ")]
    wanted = [({name: int(value, 0) for name, value in (pair.split("=") for pair in event.lstrip("+").split())
                if int(value, 0)}, event.startswith("+")) for event in events]
    assert granted_to_perf(tmp_path, [fact["text"] for fact in facts]) == wanted and len(wanted) > 50


def newer_perf():
    """Whether perf adds a group's G, H and p to what members have of their own: from its modifiers as bits on (6.10), it
    leaves out the host's side and the guest's for {cycles:G}:p, which counts nothing."""
    version = subprocess.run(["perf", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return tuple(map(int, re.search(r"(\d+)\.(\d+)", version).groups())) >= (6, 10)


def random_group(chance, of_group):
    """A group with modifiers, without P (perf stat gives it no meaning), S and b (perf opens more events for
    it). Only the first can be pinned or exclusive, and three p are the most."""
    def modifiers(letters, levels):
        chosen = chance.sample(letters, chance.randrange(len(letters)))
        text = "".join(letter * (chance.randint(1, levels) if letter == "p" else 1) for letter in chosen)
        return ":" + text if text else ""

    names = chance.sample(["page-faults", "cs", "cycles", "instructions", "r1c0", "L1-dcache-load-miss", "1:04"], chance.randint(1, 3))
    own = [modifiers("ukhGHpI" + ("De" if not i else ""), 2) for i in range(len(names))]
    return "{" + ",".join(map("".join, zip(names, own))) + "}" + modifiers(of_group, 1)


def test_random_modifiers_of_groups_and_their_members_add_up_as_in_perf(tmp_path):
    seed = int(os.environ.get("NHMTAP_SEED", 1))
    print(f"NHMTAP_SEED={seed}")
    chance = random.Random(seed)
    texts = [random_group(chance, "ukhIDeW" if newer_perf() else "ukhGHpIDeW") for _ in range(150)]
    assert explained(tmp_path, texts) == granted_to_perf(tmp_path, texts)


# --- any text -------------------------------------------------------------------------------------------

NAMES = ("page-faults", "cs", "task-clock", "dummy", "cycles", "branch-misses", "ref-cycles", "L1-dcache-load-miss",
         "LLC-store-misses", "iTLB-load", "node-prefetches", "LLC", "l1d-read", "bpu", "Page-Faults", "mem-loads")
FORMATS = ("event", "umask", "cmask", "inv", "edge", "any", "pc", "offcore_rsp", "ldlat")
NAMINGS = ("name=x", "name='a b'", "name='a,b'", 'name="q"', "name=x-y", "name=1x", "name=")
ODD_TERMS = ("cycles", "mem-loads", "r1c0", "r0x3c", "percore", "no-inherit", "nosuch", "nosuch=1", "config=cycles",
             "event=cycles")
NUMBERS = (0, 1, 3, 8, 0x3c, 0xc0, 255, 256, 0x1c0, 1 << 32, (1 << 64) - 1)
ODD_EVENTS = ("", ":u", "cycles:u:k", "cycles::u", "cycles u", "r", "rg", "1:", "1:2:3", "cpu//", "cpu//u", "cpu/cycles/", "//",
              "cycles/", "cpu/", "{}", "cycles:pppp", "L1-dcache", "L1-dcache-", "LLC-load-store", "cycles:", "cycles/name=a/:u")


class Writer:
    """Writes texts at random, by perf's grammar and beside it. P, S and b are left out: see random_group()."""

    def __init__(self, chance):
        self.chance, self.choice = chance, chance.choice

    def number(self):
        value = self.choice((*NUMBERS, self.chance.getrandbits(self.choice((4, 8, 12, 63)))))
        return self.choice(("%d", "%#x", "0%d", "0x%X")) % value

    def modifiers(self):
        return "".join(self.choice("ukhGHpIDeW") for _ in range(self.chance.randrange(5)))

    def term(self):
        return self.choice((
            lambda: self.choice(FORMATS), lambda: f"{self.choice(FORMATS)}={self.number()}",
            lambda: f"{self.choice(FORMATS[:3])}={self.number()}",
            lambda: f"{self.choice(('config', 'config1', 'config2', 'period'))}={self.number()}",
            lambda: f"{self.choice(FORMATS)}={self.choice(('on', '0x', 'x', '-1', '1k', ''))}",
            lambda: self.choice(NAMINGS), lambda: self.choice(ODD_TERMS)))()

    def terms(self):
        return self.choice((",", ",", ",", ", ", " ,", ",,")).join(self.term() for _ in range(self.chance.randrange(4)))

    def event(self):
        letters = self.modifiers()
        behind = ":" + letters if letters else ""
        return self.choice((
            lambda: self.choice(NAMES) + behind, lambda: self.choice(NAMES) + behind,
            lambda: self.choice(("r%x", "r%X", "r0%x")) % self.choice((0xc0, 0x1c0, 0x3c, 0x8000ff)) + behind,
            lambda: f"{self.number()}:{self.number()}{behind}",
            lambda: f"{self.choice(('cpu', 'cpu', 'cpu', 'software', 'CPU', 'nosuch'))}/{self.terms()}/{letters}",
            lambda: f"cpu/{self.terms()}/{letters}",
            lambda: f"{self.choice(NAMES)}/{self.terms()}/{letters}", lambda: self.choice(ODD_EVENTS)))()

    def text(self):
        events = [self.event() for _ in range(self.choice((1, 1, 1, 2, 3)))]
        if self.chance.random() < 0.6:
            return self.choice((",", ",", ", ", " , ")).join(events)
        letters = self.modifiers()
        group = "{" + self.choice((",", " ,\t")).join(events) + self.choice(("}", "}", " }"))
        return (self.choice(("", "", "g", "group 1", " ")) + group + (":" + letters if letters else "") +
                self.choice(("", "", "," + self.event())))


# Of two values of a term the last counts here. perf ors them.
OF_ONE_BIT = re.compile(r"\b(event|umask|cmask|inv|edge|any|pc|offcore_rsp|ldlat)\b[^/{}]*[, ]\1\b|"
                        r"ldlat[^/{}]*offcore_rsp|offcore_rsp[^/{}]*ldlat")
EACH_TEXT = ('mount --bind "$1" /' + hosts.EVENT_SOURCE + '; cd "$2"; shift 2; i=0; for text; do i=$((i + 1)); '
             "strace -f -v -X raw -e trace=perf_event_open -e inject=perf_event_open:retval=1000 -o $i "
             'perf stat -e "$text" true; done')


def granted_one_by_one(tmp_path, texts):
    """What perf stat opens for each text by itself; nothing if it refuses the text."""
    root, folder = hosts.build(tmp_path / "each", hosts.OTHER_PMU | hosts.pmu("software", 1)), tmp_path / "calls"
    folder.mkdir()
    subprocess.run(["unshare", "-m", "sh", "-c", EACH_TEXT, "sh", os.path.join(root, hosts.EVENT_SOURCE), folder, *texts],
                   env=os.environ | {"PERF_CPUID": "GenuineIntel-6-1A-5"}, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    calls = [[call for call in map(CALL.search, (folder / str(nr)).read_text(encoding="utf-8").splitlines()) if call]
             for nr in range(1, len(texts) + 1)]
    return [[({name: number(call.attr[name]) for name in MEMBERS if number(call.attr.get(name, 0))}, call.group >= 0)
             for call in map(Call, of) if call.pid > 0] for of in calls]


def test_a_term_that_contradicts_config_is_refused(tmp_path):
    """perf ors both values: it opens 0x3c0. The terms that the PMU's own event stands for are terms, too."""
    for text in ("cpu/config=0x2c0,umask=1/", "cpu/umask=1,r2c0/", "cpu/mem-loads,config1=64/", "cpu/config1=0x1e,mem-loads/",
                 "cpu/config=0x3c,mem-loads/", "{cpu/mem-loads,r24/}:u"):
        with pytest.raises(subprocess.CalledProcessError) as refused:
            explained(tmp_path, [text])
        assert b"perf would mix them" in refused.value.stderr


def test_any_text_opens_what_perf_opens_or_is_refused_with_a_reason(tmp_path):
    """Some texts that perf refuses are taken here, such as names in other letters; and some of perf's are refused, such
    as bits that the PMU has no name for."""
    seed = int(os.environ.get("NHMTAP_SEED", 1))
    print(f"NHMTAP_SEED={seed}")
    writer, alike = Writer(random.Random(seed)), 0
    texts = [text for text in (writer.text() for _ in range(100)) if not OF_ONE_BIT.search(text)]
    for text, theirs in zip(texts, granted_one_by_one(tmp_path, texts)):
        try:
            ours = explained(tmp_path, [text])
        except subprocess.CalledProcessError as refused:
            assert refused.returncode in (1, 2) and b"Next: " in refused.stderr, text
            continue
        assert not theirs or ours == theirs, text
        alike += bool(theirs)
    assert alike >= 10
